"""`engine.env`: variables that nobody reads, that another server reads, or that the engine cannot read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from deployc.diagnostics import Diagnostic, error, warning
from deployc.rules.case import Case
from deployc.types.lore import Foreign


def read(case: Case) -> Iterator[Diagnostic]:
    """A variable of vLLM's own kind that this version does not read. Nothing is said where its list is not known."""
    known, lore = case.facts.engine.variables, case.facts.lore
    for name, value in case.deploy.engine.env.items():
        ours = name.upper().startswith("VLLM_") and name not in known and not foreign(name, lore.foreign)
        if not known or not ours:
            continue
        when, close = lore.elsewhen.get(name, ""), get_close_matches(name.upper(), known, 1, 0.8)
        fix = f"did you mean {close[0]}?" if close and not when else "remove it"
        if name in lore.instead and when.startswith("went"):
            fix = lore.instead[name].format(value=value)
        yield warning(
            "DC514",
            "the engine does not read this variable",
            f"vLLM {case.facts.engine.version} reads no {name}" + (f": it {when}." if when else "."),
            fix,
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


def readable(case: Case) -> Iterator[Diagnostic]:
    """vllm/envs.py stops at a text that is no number, and at a value that is not one of its choices."""
    for name, value in case.deploy.engine.env.items():
        wrong = _unreadable(case, name, value)
        if wrong is not None:
            yield error(
                "DC517",
                "the engine cannot read this variable",
                f"{name} is {value!r}, and vLLM {wrong[0]}: it stops.",
                wrong[1],
                case.deploy.at(("engine", "env", name)),
            )


def _unreadable(case: Case, name: str, value: str) -> tuple[str, str] | None:
    """Why, and what to write; None where nothing is wrong, or where this version does not read it at all."""
    known, lore = case.facts.engine.variables, case.facts.lore
    if known and name not in known:
        return None
    if name in lore.numbers and not _is_number(value):
        switch = value.lower() in ("true", "false", "yes", "no", "on", "off")
        return "reads it as a number", "write 1 or 0" if switch else "write a number"
    choices = lore.choices.get(name, ())
    if choices and value.lower() not in map(str.lower, choices):
        return f"knows {', '.join(choices)}", f"write one of {', '.join(choices)}"
    return None


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
