"""Diagnostics as a compiler shows them, whatever the user's file holds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from golden import assert_golden
from hypothesis import given
from hypothesis import strategies as st

from deployc.diagnostics import Report, Span, error, note, warning
from deployc.views.diagnostics import count, diagnostics
from deployc.views.layout import width


def span(line: str, part: str, number: int = 15) -> Span:
    column = line.index(part) + 1
    return Span("deploy.yaml", number, column, column + len(part), line)


def report() -> Report:
    return Report(
        [
            note("DC333", "prefixes are shared", "Caching them is free.", at=span("workload:", "workload", 3)),
            error(
                "DC302",
                "the model does not fit",
                "weights take 28.4 GiB of 21.6 GiB; 这个模型放不进这张显卡，请减小模型或者换一张更大的卡，谢谢。",
                "quantization.weights: int8",
                span("  gpu: rtx-4090  # 显卡", "rtx-4090"),
                "exact",
            ),
            error(
                "DC101", "wide text before", "two columns a character", "", span("  名称：模型 = 大模型", "大模型", 7)
            ),
            warning("DC102", "tabs before", "to the next stop", "use spaces", span("\tkey:\tvalue", "value", 120)),
            error("DC103", "nothing to show it in", "a file without a place in it", at=Span("other.yaml", 1, 1, 1)),
            error("DC104", "no place at all", "first line\nsecond line"),
        ]
    )


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_golden_diagnostics(columns: int) -> None:
    shown = diagnostics(report(), width=columns)
    assert all(width(line) <= columns for line in shown.splitlines())
    assert_golden(Path(__file__).parent / "expect" / f"diagnostics-{columns}.txt", shown)


def carets(shown: str) -> tuple[int, int]:
    """Where the carets begin in display columns, and where what they underline begins."""
    lines = shown.splitlines()
    at = next(index for index, line in enumerate(lines) if set(line.split("|")[-1].strip()) == {"^"})
    return width(lines[at][: lines[at].index("^")]), at


@pytest.mark.parametrize(
    ("line", "part"),
    [("  gpu: rtx", "rtx"), ("名称: 大", "大"), ("\ta:\tb", "b"), ("é: e\u0301x", "x"), ("a\x1b: b", "b")],
)
def test_carets_stand_under_their_text(line: str, part: str) -> None:
    shown = diagnostics(Report([error("DC101", "s", at=span(line, part))]))
    begin, at = carets(shown)
    above = shown.splitlines()[at - 1]
    assert width(above[: above.rindex(part)]) == begin
    assert shown.splitlines()[at].count("^") == width(part)


def test_a_long_line_is_cut_to_where_the_carets_are() -> None:
    line = "key: " + "x" * 300 + " here " + "y" * 300
    shown = diagnostics(Report([error("DC101", "s", at=span(line, "here"))]), width=80)
    begin, at = carets(shown)
    above = shown.splitlines()[at - 1]
    assert above.index("here") == begin
    assert "…" in above
    assert all(width(one) <= 80 for one in shown.splitlines())


PRINTING = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)


@given(PRINTING, PRINTING, st.integers(1, 220), st.integers(0, 50), st.integers(40, 120))
def test_any_text_at_any_place_stays_in_its_columns(
    line: str, text: str, column: int, length: int, columns: int
) -> None:
    at = Span("deploy.yaml", 12, column, column + length, line.replace("\n", " "))
    shown = diagnostics(Report([error("DC101", "summary", text, text, at)]), width=columns)
    assert "\x1b" not in shown
    assert shown.replace("\n", "").isprintable()
    assert all(width(one) <= columns for one in shown.split("\n"))
    assert "^" in shown or not at.excerpt


def test_errors_come_first_and_are_counted() -> None:
    shown = diagnostics(report())
    assert shown.index("DC302") < shown.index("DC102") < shown.index("DC333")
    assert shown.endswith("\n4 errors, 1 warning, 1 note\n")
    assert count(Report()) == ""
    assert diagnostics(Report()) == ""


def test_colour_changes_no_letter() -> None:
    colored = diagnostics(report(), color=True)
    assert "\x1b[1;31merror[DC302]\x1b[0m" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == diagnostics(report())
