"""Python with `LLM(…)` or `…EngineArgs(…)` -> `FoundLaunch`es: the call's plain literals, read by AST, never run."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from deployc.diagnostics import Span
from deployc.source.lines import Lines
from deployc.types.launch import FoundFlag, FoundLaunch, Piece

CLASSES = ("LLM", "EngineArgs", "AsyncEngineArgs")
FROM_ARGS = ("from_engine_args", "from_cli_args")
_LONGEST = 2**19


def tree(text: str) -> ast.Module | None:
    """The syntax tree, None where the text is no Python."""
    if len(text) > _LONGEST:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def called(node: ast.Call) -> str:
    """The last name of what is called: "LLM" of `vllm.LLM(…)`."""
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


class Nodes:
    """Where a node of the tree stands: its columns are bytes of UTF-8, a span's are characters."""

    def __init__(self, text: str, lines: Lines) -> None:
        self._text = text.splitlines() or [""]
        self._lines = lines

    def span(self, node: ast.expr | ast.stmt) -> Span:
        """The first line of a node."""
        line = self._text[node.lineno - 1].encode(errors="replace") if node.lineno <= len(self._text) else b""
        end = node.end_col_offset if node.end_lineno == node.lineno else None
        column = len(line[: node.col_offset].decode(errors="replace"))
        stop = None if end is None else len(line[:end].decode(errors="replace"))
        return self._lines.span(node.lineno - 1, column, stop)


def launches(module: ast.Module, nodes: Nodes) -> Iterator[FoundLaunch]:
    """One for each call of an engine class that names what it serves, and for each dict that stands in for one."""
    constants = constants_of(module)
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and called(node) in CLASSES:
            pairs = [(k.arg, k.value) for k in node.keywords if k.arg]
            first = node.args[0] if node.args else None
            yield _launch(node, first, [*pairs, *_unpacked(node, constants)], constants, nodes)
        elif isinstance(node, ast.Call) and (given := handed_dict(node, constants)) is not None:
            yield _launch(given, None, _entries(given), constants, nodes)


def handed_dict(node: ast.Call, constants: Mapping[str, ast.expr]) -> ast.Dict | ast.Call | None:
    """The dict that is handed to `from_engine_args`, by itself or by the name that it was given; None for others."""
    if called(node) not in FROM_ARGS:
        return None
    for written in (*node.args, *(k.value for k in node.keywords)):
        value = constants.get(written.id, written) if isinstance(written, ast.Name) else written
        if isinstance(value, ast.Dict) or (isinstance(value, ast.Call) and called(value) == "dict"):
            return value
    return None


def _launch(
    node: ast.expr,
    first: ast.expr | None,
    pairs: list[tuple[str, ast.expr]],
    constants: Mapping[str, ast.expr],
    nodes: Nodes,
) -> FoundLaunch:
    model, flags, opaque = None, [], []
    for name, value in ([("model", first)] if first is not None else []) + pairs:
        at = nodes.span(value)
        known, literal = literal_of(value, constants)
        if not known:
            opaque.append(Piece(name, at))
        elif name == "model":
            model = Piece(str(literal), at)
        else:
            flags.append(FoundFlag(name, literal, at))
    return FoundLaunch(source="python", at=nodes.span(node), model=model, flags=tuple(flags), stray=tuple(opaque))


def literal_of(node: ast.expr, constants: Mapping[str, ast.expr]) -> tuple[bool, Any]:
    """Whether a value is a plain literal, or the name of one, and that value."""
    if isinstance(node, ast.Name) and node.id in constants:
        node = constants[node.id]
    try:
        return True, ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False, None


def constants_of(module: ast.Module) -> dict[str, ast.expr]:
    """Names that are given one value in the whole file."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node.value)
    return {name: values[0] for name, values in found.items() if len(values) == 1}


def _unpacked(node: ast.Call, constants: Mapping[str, ast.expr]) -> list[tuple[str, ast.expr]]:
    found: list[tuple[str, ast.expr]] = []
    for keyword in node.keywords:
        value = keyword.value
        if keyword.arg is None:
            value = constants.get(value.id, value) if isinstance(value, ast.Name) else value
            found.extend(_entries(value) if isinstance(value, ast.Dict | ast.Call) else [])
    return found


def _entries(node: ast.expr) -> list[tuple[str, ast.expr]]:
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return [(key.value, value) for key, value in pairs if isinstance(key, ast.Constant) and type(key.value) is str]
    return [(k.arg, k.value) for k in node.keywords if k.arg] if isinstance(node, ast.Call) else []
