"""The scanner's complaints in words that say what to type."""

from __future__ import annotations

from ruamel.yaml.error import MarkedYAMLError

from deployc.diagnostics import Diagnostic, Span, error
from deployc.source.lines import Lines

_INDENT = ("A line is indented unlike its neighbours.", "indent the keys of one map by the same number of spaces")
_UNCLOSED = ("A list or map in brackets is not closed, or a comma is missing.", "add the `]`, `}` or `,`")
_WORDS: tuple[tuple[str, str, str], ...] = (
    ("a directive", "A line that begins with `%` is a directive, and this one cannot be followed.",
     "remove the line: YAML 1.2 is meant"),
    ("incompatible YAML", "The directive asks for another YAML than 1.2.", "remove the line: YAML 1.2 is meant"),
    ("cannot start any token", "This character cannot begin a value.", "put the text in quotes"),
    ("mapping values are not allowed", "A `:` makes a key here, where none can stand.",
     "check the indentation, and put a value that holds `: ` in quotes"),
    ("could not find expected ':'", "This is neither `key: value` nor `- item`.",
     "write a colon and a space after the key"),
    ("sequence entries are not allowed", "A list item cannot stand here.", "put `- item` on lines of their own"),
    ("expected <block end>", *_INDENT),
    ("unindent does not match", *_INDENT),
    ("unexpected end of stream", "A quote is opened here and never closed.", "close the quote"),
    ("found unknown escape", "A backslash in double quotes begins an escape that YAML does not know.",
     "write \\\\ for a backslash, or use single quotes"),
    ("expected escape sequence", "A backslash in double quotes begins an escape that is not complete.",
     "write \\\\ for a backslash, or use single quotes"),
    ("expected ',' or", *_UNCLOSED),
    ("the node content", *_UNCLOSED),
    ("tag handle", "A tag that is not declared.", "remove the tag"),
    ("block scalar", "The header of a text block (`|` or `>`) is wrong.", "write `|` or `>` alone, the text below it"),
    ("alphabetic or numeric", "An anchor or alias (`&`, `*`) without a name.", "put the text in quotes, or name it"),
)  # fmt: skip
_BEGINNING = ("unexpected end of stream", "expected ',' or", "could not find expected ':'")
"""Where the place that matters is the one at which the trouble began."""


def syntax(wrong: MarkedYAMLError, lines: Lines, last: Span) -> Diagnostic:
    """DC102 with what is meant, in place of the scanner's own words where we know better ones.

    `last` is what was read before, for a complaint about what does not come any more.
    """
    problem = str(wrong.problem or "").strip()
    mark = wrong.problem_mark or wrong.context_mark
    if wrong.context_mark is not None and any(known in problem for known in _BEGINNING):
        mark = wrong.context_mark
    span = lines.span(mark.line, mark.column, mark.column + 1) if mark else lines.span(0, 0)
    if not span.excerpt:
        span = last
    if "'\\t'" in problem or "\t" in span.excerpt[: span.column]:
        return _diagnostic("A tab stands where YAML wants spaces.", "indent with spaces", span)
    said = f"{problem} {wrong.context or ''}"
    if "${" in span.excerpt and "flow" in said:
        return _diagnostic("Inside [ ] and { }, the braces of `${…}` are YAML's own.", 'quote it: "${NAME}"', span)
    for known, detail, fix in _WORDS:
        if known in said:
            return _diagnostic(detail, fix, span)
    fix = "check the indentation, the colons and the quotes of this line and the one above"
    return _diagnostic(f"{problem[:1].upper()}{problem[1:]}.", fix, span)


def gave_up(span: Span) -> Diagnostic:
    """DC102 where the parser stumbled without saying over what."""
    return _diagnostic("What stands after this cannot be read.", "check the quotes, escapes and directives", span)


def _diagnostic(detail: str, fix: str, span: Span) -> Diagnostic:
    return error("DC102", "this is not valid YAML", detail, fix, span)
