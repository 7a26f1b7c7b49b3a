"""READ under any text: a Document or diagnostics with a place, never an exception."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import example, given, settings
from hypothesis import strategies as st

from deployc.source import load

PIECES = st.sampled_from(
    ["a", "b: ", "- ", "\n", "\n  ", "\t", " ", ": ", "[", "]", "{", "}", ", ", "&a ", "*a", "<<: ", "!", "!!str ", "'",
     '"', "|\n", ">", "#", "---\n", "...\n", "%YAML 1.2\n", "? ", "${A}", "${", "}", "$$", ":-", "：", "，", "“", "”",
     "　", "－", "\\", "\\x", "1", ".nan", "0x", "null", "~", "extends: ", "x-y: ", "\u2028", "\ufeff", "\x00", "é"]
)  # fmt: skip
TEXT = st.lists(PIECES, max_size=40).map("".join) | st.text(max_size=200)


def check(data: bytes, env: dict[str, str]) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "deploy.yaml"
        file.write_bytes(data)
        document, report = load(file, env)
    assert document is not None or report.errors
    for diagnostic in report:
        assert diagnostic.at is not None and diagnostic.detail and diagnostic.fix
        assert diagnostic.at.line >= 1 and 1 <= diagnostic.at.column < diagnostic.at.end_column
        assert "100" <= diagnostic.code.removeprefix("DC") <= "149"
    if document is not None:
        repr(document.values).encode()  # no lone surrogates


@settings(max_examples=300, deadline=None)
@given(TEXT, st.dictionaries(st.sampled_from(["A", "B"]), st.text(max_size=20)))
@example("a: &a [*a]", {})
@example("? &a\n: *a", {})
@example("&a a: *a\n", {})
@example("!<tag:yaml.org,2002:str> a: 1\n", {})
def test_any_text(text: str, env: dict[str, str]) -> None:
    check(text.encode("utf-8", "surrogatepass"), env)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=100))
def test_any_bytes(data: bytes) -> None:
    check(data, {})


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=60))
def test_what_a_variable_holds_is_never_expanded_again(value: str) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "deploy.yaml"
        file.write_text("a: 'x${V}y'\n")
        document, report = load(file, {"V": value, "A": "expanded"})
    assert document is not None
    assert report.errors or document.values["a"] == f"x{value}y"
