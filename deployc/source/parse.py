"""YAML text -> tree. ruamel.yaml scans and composes; we resolve, place and bound what comes out."""

from __future__ import annotations

from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLStreamError
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode
from ruamel.yaml.nodes import Node as Composed
from ruamel.yaml.reader import ReaderError

from deployc.diagnostics import Diagnostic, Report, Span, error
from deployc.source.scalar import resolved
from deployc.source.tree import Map, Node, Scalar, Seq

MAX_NODES = 20_000
MAX_DEPTH = 64
_TAGS = {
    f"tag:yaml.org,2002:{name}"
    for name in ("str", "int", "float", "bool", "null", "map", "seq", "timestamp", "merge", "omap")
}


def parse(text: str, file: str, report: Report) -> Node | None:
    """The tree of one YAML document, or None after diagnostics. An empty document is None with DC104."""
    lines = text.splitlines() or [""]
    yaml = YAML(typ="rt", pure=True)
    try:
        root = yaml.compose(text)
    except MarkedYAMLError as wrong:
        report.add(_syntax(wrong, file, lines))
        return None
    except (ReaderError, YAMLStreamError) as wrong:
        report.add(
            error(
                "DC101",
                "the file is not text that YAML can hold",
                str(wrong),
                "save it as UTF-8 text",
                Span(file, 1, 1, 2, lines[0]),
            )
        )
        return None
    except RecursionError:
        report.add(_nested(Span(file, 1, 1, 2, lines[0]), "deeper than the parser can follow"))
        return None
    except (ValueError, AttributeError, IndexError, KeyError, TypeError) as wrong:  # odd input inside the parser itself
        report.add(
            error(
                "DC102",
                "this is not valid YAML",
                f"The parser could not read it ({wrong}).",
                "look for an unfinished quote, tag or anchor",
                Span(file, 1, 1, 2, lines[0]),
            )
        )
        return None
    if root is None:
        report.add(
            error(
                "DC104",
                "the file is empty",
                "It holds no keys, only blank lines or comments.",
                "start from the example in the README",
                Span(file, 1, 1, 2, lines[0]),
            )
        )
        return None
    return _Builder(file, lines, report).build(root)


class _TooMuch(Exception):
    """The expansion passed its bound: the rest of the file is not looked at."""


