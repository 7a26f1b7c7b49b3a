"""Flags and variables of a launch by the very rules that judge `engine.args` and `engine.env`, at their own places.

What is written is bound to a `Deploy` as it stands, none of it moved to another key or mended; the rules that look at
flags, variables and the version alone then say what they say of a deploy.yaml.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from deployc.adopt.deploy import listens
from deployc.adopt.flags import is_open, named
from deployc.adopt.judge.case import Judged
from deployc.diagnostics import Diagnostic, Span
from deployc.rules import flags, registered, remarks, spelling, variables, versions
from deployc.rules.case import Case, Rule
from deployc.source.secrets import secret_name
from deployc.spec.deploy import Deploy, Path, bind
from deployc.types.facts import EngineFacts
from deployc.types.lore import Lore

WRITTEN_RULES: tuple[Rule, ...] = (
    flags.known,
    flags.going,
    flags.typed,
    registered.parsers_are_known,
    registered.values_are_known,
    remarks.remarks_on_what_is_written,
    spelling.quotes,
    variables.read,
    variables.of_this_server,
    variables.readable,
    versions.age,
    versions.holes,
    versions.image_stays,
)
"""Rules that ask for nothing but what is written, the engine's facts and what is known of it."""
_NOT_OURS = ("config",)


@dataclass(frozen=True, slots=True)
class _Engine:
    """The part of `Facts` that these rules read."""

    engine: EngineFacts
    lore: Lore


@dataclass(frozen=True, slots=True)
class _Written:
    """The part of `Case` that these rules read."""

    deploy: Deploy
    facts: _Engine


def as_the_engine_takes_them(case: Judged) -> Iterator[Diagnostic]:
    """What is wrong with the flags, variables and version of a launch, whatever its model and card."""
    written = cast("Case", _Written(_verbatim(case), _Engine(case.engine.facts, case.engine.lore)))
    for rule in WRITTEN_RULES:
        yield from rule(written)


def _verbatim(case: Judged) -> Deploy:
    launch, spans = case.launch, dict[Path, Span]()
    args: dict[str, Any] = {}
    for flag in launch.flags:
        if "." in flag.name or flag.name in _NOT_OURS or flag.value is None or is_open(flag.value):
            continue
        name, value = named(flag, case.engine)
        args[name] = value
        spans["engine", "args", name] = flag.at
    env = {}
    for name, piece in launch.env.items():
        if not secret_name(name) and not is_open(piece.value):
            env[name] = piece.value
            spans["engine", "env", name] = piece.at
    engine: dict[str, Any] = {"version": case.engine.facts.version, "args": args, "env": env}
    spans["engine", "version"] = launch.image.at if launch.image is not None else launch.at
    if launch.image is not None:
        engine["image"] = launch.image.value or None
        spans["engine", "image"] = launch.image.at
    address, port = listens(launch)
    values = {
        "version": 1,
        "name": "found",
        "model": {"source": launch.model.value if launch.model else "."},
        "hardware": {"gpu": "auto"},
        "workload": {"input_tokens": 1, "output_tokens": 1, "concurrency": 1},
        "engine": engine,
        "target": {"bind": address or "127.0.0.1", "port": port},
    }
    return bind(values, spans)
