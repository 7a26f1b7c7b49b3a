"""Values put into a deploy.yaml: comments, order and all other lines stay as they were."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployc.source.edit import NotEdited, edited

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(ROOT.glob("examples/*/deploy*.yaml")) + sorted(ROOT.glob("tests/cases/*/deploy.yaml"))
COUNT, SEQS, TENSOR = ("hardware", "count"), ("engine", "args", "max-num-seqs"), ("engine", "parallel", "tensor")
FILE = """\
# which model
version: 1   # of the format
name:   'spaced'

engine:
    version: 0.33.0  # pinned

    # spread
    parallel:
        tensor: auto # by the tool

# where
target: {kind: process,   port: 8000}
"""


def difference(text: str, changes: dict[tuple[str | int, ...], Any]) -> list[str]:
    """Lines that went or came, with their sign."""
    lines = difflib.ndiff(text.splitlines(), edited(text, changes).splitlines())
    return [line for line in lines if line[0] in "+-"]


def test_only_the_lines_of_the_changed_values_change() -> None:
    assert difference(FILE, {TENSOR: 2}) == [
        "-         tensor: auto # by the tool",
        "+         tensor: 2    # by the tool",
    ]
    assert difference(FILE, {("target", "port"): 9}) == [
        "- target: {kind: process,   port: 8000}",
        "+ target: {kind: process, port: 9}",
    ]
    assert difference(FILE, {("name",): "spaced"}) == [], "it says so already"


def test_new_keys_stand_at_the_end_of_their_section_before_what_is_below_it() -> None:
    assert edited(FILE, {SEQS: 64, ("engine", "args", "seed"): 1}) == FILE.replace(
        "by the tool\n", "by the tool\n    args:\n        max-num-seqs: 64\n        seed: 1\n"
    )
    assert edited(FILE, {("quantization", "weights"): "int8"}) == FILE + "quantization:\n    weights: int8\n"
    assert difference("engine: {version: 0.33.0}\n", {SEQS: 4}) == [
        "- engine: {version: 0.33.0}",
        "+ engine: {version: 0.33.0, args: {max-num-seqs: 4}}",
    ]


def test_line_ends_stay() -> None:
    assert edited(FILE.replace("\n", "\r\n"), {TENSOR: 2}) == edited(FILE, {TENSOR: 2}).replace("\n", "\r\n")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name + "/" + path.name)
def test_without_changes_a_file_stays_to_the_byte(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    try:
        assert edited(text, {}) == text
    except NotEdited:
        pytest.fail("a file that can be read is a file that can be written")


@given(
    st.dictionaries(
        st.sampled_from((COUNT, SEQS, TENSOR, ("quantization", "weights"), ("name",))),
        st.one_of(st.integers(1, 9999), st.sampled_from(("int8", "rtx-4090", "auto", "yes", "010", "a: b", "# x"))),
    )
)
def test_what_is_written_is_what_is_read(changes: dict[tuple[str | int, ...], int | str]) -> None:
    """`edited` reads its own result back, and raises where anything else changed."""
    text = edited(FILE, changes)
    assert edited(text, changes) == text
    kept = [line for line in FILE.splitlines() if "#" in line and "tensor" not in line]
    assert [line for line in text.splitlines() if line in kept] == kept


@pytest.mark.parametrize(
    "text",
    [
        "base: &cards {count: 1}\nhardware: *cards\n",
        "base: &b\n  args: {a: 1}\nengine:\n  <<: *b\n  version: 0.33.0\n",
    ],
)
def test_what_others_share_is_not_changed_behind_their_backs(text: str) -> None:
    with pytest.raises(NotEdited):
        edited(text, {COUNT: 2} if "hardware" in text else {SEQS: 2})
