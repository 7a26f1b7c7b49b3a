"""profiles/gpus/: one file a card, with each figure as "value, basis, source"; `names.json` for its other names."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import get_args

from deployc.data import profiles
from deployc.diagnostics import ExitCode, Stop, error
from deployc.types.facts import FigureBasis, GpuFacts, Spec
from deployc.units import parse_bandwidth, parse_bytes, parse_flops

FLOPS = ("bf16", "fp16", "fp8", "int8")
LINKS = ("nvlink", "pcie")
_PARSERS: Mapping[str, Callable[[str], float]] = {
    "memory": parse_bytes,
    "bandwidth": parse_bandwidth,
    **dict.fromkeys(FLOPS, parse_flops),
    **dict.fromkeys(LINKS, parse_bandwidth),
}
_MAKER = ("nvidia", "geforce", "tesla", "quadro")
_SIZE = re.compile(r"^(\d+)g(i?b)?$")


@dataclass(frozen=True, slots=True)
class Profile:
    """A card as its file has it. `links` are bytes/s in one direction by kind; no "nvlink" = it cannot have one."""

    name: str
    figures: Mapping[str, Spec]  # "memory": bytes that CUDA shows, "bandwidth": bytes/s, "bf16" …: operations/s
    compute_capability: tuple[int, int]
    interconnect: str
    links: Mapping[str, Spec]

    def facts(self, interconnect: str) -> GpuFacts:
        """The card with its own interconnect for "auto", else with the one that is named and that it can have."""
        link = self.interconnect if interconnect == "auto" else interconnect
        return GpuFacts(
            name=self.name,
            memory=self.figures["memory"],
            bandwidth=self.figures["bandwidth"],
            compute_capability=self.compute_capability,
            flops={kind: self.figures[kind] for kind in FLOPS if kind in self.figures},
            interconnect=link,
            interconnect_bandwidth=self.links[link],
        )


def normal(written: str) -> str:
    """One spelling of a card's name: "NVIDIA GeForce RTX 4090 48GB" and "rtx-4090-48g" are both "rtx409048"."""
    words = re.split(r"[\s_/-]+", unicodedata.normalize("NFKC", written).lower())
    return "".join(_SIZE.sub(r"\1", word) for word in words if word not in _MAKER)


def find(written: str) -> list[str]:
    """The profiles that a name may mean: one, several where it is ambiguous, none where it is not known."""
    return [written] if written in names() else spellings().get(normal(written), [])


def of_nvml(reported: str) -> list[str]:
    """The profiles whose card calls itself so; several where cards differ in memory alone."""
    return [name for name, known in names().items() if reported in known["nvml"]]


@cache
def names() -> Mapping[str, Mapping[str, list[str]]]:
    """names.json: by profile the `aliases` of people and the names that `nvml` reports. Raises Stop DC669."""
    try:
        read: Mapping[str, Mapping[str, list[str]]] = json.loads((_folder() / "names.json").read_bytes())
    except (OSError, ValueError) as wrong:
        raise _damaged("names.json", str(wrong)) from None
    return read


@cache
def spellings() -> Mapping[str, list[str]]:
    """Every spelling in its normal form -> the profiles that it may mean; a profile's own name means itself."""
    found: dict[str, list[str]] = {}
    for name, known in names().items():
        for spelling in {normal(word) for kind in known.values() for word in kind}:
            found.setdefault(spelling, []).append(name)
    return found | {normal(name): [name] for name in names()}


@cache
def load(name: str) -> Profile:
    """The profile of that name, which `names` has. Raises Stop DC669 where its file is not as it must be."""
    path = _folder() / f"{name}.yaml"
    try:
        return _profile(name, _lines(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError) as wrong:
        raise _damaged(path.name, f"{type(wrong).__name__}: {wrong}") from None


@cache
def cards() -> tuple[GpuFacts, ...]:
    """Every card that has a profile, the one with least memory first. Raises Stop DC669."""
    found = (load(name).facts("auto") for name in names())
    return tuple(sorted(found, key=lambda card: (card.memory.value, card.name)))


def _lines(text: str) -> dict[str, str]:
    """A profile is YAML with one plain value a line; a YAML parser takes 7 ms a file, and there are dozens."""
    read: dict[str, str] = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            key, found, value = line.partition(": ")
            if not found or key in read:
                raise ValueError(f"{line!r} is not 'key: value', each key once")
            read[key] = value.strip().strip('"')
    return read


def _profile(name: str, read: dict[str, str]) -> Profile:
    major, _, minor = read.pop("compute_capability").partition(".")
    interconnect = read.pop("interconnect")
    figures = {key: _figure(text, _PARSERS[key]) for key, text in read.items()}
    links = {kind: figures.pop(kind) for kind in LINKS if kind in figures}
    if interconnect not in links or not {"memory", "bandwidth"} <= figures.keys():
        raise ValueError("memory, bandwidth and the interconnect's own bandwidth are needed")
    return Profile(name, figures, (int(major), int(minor)), interconnect, links)


def _figure(text: str, parse: Callable[[str], float]) -> Spec:
    """ "24GiB, vendor, title of the datasheet" as a Spec. Raises ValueError."""
    value, basis, source = (part.strip() for part in text.split(",", 2))
    if basis not in get_args(FigureBasis) or not source:
        raise ValueError(f"{text!r} is not 'value, basis, source'")
    return Spec(float(parse(value)), source, basis)  # type: ignore[arg-type]  # one of FigureBasis, just seen


def _folder() -> Path:
    return profiles() / "gpus"


def _damaged(file: str, why: str) -> Stop:
    fix = "Install deployc again, or take the file from version control."
    return Stop(error("DC669", "a GPU profile is damaged", f"profiles/gpus/{file}: {why}.", fix), ExitCode.FAILED)
