"""Wrapping by display width, and nothing of the user's that a terminal would obey."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployc.views.layout import cut, escape, expand_tabs, pad, paint, width, wrap

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=120) | st.text(
    st.sampled_from(list("ab  \n\t\x1b\x07中文，é\u202e😀")), max_size=80
)


@pytest.mark.parametrize(
    ("text", "columns"), [("abc", 3), ("中文", 4), ("e\u0301", 1), ("，", 2), ("a中b", 4), ("", 0), ("█▂", 2)]
)
def test_width_is_what_a_terminal_takes(text: str, columns: int) -> None:
    assert width(text) == columns


@given(TEXT)
def test_escaped_text_holds_nothing_that_acts(text: str) -> None:
    shown = escape(text)
    assert shown.isprintable()
    assert not set("\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f") & set(shown)


def test_escapes_are_readable() -> None:
    assert escape("a\x1b[31m\u202e\U000e0001") == "a\\x1b[31m\\u202e\\U000e0001"
    assert escape("模型 é 😀") == "模型 é 😀"


@given(TEXT, st.integers(20, 100), st.sampled_from(["", "  ", " = "]))
def test_no_wrapped_line_is_too_wide_and_nothing_is_lost(text: str, columns: int, first: str) -> None:
    lines = wrap(text, columns, first)
    assert all(width(line) <= columns for line in lines)
    kept = "".join(lines).replace(" ", "")
    assert kept == (first + "".join(escape(part) for part in text.split("\n"))).replace(" ", "")


def test_words_stay_whole_and_wide_characters_may_part() -> None:
    assert wrap("aaa bbb ccc", 8) == ["aaa bbb", "ccc"]
    assert wrap("模型文件不存在", 8) == ["模型文件", "不存在"]
    assert wrap("see 模型 config", 8) == ["see 模型", "config"]
    assert wrap("aaaaaaaaaaaa", 5) == ["aaaaa", "aaaaa", "aa"]
    assert wrap("one\ntwo", 20, "- ") == ["- one", "  two"]


def test_tabs_go_to_the_next_stop_by_display_width() -> None:
    assert expand_tabs("\ta\tb") == "    a   b"
    assert expand_tabs("中\tb") == "中  b"


def test_pad_cut_paint() -> None:
    assert pad("中", 4) == "中  "
    assert cut("中文字", 5) == "中文…"
    assert cut("abc", 3) == "abc"
    assert paint("x", "error", True) == "\x1b[1;31mx\x1b[0m"
    assert paint("x", "error", False) == "x"
