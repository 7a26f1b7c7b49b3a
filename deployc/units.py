"""Quantities with their units: "24GiB", "800ms", "3%", "8/s", "1008GB/s" parsed to bytes, seconds, fractions, rates."""

from __future__ import annotations

import math
import re

_NUMBER = re.compile(r"\s*([+-]?(?:[0-9]+(?:[_ ][0-9]+)*)?(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z%µ/]*)\s*\Z")
LONGEST = 64  # characters; on a long run of blanks the pattern would search for hours
LARGEST = 1e30
"""Base units; above it no size, time or rate makes sense, and sums of them would leave the floating-point range."""

BYTES = {
    "": 1, "b": 1,
    "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "min": 60.0, "m": 60.0, "h": 3600.0}
FLOPS = {
    prefix + name: factor
    for prefix, factor in (("", 1.0), ("g", 1e9), ("t", 1e12), ("p", 1e15))
    for name in ("flops", "flop/s", "ops", "op/s")
}


def parse_bytes(value: object) -> int:
    """Bytes of "24GiB", "24GB" (decimal) or a plain number of bytes; never negative."""
    number, unit = _split(value, "a size", "24GiB")
    factor = BYTES.get(unit.lower())
    if factor is None:
        raise ValueError(f"unknown unit {unit!r} in {value!r}; use MiB, GiB, TiB (powers of 1024) or MB, GB, TB")
    return round(_counted(number * factor, value))


def parse_seconds(value: object) -> float:
    """Seconds of "800ms", "15s", "2min"; a bare number is refused, as its unit cannot be known."""
    number, unit = _split(value, "a duration", "800ms")
    if not unit:
        raise ValueError(f"{value!r} has no unit; write {value}ms or {value}s")
    factor = SECONDS.get(unit.lower())
    if factor is None:
        raise ValueError(f"unknown unit {unit!r} in {value!r}; use ms, s, min or h")
    return _counted(number * factor, value)


def parse_fraction(value: object) -> float:
    """A share: "3%" or 0.03, both 0.03."""
    number, unit = _split(value, "a share", "3%")
    if unit not in ("", "%"):
        raise ValueError(f"unknown unit {unit!r} in {value!r}; write 3% or 0.03")
    return _counted(number / (100.0 if unit else 1.0), value)


def parse_rate(value: object) -> float:
    """Events a second: 8, "8/s", "480/min"."""
    number, unit = _split(value, "a rate", "8/s")
    factor = {"": 1.0, "/s": 1.0, "/min": 1 / 60, "/h": 1 / 3600}.get(unit.lower())
    if factor is None:
        raise ValueError(f"unknown unit {unit!r} in {value!r}; use /s, /min or /h")
    return _counted(number * factor, value)


def parse_bandwidth(value: object) -> float:
    """Bytes a second: "1008GB/s", "4.8TB/s"; the unit is required."""
    number, unit = _split(value, "a bandwidth", "1008GB/s")
    size, slash, second = unit.lower().partition("/")
    if not size or size not in BYTES or not slash or second != "s":
        raise ValueError(f"{value!r} is not a bandwidth; write it as 1008GB/s")
    return _counted(number * BYTES[size], value)


def parse_flops(value: object) -> float:
    """Floating-point (or integer) operations a second: "165TFLOPS" or "165 TFLOP/s"; the unit is required."""
    number, unit = _split(value, "a compute rate", "165TFLOPS")
    if not unit:
        raise ValueError(f"{value!r} has no unit; write it as 165TFLOPS")
    factor = FLOPS.get(unit.lower())
    if factor is None:
        raise ValueError(f"unknown unit {unit!r} in {value!r}; write it as 165TFLOPS")
    return _counted(number * factor, value)


def _split(value: object, what: str, example: str) -> tuple[float, str]:
    """Number and unit of what the user wrote; a bare number has the unit ""."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return (float(value) if abs(value) <= LARGEST else math.inf), ""
    match = _NUMBER.match(value) if isinstance(value, str) and len(value) <= LONGEST else None
    if not match or not re.search("[0-9]", match[1]):
        shown = repr(value if not isinstance(value, str) else value[:60])
        raise ValueError(f"{shown} is not {what}; write it as {example}")
    return float(re.sub("[_ ]", "", match[1])), match[2]


def _counted(number: float, shown: object) -> float:
    if not -LARGEST <= number <= LARGEST:  # nan as well
        raise ValueError(f"{str(shown)[:60]!r} is beyond any machine")
    if number < 0:
        raise ValueError(f"{shown!r} is negative")
    return number


def show_bytes(value: float) -> str:
    """Bytes for people, binary units, three significant figures: "14.2 GiB", "56.0 KiB"."""
    sign, value = ("-" if value < 0 else ""), abs(value)
    for unit, size in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if value >= size:
            scaled = value / size
            return f"{sign}{scaled:.{2 if scaled < 10 else 1 if scaled < 100 else 0}f} {unit}"
    return f"{sign}{value:.0f} B"


def show_seconds(value: float) -> str:
    """Seconds for people: "4.8 ms", "1.20 s", "3.4 min"."""
    if value < 1:
        milliseconds = value * 1000
        return f"{milliseconds:.{2 if milliseconds < 1 else 1 if milliseconds < 100 else 0}f} ms"
    if value < 120:
        return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} s"
    if value < 7200:
        return f"{value / 60:.{1 if value < 5999 else 0}f} min"
    return f"{value / 3600:.1f} h"


def show_count(value: float) -> str:
    """A count for people, thousands apart: "104,448"; small ones with two significant figures."""
    if value >= 100 or value == int(value):
        return f"{round(value):,}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
