"""`docker run …` (podman and nerdctl take the same options) -> a `FoundLaunch`, the engine's words not yet apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from deployc.adopt.read.program import SHELLS, base, other_server, program, runs_vllm, shell_text
from deployc.diagnostics import Span
from deployc.types.launch import FoundLaunch, Health, Piece, Published, Reservation

_SWITCHES = frozenset(
    {"detach", "interactive", "tty", "rm", "init", "privileged", "read-only", "publish-all", "no-healthcheck"}
    | {"oom-kill-disable", "sig-proxy", "quiet"}
)
_SHORT = {"p": "publish", "v": "volume", "e": "env", "u": "user", "h": "hostname", "l": "label", "w": "workdir",
          "m": "memory", "c": "cpu-shares", "a": "attach", "net": "network"}  # fmt: skip
_LETTERS = "ditPq"
"""Short options that take no value."""


def docker_run(words: Sequence[Piece]) -> FoundLaunch | None:
    """The launch of `docker run [options] image [words]`, None where it is no vLLM's. `words` begin behind `run`."""
    options: dict[str, list[Piece]] = {}
    index = 0
    while index < len(words) and words[index].value.startswith("-"):
        written, at = words[index].value, words[index].at
        name, hangs, value = _long(written) if written.startswith("--") else _short(written)
        if not hangs and name not in _SWITCHES and index + 1 < len(words):
            index += 1
            value = words[index].value
        options.setdefault(name, []).append(Piece(value, at))
        index += 1
    if index >= len(words):
        return None
    launch = _launch(options, words[index], tuple(words[index + 1 :]))
    run = (*(launch.entrypoint or ()), *launch.arguments)
    first = base(run[0].value) if run else ""
    another = (launch.entrypoint is not None or first in SHELLS) and program(run) is None and shell_text(run) is None
    return launch if runs_vllm(words[index].value, run) and not another and not other_server(run) else None


def _long(word: str) -> tuple[str, bool, str]:
    """Name, whether a value hangs on it, and that value."""
    name, equals, value = word[2:].partition("=")
    return _SHORT.get(name, name), bool(equals), value


def _short(word: str) -> tuple[str, bool, str]:
    """`-it`, `-p 8000:8000`, `-p8000:8000`, `-itp=8000`: letters up to the first that takes a value."""
    letters = word[1:].lstrip(_LETTERS)
    if not letters:
        return "detach", False, ""
    value = letters[1:]
    return _SHORT.get(letters[0], letters[0]), bool(value), value.removeprefix("=")


def _launch(options: Mapping[str, list[Piece]], image: Piece, rest: tuple[Piece, ...]) -> FoundLaunch:
    def one(name: str) -> Piece | None:
        return options[name][-1] if name in options else None

    name, entrypoint, shm = one("name"), one("entrypoint"), one("shm-size")
    launch = FoundLaunch(
        source="docker",
        at=image.at,
        name=name.value if name else "",
        image=image,
        entrypoint=(entrypoint,) if entrypoint else None,
        arguments=rest,
        env=environment(options.get("env", [])),
        env_files=tuple(options.get("env-file", [])),
        published=tuple(published(piece) for piece in options.get("publish", [])),
        network=one("network"),
        ipc=one("ipc"),
        shm_size=shm,
        runtime=one("runtime"),
        restart=one("restart"),
        user=one("user"),
        volumes=tuple([*options.get("volume", []), *options.get("mount", [])]),
        grace=one("stop-timeout"),
        cards=tuple(_cards(piece) for piece in options.get("gpus", [])),
    )
    if (command := one("health-cmd")) is not None:
        health = Health(("CMD-SHELL", command.value), command.at, one("health-start-period"), one("health-interval"))
        launch = replace(launch, health=replace(health, retries=one("health-retries")))
    return launch


def environment(pieces: Sequence[Piece]) -> dict[str, Piece]:
    """`NAME=value` entries; one without `=` is taken from the caller's own environment and has no value here."""
    found = {}
    for piece in pieces:
        name, equals, value = piece.value.partition("=")
        if equals:
            found[name.strip()] = Piece(value, piece.at)
    return found


def published(piece: Piece) -> Published:
    """`[address:][host:]container[/protocol]`."""
    text = piece.value.partition("/")[0]
    rest, _, container = text.rpartition(":")
    address, _, host = rest.rpartition(":")
    return Published(address.strip("[]"), host, container, piece.at)


def _cards(piece: Piece) -> Reservation:
    """`--gpus all`, `--gpus 2`, `--gpus device=0,1`, `--gpus '"device=0,1"'`, `--gpus count=1,capabilities=…`."""
    text = piece.value.strip("\"'")
    at: Span = piece.at
    if "device=" in text:
        devices = text.partition("device=")[2].strip("\"'")
        ids = tuple(part for part in devices.split(",") if part and "=" not in part)
        return Reservation(at, device_ids=ids, count=_count(text), driver="nvidia", capabilities=("gpu",))
    return Reservation(at, count=_count(text) or text, driver="nvidia", capabilities=("gpu",))


def _count(text: str) -> str:
    return next((part.partition("=")[2] for part in text.split(",") if part.startswith("count=")), "")
