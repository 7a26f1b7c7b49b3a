#!/bin/sh
# Puts each secret's file into the environment variable of its name, then becomes the engine: sh entrypoint.sh COMMAND…
# The files lie in /run/secrets (Compose) or in $CREDENTIALS_DIRECTORY (systemd).
set -eu
folder=${CREDENTIALS_DIRECTORY:-/run/secrets}

take() { # take NAME
	if [ ! -r "$folder/$1" ]; then
		echo "deployc: user $(id -u) cannot read the secret $folder/$1" >&2
		exit 78
	fi
	value=$(cat "$folder/$1")
	if [ -z "$value" ]; then # the engine would start without it, open to everybody
		echo "deployc: the secret $folder/$1 is empty" >&2
		exit 78
	fi
	export "$1=$value"
}

take VLLM_API_KEY
exec "$@"
