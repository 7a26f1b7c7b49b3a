"""YAML text -> tree. ruamel.yaml turns text into events; we build, place and bound what comes of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from deployc.diagnostics import Diagnostic, Report, Span, error
from deployc.source.lines import Lines
from deployc.source.scalar import resolved
from deployc.source.syntax import gave_up, syntax
from deployc.source.tree import Map, Node, Scalar, Seq

MAX_NODES = 20_000
MAX_DEPTH = 64
_CORE = ("str", "int", "float", "bool", "null", "map", "seq")


@dataclass(slots=True)
class Parsed:
    """The tree, None after errors; `quoted` are the index ranges of the text that YAML does not look into."""

    root: Node | None = None
    quoted: list[tuple[int, int]] = field(default_factory=list)


def parse(text: str, lines: Lines, report: Report) -> Parsed:
    """The tree of a text that holds one YAML document, as far as it can be built (DC102-DC111, DC117, DC119)."""
    builder = _Builder(text, lines, report)
    try:
        builder.parsed.root = builder.document()
    except MarkedYAMLError as wrong:
        report.add(syntax(wrong, lines, builder.place()))
    except _Stop as stop:
        report.add(stop.diagnostic)
    except (ValueError, IndexError, KeyError, AttributeError, TypeError, OverflowError, RecursionError):
        report.add(gave_up(builder.place()))
    return builder.parsed


class _Stop(Exception):
    """What follows cannot be made sense of: the rest of the file is not looked at."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        self.diagnostic = diagnostic


