"""`engine.env`: variables that nobody reads, that another server reads, or that the engine cannot read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from deployc.diagnostics import Diagnostic, error, warning
from deployc.rules.case import Case
from deployc.types.lore import Foreign


def read(case: Case) -> Iterator[Diagnostic]:
    """A variable of vLLM's own kind that this version does not read. Nothing is said where its list is not known."""
    known = case.facts.engine.variables
    for name in case.deploy.engine.env:
        if not known or not name.startswith("VLLM_") or name in known or foreign(name, case.facts.lore.foreign):
            continue
        close = get_close_matches(name, known, 1, 0.8)
        yield warning(
            "DC514",
            "the engine does not read this variable",
            f"vLLM {case.facts.engine.version} reads no {name}.",
            f"did you mean {close[0]}?" if close else "remove it",
            case.deploy.at(("engine", "env", name)),
        )


def of_this_server(case: Case) -> Iterator[Diagnostic]:
    """What was brought along from another server sets nothing here."""
    for name in case.deploy.engine.env:
        found = foreign(name, case.facts.lore.foreign)
        if found is not None and name not in case.facts.engine.variables:
            whose = f"{name} is a variable of {found.whose}; vLLM reads none of that name." if found.whose else ""
            yield warning(
                "DC515",
                "the variable is not the engine's",
                f"{whose or f'Nothing reads {name}.'} {found.says}",
                found.fix,
                case.deploy.at(("engine", "env", name)),
            )


def numbers(case: Case) -> Iterator[Diagnostic]:
    """vllm/envs.py hands these to int() or float(): true, yes or an empty text stop the engine."""
    known = case.facts.engine.variables
    for name, value in case.deploy.engine.env.items():
        if name in case.facts.lore.numbers and (not known or name in known) and not _is_number(value):
            yield error(
                "DC517",
                "the engine cannot read this variable",
                f"vLLM reads {name} as a number, and {value!r} is none: it stops.",
                "write 1 or 0" if value.lower() in ("true", "false", "yes", "no", "on", "off") else "write a number",
                case.deploy.at(("engine", "env", name)),
            )


def foreign(name: str, known: Mapping[str, Foreign]) -> Foreign | None:
    """Whose it is; "SGLANG_*" stands for all that begin so."""
    if name in known:
        return known[name]
    return next((one for key, one in known.items() if key.endswith("*") and name.startswith(key[:-1])), None)


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True
