"""The errors of SHAPE: one summary a code, and how a value that cannot be taken says so."""

from __future__ import annotations

from typing import Any, NamedTuple

from deployc.diagnostics import Diagnostic, Span, error


class Kind(NamedTuple):
    """A code and its constant summary."""

    code: str
    summary: str


MISSING = Kind("DC150", "a required key is missing")
UNKNOWN = Kind("DC151", "an unknown key")
TYPE = Kind("DC152", "a value has the wrong type")
QUANTITY = Kind("DC153", "a quantity cannot be read")
RANGE = Kind("DC154", "a value is out of range")
LABEL = Kind("DC155", "a name is not a DNS label")
CHOICE = Kind("DC156", "a value is not one of those allowed")
LOAD = Kind("DC160", "the load is not stated once")
TWICE = Kind("DC161", "two adapters have one name")
PERCENTILE = Kind("DC162", "a 95th percentile lies below the mean")
REFERENCE = Kind("DC163", "a secret's reference is not well formed")
LITERAL = Kind("DC164", "a secret is typed as a literal")
FLAG = Kind("DC165", "an engine flag is not well formed")
TEXT = Kind("DC166", "a text cannot be passed on")
CARDS = Kind("DC167", "the number of cards is not the same everywhere")
RELEASE = Kind("DC168", "the engine's version is not a release")
ADDRESS = Kind("DC169", "an address cannot be used")
NOT_YET = Kind("DC170", "not supported yet")
PREFIX = Kind("DC171", "the shared prefix is longer than the prompt")
MORE = Kind("DC172", "more mistakes than are shown")
NO_HUB = Kind("DC173", "a folder needs no hub")


class Wrong(ValueError):
    """A value cannot be taken: `detail` continues "`workload.concurrency`: …", `fix` says what to write."""

    def __init__(self, kind: Kind, detail: str, fix: str) -> None:
        self.kind, self.detail, self.fix = kind, detail, fix
        super().__init__(f"{detail}; {fix}")


def fault(kind: Kind, detail: str, fix: str, at: Span | None) -> Diagnostic:
    """An error of this kind."""
    return error(*kind, detail, fix, at)


def said(value: Any) -> str:
    """A value in words, as the user sees it in the file."""
    if value is None:
        return "nothing (null)"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str):
        return f"the text {value!r}" if len(value) <= 60 else f"the text {value[:60]!r}…"
    return f"the number {value}"


def expected(what: str, value: Any, fix: str = "") -> Wrong:
    """DC152: another type was wanted."""
    return Wrong(TYPE, f"{what} is expected, not {said(value)}", fix or as_typed(value) or "correct the value")


def as_typed(value: Any) -> str:
    """What to type in place of full-width digits and letters; "" where there are none."""
    if not isinstance(value, str) or value.isascii():
        return ""
    from unicodedata import normalize

    plain = normalize("NFKC", value)
    return f"type {plain}, without full-width characters" if plain != value and plain.isascii() else ""
