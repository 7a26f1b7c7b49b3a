"""Secrets in plain sight, and who can reach the engine."""

from __future__ import annotations

import re
from collections.abc import Iterator

from deployc.adopt.deploy import on_host_network
from deployc.adopt.judge.case import Judged
from deployc.diagnostics import Diagnostic, note, warning
from deployc.source.secrets import secret_name
from deployc.types.launch import Piece

_EVERYWHERE = ("0.0.0.0", "::", "[::]", "*")  # noqa: S104
_REFERENCE = re.compile(r"\$|<[\w -]+>\Z|(?:your|my|xxx|token|secret|hf_x+|\*+)\b", re.IGNORECASE)


def key_in_sight(case: Judged) -> Iterator[Diagnostic]:
    """A key among the arguments is in `ps`, in `docker inspect` and in the shell's history."""
    flag = case.launch.flag("api-key")
    stored = case.engine.lore.exposure.key_stored_until
    if flag is not None and flag.text and not flag.text.startswith("$"):
        yield warning(
            "DC717",
            "a secret stands in plain sight",
            "The key is an argument: `ps`, `docker inspect`, the shell's history and the file itself show it."
            + (f" Before {stored} vLLM writes it into its log and compile cache too." if stored else ""),
            "VLLM_API_KEY from an env_file or a secret; deployc takes target.api_key: {env: NAME}",
            flag.at,
        )
    for name, piece in case.launch.env.items():
        if secret_name(name) and piece.value and not _refers(piece):
            yield warning(
                "DC717",
                "a secret stands in plain sight",
                f"{name} has its value written out, in an image's history or a file that others read.",
                f"take it from outside: {name} without a value, an env_file, or a secret",
                piece.at,
            )


def _refers(piece: Piece) -> bool:
    return bool(_REFERENCE.match(piece.value)) or len(piece.value) < 4


def key_in_the_image(case: Judged) -> Iterator[Diagnostic]:
    """ARG and ENV of a Dockerfile are kept in its layers and its history."""
    if case.launch.source != "dockerfile":
        return
    for name, piece in case.launch.build_args.items():
        if secret_name(name):
            yield warning(
                "DC718",
                "a secret is baked into an image",
                f"ARG {name} stays in the image's history: `docker history` shows what it was built with.",
                f"RUN --mount=type=secret,id={name.lower()} …, and hand it to the container when it runs",
                piece.at,
            )
    for name, piece in case.launch.env.items():
        if secret_name(name):
            yield warning(
                "DC718",
                "a secret is baked into an image",
                f"ENV {name} is part of the image: everyone who can pull it has it.",
                "hand it to the container when it runs",
                piece.at,
            )


def reached_by_all(case: Judged) -> Iterator[Diagnostic]:
    """An address that everybody reaches, and no key."""
    launch = case.launch
    if case.keyed or launch.source in ("python", "dockerfile"):
        return
    host = launch.flag("host")
    open_host = host is None or host.text in _EVERYWHERE
    if launch.image is not None and on_host_network(launch):
        if open_host and launch.network is not None:
            yield warning(
                "DC719",
                "everyone who reaches the host can use the engine",
                "The container has the host's network, the engine listens on every address, and no key is asked for: "
                "no published port and no firewall rule of Docker's stands between.",
                "--host 127.0.0.1, or a key: target.api_key: {env: NAME}",
                (host or launch.network).at,
            )
        return
    if launch.image is not None:
        wide = [port for port in launch.published if port.address in ("", *_EVERYWHERE)]
        at = wide[0].at if wide else None
    else:
        at = host.at if host is not None and host.text in _EVERYWHERE else None
    if at is None:
        if host is None and launch.image is None:
            yield _unless_told(case)
        return
    yield warning(
        "DC719",
        "everyone who reaches the host can use the engine",
        "It is published on every address of the host and asks for no key. Docker's own rules go past the host's "
        "firewall."
        if launch.image is not None
        else f"--host {host.text if host else ''} listens on every address and no key is asked for.",
        "publish 127.0.0.1:8000:8000 behind a proxy, or set a key: target.api_key: {env: NAME}",
        at,
    )


def _unless_told(case: Judged) -> Diagnostic:
    return note(
        "DC719",
        "everyone who reaches the host can use the engine",
        "Without --host vLLM listens on every address, and no key is asked for. deploy.yaml binds to 127.0.0.1.",
        "target.bind and target.api_key say otherwise",
        case.launch.at,
    )
