"""The version that a launch runs, and its facts: from the image's tag, from what the user says, else the newest."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from deployc.diagnostics import Diagnostic, note, warning
from deployc.facts.catalogue.history import order
from deployc.facts.engine import flag_history, load, versions
from deployc.facts.engine_table import engine_table
from deployc.facts.lore import lore
from deployc.types.facts import EngineFacts, Flag
from deployc.types.launch import FoundLaunch
from deployc.types.lore import Lore

_TAG = re.compile(r"v?(\d+\.\d+\.\d+(?:\.post\d+)?)(?![\d.])")
OFFICIAL = "vllm/vllm-openai"


@dataclass(frozen=True, slots=True)
class Engine:
    """One version as a launch is judged by it."""

    facts: EngineFacts
    lore: Lore
    model_as_flag: str  # of `vllm serve --model X`: "refused" | "taken"
    tools: tuple[str, ...]  # programs in the official image that a health check may use
    user: str  # "uid:gid" other than root that the official image is made for; "" = none

    def known(self, name: str) -> Flag | None:
        """A flag by name or alias, of this version, else of the last one that had it."""
        found = self.facts.flags.get(self.facts.canonical(name))
        return found or _of_another(name.removeprefix("no-")) or self._begun(name)

    def _begun(self, name: str) -> Flag | None:
        """The one flag that begins so: argparse takes names that are cut short."""
        found = [flag for known, flag in self.facts.flags.items() if len(name) > 3 and known.startswith(name)]
        return found[0] if len(found) == 1 else None


def engine_of(launch: FoundLaunch, asked: str | None) -> tuple[Engine, list[Diagnostic]]:
    """The engine of a launch. DC704: no version is said; DC705: the version said has no catalogue."""
    tagged = _TAG.match(launch.tag)
    said = asked.removeprefix("v") if asked else tagged[1] if tagged else launch.version
    known = versions()
    at = launch.image.at if launch.image and not asked else launch.at
    if not said:
        newest = known[-1]
        why = f"Flags are judged by vLLM {newest}, the newest known."
        fix = "say it: --engine-version 0.10.2, as `vllm --version` prints it"
        return _engine(newest), [note("DC704", "the engine's version is not said", why, fix, at)]
    if said in known:
        return _engine(said), []
    older = [version for version in known if order(version) <= order(said)]
    near = older[-1] if older else known[0]
    why = f"vLLM {said} is not among those known, {known[0]} to {known[-1]}: what is said here is true of {near}."
    fix = f"run {near}, which engine.version names now; or `python -m deployc.facts.catalogue {said}`"
    return _engine(near), [warning("DC705", "judged by another version of the engine", why, fix, at)]


def is_official(launch: FoundLaunch) -> bool:
    """Whether the image is vLLM's own."""
    name = launch.image.value.partition("@")[0] if launch.image else ""
    return name.removesuffix(f":{launch.tag}").removeprefix("docker.io/") == OFFICIAL


@cache
def _engine(version: str) -> Engine:
    ways = {name: _value(entries, version) for name, entries in _ways().items() if isinstance(entries, list)}
    return Engine(load(version), lore(version), ways["model_as_flag"], tuple(ways["tools"]), ways["user"])


@cache
def _of_another(name: str) -> Flag | None:
    span = flag_history(name)
    if span is None:
        return None
    known = versions()
    last = known[known.index(span.until) - 1] if span.until else known[-1]
    facts = load(last)
    return facts.flags.get(facts.canonical(name))


@cache
def _ways() -> Mapping[str, Any]:
    return engine_table("found.json")


def _value(entries: list[dict[str, Any]], version: str) -> Any:
    """Of the last entry that is not newer than the version; of an older one, the first's."""
    held = [entry["value"] for entry in entries if order(entry["since"]) <= order(version)]
    return held[-1] if held else entries[0]["value"]
