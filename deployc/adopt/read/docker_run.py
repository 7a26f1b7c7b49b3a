"""`docker run …` (podman and nerdctl take the same options) -> a `FoundLaunch`, the engine's words not yet apart."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace

from deployc.adopt.read.program import SHELLS, base, other_server, program, runs_vllm, shell_text
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
    while index < len(words) and words[index].value.startswith(("-", "$")):
        if words[index].value.startswith("$"):  # options that a variable holds, where others follow; else the image
            if index + 1 == len(words) or not words[index + 1].value.startswith("-"):
                break
            index += 1
            continue
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
        cards=tuple([*map(_cards, options.get("gpus", [])), *map(by_cdi, filter(_is_card, options.get("device", [])))]),
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


def _is_card(piece: Piece) -> bool:
    return piece.value.startswith("nvidia.com/gpu=")


def by_cdi(piece: Piece) -> Reservation:
    """`nvidia.com/gpu=all` or `=0`: a card by its name of the Container Device Interface."""
    name = piece.value.partition("=")[2]
    every = name == "all"
    return Reservation(piece.at, count="all" if every else "", device_ids=() if every else (name,), driver="cdi")


def _cards(piece: Piece) -> Reservation:
    """`--gpus all`, `2`, `device=0`, `"device=0,1"`, `count=1,capabilities=…`: fields of CSV, as Docker reads them.

    Without quotes of its own inside the shell's, `device=0,1` is the device 0 and the count 1.
    """
    fields = next(csv.reader([piece.value.replace("\n", " ")]), [])
    pairs = [field.strip("\"'").partition("=") for field in fields]
    ids = tuple(one for key, _, value in pairs if key == "device" for one in value.strip("\"'").split(",") if one)
    count = next((value if equals else key for key, equals, value in pairs if key == "count" or not equals), "")
    return Reservation(piece.at, count=count, device_ids=ids, driver="nvidia", capabilities=("gpu",))