class _Builder:
    """Turns composed nodes into ours; aliases are expanded, up to a bound."""

    def __init__(self, file: str, lines: list[str], report: Report) -> None:
        self.file, self.lines, self.report = file, lines, report
        self.count = 0
        self.open: set[int] = set()

    def build(self, root: Composed) -> Node | None:
        try:
            return self.node(root)
        except _TooMuch:
            return None

    def span(self, node: Composed) -> Span:
        """Where a node stands; of a block that runs over lines, its first line."""
        start, end = node.start_mark, node.end_mark
        line = self.lines[start.line] if start.line < len(self.lines) else ""
        stop = end.column if end.line == start.line else len(line.rstrip())
        return Span(self.file, start.line + 1, start.column + 1, max(stop, start.column + 1) + 1, line)

    def node(self, node: Composed) -> Node:
        self.count += 1
        if self.count > MAX_NODES:
            self.report.add(
                error(
                    "DC106",
                    "the aliases expand to too much",
                    f"More than {MAX_NODES:,} values after every alias is put in.",
                    "write the values out, or reuse them with fewer levels of aliases",
                    self.span(node),
                )
            )
            raise _TooMuch
        if id(node) in self.open:
            self.report.add(
                error(
                    "DC107",
                    "an alias contains itself",
                    "It would never end.",
                    "remove the alias inside the value it names",
                    self.span(node),
                )
            )
            raise _TooMuch
        if len(self.open) >= MAX_DEPTH:
            self.report.add(_nested(self.span(node), f"deeper than {MAX_DEPTH} levels"))
            raise _TooMuch
        self.open.add(id(node))
        try:
            return self._converted(node)
        finally:
            self.open.discard(id(node))

    def _converted(self, node: Composed) -> Node:
        tag = str(node.tag or "")
        if tag and tag not in _TAGS:
            self.report.add(
                error(
                    "DC108",
                    "a YAML tag is not supported here",
                    f"{tag!r} asks for a type of its own.",
                    "remove the tag: values are plain text, numbers, lists and maps",
                    self.span(node),
                )
            )
        if isinstance(node, MappingNode):
            return self._map(node)
        if isinstance(node, SequenceNode):
            return Seq(self.span(node), [self.node(item) for item in node.value])
        assert isinstance(node, ScalarNode)  # noqa: S101  (the parser's three kinds of node)
        return self._scalar(node)

    def _scalar(self, node: ScalarNode) -> Scalar:
        span, is_plain = self.span(node), node.style in (None, "")
        value: Any = node.value
        if is_plain:
            try:
                value = resolved(node.value)
            except ValueError as wrong:
                self.report.add(
                    error(
                        "DC109",
                        "a number cannot be used",
                        f"{node.value[:80]!r} {wrong}.",
                        "write a finite number",
                        span,
                    )
                )
        return Scalar(span, node.value, is_plain, value)

    def _map(self, node: MappingNode) -> Map:
        result = Map(self.span(node), {}, {})
        inherited: list[Map] = []
        for key, value in node.value:
            if isinstance(key, ScalarNode) and key.value == "<<" and key.style in (None, ""):
                inherited.extend(self._merge_sources(value))
                continue
            name = self._key(key)
            if name is None:
                continue
            if name in result.entries:
                first = result.keys[name]
                self.report.add(
                    error(
                        "DC105",
                        "a key is written twice",
                        f"{name!r} stands on line {first.line} already; YAML allows it once.",
                        "keep one of the two",
                        self.span(key),
                    )
                )
                continue
            result.keys[name] = self.span(key)
            result.entries[name] = self.node(value)
        for source in inherited:  # a key of the map itself wins over what `<<` brings, the first source over later ones
            for name, entry in source.entries.items():
                if name not in result.entries:
                    result.entries[name], result.keys[name] = entry, source.keys[name]
        return result

    def _key(self, key: Composed) -> str | None:
        span = self.span(key)
        if isinstance(key, ScalarNode):
            if key.style not in (None, "") or isinstance(self._scalar(key).value, str):
                return str(key.value)
            detail = f"{key.value!r} is not text for YAML."
        else:
            detail = "A list or a map cannot be a key."
        self.report.add(error("DC110", "a key is not text", detail, "put the key in quotes, or correct it", span))
        return None

    def _merge_sources(self, value: Composed) -> list[Map]:
        found = self.node(value)
        sources = found.items if isinstance(found, Seq) else [found]
        maps = [source for source in sources if isinstance(source, Map)]
        if len(maps) < len(sources):
            self.report.add(
                error(
                    "DC111",
                    "`<<` merges something that is no map",
                    "`<<` takes an alias of a map, or a list of them.",
                    "name a map after `<<:`",
                    self.span(value),
                )
            )
        return maps


def _nested(span: Span, why: str) -> Diagnostic:
    return error("DC103", "the file is nested too deeply", f"{why[0].upper()}{why[1:]}.", "write it flatter", span)


def _syntax(wrong: MarkedYAMLError, file: str, lines: list[str]) -> Diagnostic:
    mark = wrong.problem_mark or wrong.context_mark
    line = min(mark.line, len(lines) - 1) if mark else 0
    column = mark.column if mark and mark.line == line else 0
    excerpt = lines[line] if lines else ""
    problem, context = str(wrong.problem or "").strip(), str(wrong.context or "").strip()
    detail = f"{problem[:1].upper()}{problem[1:]}" + (f" ({context})" if context else "") + "."
    fix = "check the indentation, the colons and the quotes of this line and the one above"
    if "\t" in excerpt[: column + 1] or "'\\t'" in problem:
        detail, fix = "A tab stands where YAML wants spaces.", "indent with spaces"
    elif "expected a single document" in problem or "but found another document" in problem:
        detail, fix = "A second document begins here (`---`).", "keep one document a file; overlays go by `extends`"
    elif "undefined alias" in problem:
        fix = "define the anchor (`&name`) before it is used"
    return error("DC102", "this is not valid YAML", detail, fix, Span(file, line + 1, column + 1, column + 2, excerpt))
