"""How one value is read: whole numbers, quantities with units, texts. Each raises Wrong."""

import re
from collections.abc import Callable
from typing import Any

from deployc import units
from deployc.spec import faults
from deployc.spec.faults import Wrong, as_typed, expected
from deployc.spec.section import Read

_LEAST_BARE = 2**20
_MOST = 2**31 - 1  # of anything that is counted: more does not fit what the engine counts with


def whole(low: int, high: int | None = None) -> Read:
    """A whole number within bounds; `true` and `1.0` are none."""
    what = f"a whole number from {low} to {high}" if high is not None else f"a whole number of at least {low}"

    def parse(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            digits = value.strip() if isinstance(value, str) and value.isascii() else ""
            raise expected(what, value, f"write {digits} without quotes" if digits.lstrip("+-").isdecimal() else "")
        if value < low or value > (high or _MOST):
            raise Wrong(faults.RANGE, f"{what} is expected, not {value}", "correct the value")
        return value

    limits = {"minimum": low, "maximum": high or _MOST}
    return Read(parse, {"type": "integer", **limits})


def number(above: float | None = None) -> Read:
    """Any finite number, whole ones too; greater than `above`."""
    what = "a number" if above is None else f"a number above {above:g}"

    def parse(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise expected(what, value)
        if above is not None and value <= above:
            raise Wrong(faults.RANGE, f"{what} is expected, not {value}", "correct the value")
        return float(value)

    return Read(parse, {"type": "number"} | ({} if above is None else {"exclusiveMinimum": above}))


def quantity(
    parse: Callable[[Any], float], what: str, example: str, positive: bool = False, bare: bool = False
) -> Read:
    """A number with its unit, read by one of `units`, or without where `bare`; zero is refused where `positive`."""

    def checked(value: Any) -> float:
        if value is None or isinstance(value, bool | dict | list):
            raise expected(what, value, f"write it as {example}")
        try:
            result = parse(value)
        except Wrong:
            raise
        except ValueError as wrong:
            detail, _, fix = str(wrong).partition("; ")
            raise Wrong(faults.QUANTITY, detail, as_typed(value) or fix or f"write it as {example}") from None
        if positive and result == 0:
            raise Wrong(faults.RANGE, f"more than nothing is expected, not {value}", f"write it as {example}")
        return result

    unit = {"type": "string", "pattern": r"^\s*\+?[0-9.][0-9_.eE+ -]*[A-Za-zµ%/]" + ("*" if bare else "+")}
    kinds = [{"type": "number", "minimum": 0}, unit] if bare else [unit]
    return Read(checked, {"anyOf": kinds, "examples": [example]})


def size(value: Any) -> int:
    """Bytes; a bare number that is too small to be meant as bytes is refused."""
    result = units.parse_bytes(value)
    if isinstance(value, int | float) and 0 < value < _LEAST_BARE:
        raise ValueError(f"{value} has no unit and would be {value} bytes; write {value}GiB")
    return result


def share(value: Any) -> float:
    """A share of a whole, above 0 and at most 1."""
    result = units.parse_fraction(value)
    if not 0 < result <= 1:
        fix = f"write {value}%" if isinstance(value, int | float) and 1 < value <= 100 else "write 0.9 or 90%"
        raise Wrong(faults.RANGE, f"{value} is not a share above 0 and of at most 100 %", fix)
    return result


def auto_or(read: Read) -> Read:
    """`auto`, or what `read` takes."""

    def parse(value: Any) -> Any:
        if value == "auto":
            return value
        try:
            return read.parse(value)
        except Wrong as wrong:
            fix = "write one" if wrong.fix == "correct the value" else wrong.fix
            raise Wrong(wrong.kind, wrong.detail, f"{fix}, or auto") from None

    return Read(parse, {"anyOf": [{"const": "auto"}, dict(read.schema)]})


def string(value: Any) -> str:
    """Text of any content; `texts` says later what it may hold where."""
    if not isinstance(value, str):
        bare = isinstance(value, int | float)
        raise expected("text", value, f'put it in quotes: "{str(value).lower()}"' if bare else "")
    return value


def gpu(value: Any) -> str:
    """A card's profile, `auto` or `cpu`; which there are is for RESOLVE to say."""
    if not isinstance(value, str):
        fix = "write a profile, e.g. rtx-4090, or {memory: 24GiB, bandwidth: 1008GB/s}"
        raise expected("a card's profile, auto, cpu or a map", value, fix)
    return value


def release(value: Any) -> str:
    """The text of a version; `0.33` without quotes is a number and has lost its end."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise Wrong(faults.RELEASE, f"{value} is read as a number", f"write all three parts, e.g. {value:g}.0")
    return string(value)


def driver(value: Any) -> str:
    """The version of NVIDIA's driver, or its branch alone; `550.90` without quotes is a number and has lost its end."""
    fix = 'write it as `nvidia-smi` shows it, in quotes: "535.104.05"'
    if not isinstance(value, str):
        raise expected("the version of a driver", value, fix)
    if re.fullmatch(r"[0-9]{3}(\.[0-9]{1,3}){0,2}", value) is None:
        raise Wrong(faults.TYPE, f"the version of a driver is expected, not {value!r:.60}", fix)
    return value


def device(value: Any) -> int | str:
    """A card: its index, or its UUID as text."""
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise expected("an index or a UUID", value, "write 0, or GPU-… or MIG-… as `nvidia-smi -L` prints it")


def capability(value: Any) -> str | float:
    """A compute capability, as text or as a number."""
    if isinstance(value, str) or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value if isinstance(value, str) else float(value)
    raise expected("a compute capability", value, "write it as 8.9")
