"""Quantities: what parses to what, what is refused, and that what we show reads back as nearly the same."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployc import units

PARSERS = [
    units.parse_bytes, units.parse_seconds, units.parse_fraction, units.parse_rate, units.parse_bandwidth,
    units.parse_flops,
]  # fmt: skip


@pytest.mark.parametrize(
    ("parse", "written", "value"),
    [
        (units.parse_bytes, "24GiB", 24 * 2**30), (units.parse_bytes, "24 GB", 24 * 10**9),
        (units.parse_bytes, "1.5kib", 1536), (units.parse_bytes, 4096, 4096), (units.parse_bytes, "1_000 B", 1000),
        (units.parse_bytes, "1 000MB", 10**9), (units.parse_bytes, ".5MiB", 2**19), (units.parse_bytes, 0, 0),
        (units.parse_seconds, "800ms", 0.8), (units.parse_seconds, "2min", 120.0), (units.parse_seconds, "1.5h", 5400),
        (units.parse_seconds, "5µs", 5e-6), (units.parse_fraction, "3%", 0.03), (units.parse_fraction, 0.5, 0.5),
        (units.parse_fraction, "0.03", 0.03), (units.parse_rate, "480/min", 8), (units.parse_rate, 8, 8),
        (units.parse_rate, "8 /s", 8), (units.parse_bandwidth, "1008GB/s", 1.008e12),
        (units.parse_bandwidth, "4.8 TB/s", 4.8e12), (units.parse_bandwidth, "1KiB/s", 1024),
        (units.parse_flops, "165TFLOPS", 1.65e14), (units.parse_flops, "1 PFLOP/s", 1e15),
        (units.parse_flops, "330TOPS", 3.3e14), (units.parse_flops, "1e3gflops", 1e12),
    ],
)  # fmt: skip
def test_parses(parse: Callable[[object], float], written: Any, value: float) -> None:
    assert parse(written) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("parse", "written", "said"),
    [
        (units.parse_bytes, "24", None), (units.parse_bytes, "24 potatoes", "unknown unit 'potatoes'"),
        (units.parse_bytes, "-1GiB", "negative"), (units.parse_bytes, "GiB", "not a size"),
        (units.parse_bytes, "２GiB", "not a size"), (units.parse_bytes, "1__0", "not a size"),
        (units.parse_bytes, "1e400", "beyond"), (units.parse_bytes, 10**400, "beyond"),
        (units.parse_bytes, float("nan"), "beyond"), (units.parse_bytes, float("inf"), "beyond"),
        (units.parse_bytes, True, "not a size"), (units.parse_bytes, None, "not a size"),
        (units.parse_bytes, {}, "not a size"), (units.parse_bytes, "", "not a size"),
        (units.parse_seconds, 800, "write 800ms or 800s"), (units.parse_seconds, "800", "no unit"),
        (units.parse_seconds, "8d", "unknown unit"), (units.parse_fraction, "3 percent", "unknown unit"),
        (units.parse_rate, "8/d", "unknown unit"), (units.parse_rate, "8/", "unknown unit"),
        (units.parse_bandwidth, "1008", "not a bandwidth"), (units.parse_bandwidth, "1008GB", "not a bandwidth"),
        (units.parse_bandwidth, "1008/s", "not a bandwidth"), (units.parse_bandwidth, 1008, "not a bandwidth"),
        (units.parse_flops, "165", "no unit"), (units.parse_flops, 165, "no unit"),
        (units.parse_flops, "165TB", "unknown unit"),
    ],
)  # fmt: skip
def test_refuses(parse: Callable[[object], float], written: Any, said: str | None) -> None:
    if said is None:
        assert parse(written) == 24
        return
    with pytest.raises(ValueError, match=said):
        parse(written)


@pytest.mark.parametrize("parse", PARSERS)
@given(
    value=st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30) | st.just([1]) | st.just({})
)
def test_junk_is_a_value_error_or_a_number(parse: Callable[[object], float], value: Any) -> None:
    try:
        found = parse(value)
    except ValueError as wrong:
        assert str(wrong)
    else:
        assert 0 <= found <= units.LARGEST


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize("text", ["1" * 100_000 + "!", "1 " * 50_000 + "!", " " * 100_000 + "!", "1" + "e" * 100_000])
def test_long_junk_takes_no_time(parse: Callable[[object], float], text: str) -> None:
    began = time.monotonic()
    with pytest.raises(ValueError, match=r"."):
        parse(text)
    assert time.monotonic() - began < 30  # a blink on an idle machine; what is unbounded takes hours


@given(st.integers(0, 2**50), st.integers(0, 2**50))
def test_bytes_read_back(one: int, other: int) -> None:
    shown = [units.parse_bytes(units.show_bytes(value)) for value in sorted((one, other))]
    assert shown == sorted(shown)
    assert shown[0] == pytest.approx(min(one, other), rel=0.006, abs=0.5)


@given(st.floats(1e-3, 1e7), st.floats(1e-3, 1e7))
def test_seconds_read_back(one: float, other: float) -> None:
    shown = [units.parse_seconds(units.show_seconds(value)) for value in sorted((one, other))]
    assert shown == sorted(shown)
    assert shown[0] == pytest.approx(min(one, other), rel=0.026)  # "2.0 min" is 117 to 123 s


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (units.show_bytes(15_247_000_000), "14.2 GiB"), (units.show_bytes(57344), "56.0 KiB"),
        (units.show_bytes(0), "0 B"), (units.show_bytes(-(2**30)), "-1.00 GiB"), (units.show_bytes(2**50), "1024 TiB"),
        (units.show_seconds(0.0048), "4.8 ms"), (units.show_seconds(1.2), "1.20 s"),
        (units.show_seconds(204), "3.4 min"),
        (units.show_seconds(9000), "2.5 h"), (units.show_count(104448), "104,448"), (units.show_count(12.34), "12.3"),
        (units.show_count(0.5), "0.50"), (units.show_count(7), "7"),
    ],
)  # fmt: skip
def test_shows(shown: str, text: str) -> None:
    assert shown == text
