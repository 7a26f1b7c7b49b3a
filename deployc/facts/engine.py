"""The engine's facts: the catalogue file of exactly the version that deploy.yaml names; no nearby one stands in."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deployc.data import profiles
from deployc.diagnostics import Report, error
from deployc.facts.codec import decode
from deployc.types.facts import EngineFacts, Flag
from deployc.types.runner import RunnerRule

if TYPE_CHECKING:
    from deployc.spec.deploy import Deploy

_NUMBERS = re.compile(r"v?(\d+(?:\.\d+)*)")
_TUPLES = ("batch_defaults", "graphs_in_budget", "v2_architectures", "compute_capabilities")


def engine(deploy: Deploy) -> tuple[EngineFacts | None, Report]:
    """Flags and behaviours of `engine.version`. DC550: the version is not in the catalogue. DC551: a damaged file."""
    version = deploy.engine.version
    path = _folder() / f"vllm-{version}.json"
    known = versions()
    if version not in known:
        detail = (
            f"There is no catalogue of vllm {version}; its flags and defaults are not those of another version, "
            f"and none is guessed. Known: {', '.join(known)}."
        )
        fix = f"Name a known version, or read this one's own sources: `python -m deployc.facts.catalogue {version}`."
        if version.removeprefix("v") in known:
            fix = f"Write it without the v: {version.removeprefix('v')}."
        at = deploy.at("engine.version")
        return None, Report([error("DC550", "the engine's version is not in the catalogue", detail, fix, at)])
    try:
        return load(path), Report()
    except (OSError, ValueError, KeyError, TypeError) as wrong:
        detail = f"{path}: {type(wrong).__name__}: {wrong}."
        fix = f"Write it anew: `python -m deployc.facts.catalogue {version}`, or install deployc again."
        return None, Report([error("DC551", "the engine's catalogue is damaged", detail, fix)])


def versions() -> tuple[str, ...]:
    """Versions with a catalogue, oldest first."""
    found = (path.stem.removeprefix("vllm-") for path in _folder().glob("vllm-*.json"))
    return tuple(sorted(found, key=release))


def release(version: str) -> tuple[int, ...]:
    """ "v0.19.0rc1" as (0, 19, 0): what comes after the numbers is no part of it; empty where there are none."""
    numbers = _NUMBERS.match(version)
    return tuple(int(number) for number in numbers[1].split(".")) if numbers else ()


def load(path: Path) -> EngineFacts:
    """The facts of one catalogue file. Raises OSError, ValueError, KeyError or TypeError where it is no such file."""
    read = json.loads(path.read_bytes())
    values: dict[str, Any] = {name: entry["value"] for name, entry in read["behaviour"].items()}
    values |= {name: tuple(values[name]) for name in _TUPLES if name in values}
    values["model_runners"] = decode(tuple[RunnerRule, ...], values["model_runners"])
    return EngineFacts(
        name=read["name"],
        version=read["version"],
        flags={flag["name"]: _flag(flag) for flag in read["flags"]},
        image=f"vllm/vllm-openai:v{read['version']}",
        source=read["source"],
        **values,
    )


def _flag(read: dict[str, Any]) -> Flag:
    return Flag(
        read["name"],
        read["type"],
        tuple(read.get("choices", ())),
        read.get("default"),
        tuple(read.get("aliases", ())),
        read.get("deprecated", ""),
    )


def _folder() -> Path:
    return profiles() / "engines"