class _Builder:
    """Builds nodes from events, one method a kind of node. Aliases become copies, so that every node stands once."""

    def __init__(self, text: str, lines: Lines, report: Report) -> None:
        self.events: Iterator[Any] = YAML(typ="safe", pure=True).parse(text)
        self.lines, self.report = lines, report
        self.parsed = Parsed()
        self.anchors: dict[str, Node | None] = {}  # None while the node is still being built
        self.count = self.depth = 0
        self.last: Any = None

    def document(self) -> Node | None:
        """The one document of the stream; DC104 where there is none, DC117 where there are more."""
        root: Node | None = None
        documents = 0
        while (event := self.next()) is not None:
            if isinstance(event, DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise _Stop(_several(self.place()))
                root = self.node(self.next())
        if documents == 0 or (isinstance(root, Scalar) and root.plain and not root.text):
            raise _Stop(_empty(self.lines.span(0, 0)))
        return root

    def next(self) -> Any:
        """The next event, None after the last."""
        event = next(self.events, None)
        self.last = event or self.last
        return event

    def place(self) -> Span:
        """Where the parser stands."""
        mark = self.last.start_mark if self.last is not None else None
        return self.lines.span(mark.line, mark.column) if mark else self.lines.span(0, 0)

    def span(self, first: Any, last: Any = None) -> Span:
        """Where a value stands, from its first event to its last; of one that runs over lines, its first line."""
        start, end = first.start_mark, (last or first).end_mark
        return self.lines.span(start.line, start.column, end.column if end.line == start.line else None)

    def node(self, event: Any) -> Node:
        """The node that begins with this event, all of its events taken."""
        self.counted(1, event)
        if isinstance(event, AliasEvent):
            return self.alias(event)
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _Stop(_deep(self.span(event)))
        node = self.built(event)
        self.depth -= 1
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        return node

    def counted(self, nodes: int, event: Any) -> None:
        self.count += nodes
        if self.count > MAX_NODES:
            raise _Stop(_many(self.span(event)))

    def built(self, event: Any) -> Node:
        known = _tag(event)
        if known is None:
            self.report.add(_foreign_tag(str(event.tag), self.span(event)))
        if isinstance(event, ScalarEvent):
            return self.scalar(event, as_text=known in ("str", "!"), resolve=known not in ("str", "!", ""))
        if isinstance(event, SequenceStartEvent):
            items = []
            while not isinstance(inner := self.next(), SequenceEndEvent):
                items.append(self.node(inner))
            return Seq(self.span(event, inner), items)
        return self.map(event)

    def scalar(self, event: ScalarEvent, as_text: bool, resolve: bool) -> Scalar:
        span = self.span(event)
        unquoted = event.style in (None, "")
        if not unquoted:
            self.parsed.quoted.append((event.start_mark.index, event.end_mark.index))
        text, plain = str(event.value), (unquoted or resolve) and not as_text
        if any("\ud800" <= c <= "\udfff" or c == "\0" for c in text):
            self.report.add(_unusable(span))
            text = "".join("\ufffd" if "\ud800" <= c <= "\udfff" or c == "\0" else c for c in text)
        if not plain:
            return Scalar(span, text, False, text)
        try:
            return Scalar(span, text, True, resolved(text))
        except ValueError as wrong:
            self.report.add(unusable_number(text, wrong, span))
            return Scalar(span, text, True, text)

    def alias(self, event: AliasEvent) -> Node:
        if event.anchor not in self.anchors:
            raise _Stop(_no_anchor(str(event.anchor), self.span(event)))
        node = self.anchors[event.anchor]
        if node is None:
            raise _Stop(_endless(self.span(event)))
        copy = self.copied(node, event, self.depth + 1)
        copy.span = self.span(event)
        return copy

    def copied(self, node: Node, event: Any, depth: int) -> Node:
        self.counted(1, event)
        if depth > MAX_DEPTH:
            raise _Stop(_deep(self.span(event)))
        if isinstance(node, Map):
            entries = {key: self.copied(value, event, depth + 1) for key, value in node.entries.items()}
            return Map(node.span, entries, dict(node.keys))
        if isinstance(node, Seq):
            return Seq(node.span, [self.copied(item, event, depth + 1) for item in node.items])
        return Scalar(node.span, node.text, node.plain, node.value)

    def map(self, start: Any) -> Map:
        result = Map(self.span(start), {}, {})  # as far as its bracket; the end is put in when it is known
        inherited: list[Map] | None = None
        while not isinstance(event := self.next(), MappingEndEvent):
            merges = isinstance(event, ScalarEvent) and event.value == "<<" and event.style in (None, "")
            place = self.span(event)
            name = "<<" if merges else self.key(event)
            value = self.node(self.next())
            if isinstance(value, Scalar) and not value.text and value.plain:
                value.span = place  # of nothing after the colon, the parser gives the place of what comes next
            if merges and inherited is None:
                inherited, result.keys["<<"] = self.sources(value), place
            elif name is not None and name in result.keys:
                self.report.add(_twice(name, result.keys[name], place))
            elif name is not None:
                result.entries[name], result.keys[name] = value, place
        result.span = self.span(start, event)
        result.keys.pop("<<", None)
        for source in (
            inherited or []
        ):  # a key of the map itself wins over what `<<` brings, the first source over later
            for name, entry in source.entries.items():
                if name not in result.entries:
                    result.entries[name], result.keys[name] = entry, source.keys[name]
        return result

    def key(self, event: Any) -> str | None:
        """The text of a key, or None after DC110."""
        span = self.span(event)
        node = self.node(event)
        if isinstance(node, Scalar) and isinstance(node.value, str) and not isinstance(event, AliasEvent):
            return node.value
        self.report.add(_not_text(node, span))
        return None

    def sources(self, value: Node) -> list[Map]:
        items = value.items if isinstance(value, Seq) else [value]
        for item in items:
            if not isinstance(item, Map):
                self.report.add(_no_map(item.span))
        return [item for item in items if isinstance(item, Map)]


def _tag(event: Any) -> str | None:
    """The short name of a core tag, "" for none, "!" for the bare one; None for anything else."""
    tag = str(event.tag or "")
    short = tag.removeprefix("tag:yaml.org,2002:")
    return short if tag in ("", "!") or (short != tag and short in _CORE) else None


def unusable_number(text: str, wrong: ValueError, span: Span) -> Diagnostic:
    """DC109: a number that no setting can take."""
    shown = text if len(text) <= 40 else text[:40] + "…"
    return error("DC109", "a number cannot be used", f"`{shown}` {wrong}.", "write a finite number", span)


def _empty(span: Span) -> Diagnostic:
    detail = "It holds no keys, only blank lines or comments."
    fix = "write version, name, model, hardware, workload and engine; `deployc schema` has them all"
    return error("DC104", "the file is empty", detail, fix, span)


def _several(span: Span) -> Diagnostic:
    detail = "A second YAML document begins here (`---`); one file holds one deployment."
    return error("DC117", "the file holds several documents", detail, "give each a file; they share by `extends`", span)


def _many(span: Span) -> Diagnostic:
    detail = f"More than {MAX_NODES:,} values, every alias put in; a deploy.yaml has some dozens."
    return error("DC106", "the file holds too many values", detail, "write fewer, or nest fewer aliases", span)


def _deep(span: Span) -> Diagnostic:
    return error("DC103", "the file is nested too deeply", f"Deeper than {MAX_DEPTH} levels.", "write it flatter", span)


def _endless(span: Span) -> Diagnostic:
    return error("DC107", "an alias contains itself", "It would never end.", "remove the alias here", span)


def _no_anchor(name: str, span: Span) -> Diagnostic:
    fix = f"write `&{name}` before the value that is meant, above this line; or quote the text if it is no alias"
    return error("DC119", "an alias without an anchor", f"`*{name}` names nothing that stands above.", fix, span)


def _foreign_tag(tag: str, span: Span) -> Diagnostic:
    detail = f"`{tag[:80]}` asks for a type of its own; nothing here is ever made or run from a tag."
    return error("DC108", "a YAML tag is not supported here", detail, "remove the tag", span)


def _twice(name: str, first: Span, span: Span) -> Diagnostic:
    detail = f"`{name}` stands on line {first.line} already, and again on line {span.line}."
    fix = "name both maps after one `<<:`, as [*first, *second]" if name == "<<" else "keep one of the two"
    return error("DC105", "a key is written twice", detail, fix, span)


def _not_text(node: Node, span: Span) -> Diagnostic:
    if not isinstance(node, Scalar):
        return error("DC110", "a key is not text", "A list or a map cannot be a key.", "correct the key", span)
    if isinstance(node.value, str):
        return error("DC110", "a key is not text", "An alias cannot be a key.", "write the key out", span)
    shown = f"`{node.text}`" if node.text else "An empty key"
    kind = {bool: "true or false", type(None): "nothing (null)"}.get(type(node.value), "a number")
    return error("DC110", "a key is not text", f"{shown} is {kind} for YAML.", f'put it in quotes: "{node.text}"', span)


def _no_map(span: Span) -> Diagnostic:
    detail = "`<<` takes the alias of a map, or a list of such aliases."
    return error("DC111", "`<<` merges something that is no map", detail, "name a map after `<<:`", span)


def _unusable(span: Span) -> Diagnostic:
    detail = "It holds NUL or half of a character (a lone surrogate), which no file or command line can carry."
    return error("DC112", "a control character stands in the file", detail, "remove the escape", span)
