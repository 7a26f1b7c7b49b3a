"""The engine's facts: the catalogue of exactly the version that deploy.yaml names; no nearby one stands in.

The catalogue is a history of all versions, see `facts/catalogue/history.py`; one version is read out of it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from deployc.data import profiles
from deployc.diagnostics import Diagnostic, Report, error
from deployc.facts.catalogue.history import History, at, order, release
from deployc.facts.codec import decode
from deployc.types.facts import EngineFacts, Flag, Method
from deployc.types.runner import RunnerRule

if TYPE_CHECKING:
    from deployc.spec.deploy import Deploy

_TUPLES = ("batch_defaults", "graphs_in_budget", "v2_architectures", "compute_capabilities", "lora_ranks")


class Span(NamedTuple):
    """The versions that have a flag: `since` the first of them, `until` the first one after them without it."""

    since: str  # the oldest version of the catalogue may have had it from its predecessors
    until: str | None  # None = the newest has it
    flag: str  # itself, or what it was another spelling of in the last of them


def engine(deploy: Deploy) -> tuple[EngineFacts | None, Report]:
    """Flags and behaviours of `engine.version`. DC550: the version is not in the catalogue. DC551: a damaged one."""
    version = deploy.engine.version
    try:
        known = versions()
        if version not in known:
            return None, Report([_unknown(deploy, known)])
        return load(version), Report()
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as wrong:
        detail = f"{_folder()}: {type(wrong).__name__}: {wrong}."
        fix = f"Write it anew: `python -m deployc.facts.catalogue {version}`, or install deployc again."
        return None, Report([error("DC551", "the engine's catalogue is damaged", detail, fix)])


def _unknown(deploy: Deploy, known: tuple[str, ...]) -> Diagnostic:
    """Names the versions on both sides of the unknown one, or the last ones where it is newer than all."""
    version = deploy.engine.version
    older = [one for one in known if order(one) < order(version)] if release(version) else list(known)
    newer = known[len(older) :]
    near = [*older[-2:], *newer[:2]]
    detail = (
        f"There is no catalogue of vllm {version}; its flags and defaults are not those of another version, "
        f"and none is guessed. Nearest known: {', '.join(near)} (of {len(known)}, {known[0]} to {known[-1]})."
    )
    fix = f"Name a known version, or read this one's own sources: `python -m deployc.facts.catalogue {version}`."
    if version.removeprefix("v") in known:
        fix = f"Write it without the v: {version.removeprefix('v')}."
    return error("DC550", "the engine's version is not in the catalogue", detail, fix, deploy.at("engine.version"))


def versions() -> tuple[str, ...]:
    """Versions with a catalogue, oldest first. Raises OSError, ValueError or LookupError where the list is damaged."""
    return tuple(json.loads((_folder() / "versions.json").read_bytes())["versions"])


def load(version: str) -> EngineFacts:
    """The facts of one version. Raises OSError, ValueError, LookupError, TypeError or AttributeError where there is no
    such catalogue."""
    index = json.loads((_folder() / "versions.json").read_bytes())
    if version not in index["versions"]:
        raise LookupError(f"no vllm {version} in the catalogue")
    values = at(_table("behaviour"), version)
    values |= {name: tuple(values[name]) for name in _TUPLES if name in values}
    values["model_runners"] = decode(tuple[RunnerRule, ...], values["model_runners"])
    return EngineFacts(
        name="vllm",
        version=version,
        flags={name: _flag(name, flag) for name, flag in at(_table("flags"), version).items()},
        image=f"vllm/vllm-openai:v{version}",
        source=index["wheel" if version in index["wheels"] else "source"].format(version=version),
        methods=decode(dict[str, Method], at(_table("methods"), version)),
        variables=tuple(at(_table("variables"), version)),
        **values,
    )


def flag_spans() -> dict[str, Span]:
    """Every flag that a version of the catalogue has or had, aliases too, and when.

    One that went and came again counts from its return; one that became an alias of another is still there.
    """
    known = versions()
    place = {version: number for number, version in enumerate(known)}
    held: dict[str, list[tuple[int, int, str]]] = {}
    for name, entries in _table("flags").items():
        begins = [place[entry[0]] for entry in entries]
        for entry, begin, end in zip(entries, begins, [*begins[1:], len(known)], strict=True):
            for spelled in (name, *entry[1].get("aliases", ())) if entry[1] else ():
                held.setdefault(spelled, []).append((end, begin, name))
    return {name: _span(known, held[name]) for name in sorted(held)}


def flag_history(name: str) -> Span | None:
    """Of one flag, without leading dashes; None where no version of the catalogue has it."""
    return flag_spans().get(name)


def _span(known: tuple[str, ...], held: list[tuple[int, int, str]]) -> Span:
    """Of the stretches [begin, end) of versions in which it was a spelling of a flag, those up to the last end."""
    stretches = sorted(held, reverse=True)
    end, first, flag = stretches[0]
    for until, begin, _ in stretches:
        if until >= first:
            first = min(first, begin)
    return Span(known[first], known[end] if end < len(known) else None, flag)


def _table(name: str) -> History:
    read: History = json.loads((_folder() / f"{name}.json").read_bytes())
    return read


def _flag(name: str, read: dict[str, Any]) -> Flag:
    return Flag(
        name,
        read["type"],
        tuple(read.get("choices", ())),
        read.get("default"),
        tuple(read.get("aliases", ())),
        read.get("deprecated", ""),
    )


def _folder() -> Path:
    return profiles() / "engines" / "vllm"
