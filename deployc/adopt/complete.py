"""What was read of a launch, and the version that it runs -> its model and flags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from deployc.adopt.engine import Engine
from deployc.adopt.read.arguments import Arguments, arguments
from deployc.adopt.read.command import assigned, launches
from deployc.adopt.read.program import program, shell_text, takes_model
from deployc.adopt.read.words import script
from deployc.types.launch import FoundFlag, FoundLaunch, Piece


def completed(launch: FoundLaunch, engine: Engine) -> FoundLaunch:
    """The launch with model, flags and program. Those of YAML and Python have them already."""
    if launch.source in ("config", "python"):
        return launch
    launch = _inside_a_shell(launch)
    words = _run(launch)
    found = program(words) if not launch.program else None
    start, end = found or (0, 0)
    ran = launch.program or tuple(words[start:end]) or _of_the_image(launch, engine)
    taken = arguments(launch.arguments if launch.program else words[end:], engine.known)
    model, by_flag = _model(taken, ran)
    return replace(
        launch,
        program=ran,
        model=model,
        model_flag=by_flag and takes_model(ran),
        flags=tuple(flag for flag in taken.flags if flag.name != "model"),
        stray=tuple(taken.stray),
        env={**launch.env, **assigned(words[:start])},
    )


def twice(launch: FoundLaunch) -> tuple[Piece, ...]:
    """The program's words where a container is handed it although its image starts it already; else none."""
    if launch.image is None or launch.entrypoint is not None:
        return ()
    found = program(launch.arguments)
    return launch.arguments[found[0] : found[1]] if found else ()


def _run(launch: FoundLaunch) -> tuple[Piece, ...]:
    return (*(launch.entrypoint or ()), *launch.arguments)


def _of_the_image(launch: FoundLaunch, engine: Engine) -> tuple[Piece, ...]:
    at = launch.image.at if launch.image else launch.at
    return tuple(Piece(word, at) for word in engine.facts.entrypoint.split())


def _inside_a_shell(launch: FoundLaunch) -> FoundLaunch:
    """`bash -c "…"` as entrypoint or command: the launch inside it, beside the container's own settings."""
    text = None if launch.program else shell_text(_run(launch))
    inner = next(launches(script(text)), None) if text is not None else None
    if text is None or inner is None or inner.image is not None:
        return launch
    return replace(
        launch, shell=text, program=inner.program, arguments=inner.arguments, env={**launch.env, **inner.env}
    )


def _model(taken: Arguments, ran: Sequence[Piece]) -> tuple[Piece | None, bool]:
    """The model and whether a flag names it; the positional one, where the program takes one, goes first."""
    positional = taken.stray.pop(0) if takes_model(ran) and taken.stray else None
    named = [flag for flag in taken.flags if flag.name == "model"]
    if positional is not None:
        return positional, False
    last: FoundFlag | None = named[-1] if named else None
    return (Piece(last.text, last.at), True) if last is not None else (None, False)
