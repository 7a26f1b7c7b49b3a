"""What an engine says of itself while it starts: tokens of its KV cache, sizes, times, kernels, flags."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from deployc.measure.doctor.log.lines import Line
from deployc.measure.doctor.log.mask import hidden
from deployc.measure.doctor.log.table import Figures
from deployc.source.secrets import secret_name

_PAIR = re.compile(r"[{ ]'([a-z_]{2,60})': ('[^']{0,300}'|-?[\d.]{1,20}|True|False|None)(?=[,}])")
_NUMBER = re.compile(r"-?\d{1,18}(?:\.\d{0,18})?\Z")


@dataclass(frozen=True, slots=True)
class Fact:
    """A name of profiles/engines/log_lines.json with its value: a number of `unit`, or words."""

    name: str
    value: float | str
    unit: str
    line: int  # of the log


def facts(lines: Sequence[Line], figures: Iterable[Figures], hide: Sequence[str]) -> Iterator[Fact]:
    """The last of each name; of several processes the one that spoke last."""
    found: dict[str, Fact] = {}
    for line in lines:
        text = line.text
        for shape in figures:
            if shape.has in text and (match := shape.pattern.search(text)):
                for name, value in match.groupdict().items():
                    for fact in _facts(name.partition("_of_")[0], value, shape.units, line.number, hide):
                        found[fact.name] = fact
    yield from found.values()


def _facts(name: str, value: str | None, units: Mapping[str, str], line: int, hide: Sequence[str]) -> Iterator[Fact]:
    if value is None:
        return
    if name == "args":
        yield from (Fact(f"args.{key}", hidden(said, hide), "", line) for key, said in _args(value).items())
        return
    plain = value.replace(",", "")
    if name in units and _NUMBER.match(plain):
        yield Fact(name, float(plain), units[name], line)
    elif name not in units:
        yield Fact(name, hidden(value, hide), "", line)


def _args(text: str) -> dict[str, str]:
    """Flag -> value as the engine printed them; where some are no plain literals, those that are. No secrets."""
    try:
        said = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        said = {pair[1]: pair[2].strip("'") for pair in _PAIR.finditer(text)}
    if not isinstance(said, dict):
        return {}
    return {str(name): str(value)[:300] for name, value in said.items() if not secret_name(str(name))}
