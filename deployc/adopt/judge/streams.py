"""Python that streams an engine's answers: text sent again with every chunk, and the type that it is sent as."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from deployc.adopt.read.snippet import Nodes, called
from deployc.diagnostics import Diagnostic, warning

_STREAMED = ("text/event-stream", "application/x-ndjson", "application/json", "application/jsonl", "application/ndjson")


def whole_text_again(module: ast.Module, nodes: Nodes, text: str) -> Iterator[Diagnostic]:
    """`output.text` grows with every step: sent as it is, chunk n holds all chunks before it."""
    if "DELTA" in text:  # SamplingParams(output_kind=RequestOutputKind.DELTA): then it is the new part alone
        return
    for loop in (node for node in ast.walk(module) if isinstance(node, ast.AsyncFor | ast.For)):
        if not _over_results(loop, module):
            continue
        outputs = _loop_names(loop)
        names = _grown(loop, outputs)
        for node in ast.walk(loop):
            if isinstance(node, ast.Yield) and node.value is not None and _holds(node.value, names, outputs):
                yield warning(
                    "DC731",
                    "the whole text is sent with each chunk",
                    "output.text holds everything generated so far: a client that appends chunks shows the answer's "
                    "beginning again and again, and n tokens cost n² characters.",
                    "send what is new, text[len(sent):], or SamplingParams(output_kind=RequestOutputKind.DELTA)",
                    nodes.span(node.value),
                )


def _over_results(loop: ast.For | ast.AsyncFor, module: ast.Module) -> bool:
    """Whether it runs over `generate(…)`, or over a name that was given its result."""
    source = loop.iter
    if isinstance(source, ast.Name):
        given = [
            node.value for node in ast.walk(module)
            if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == source.id for t in node.targets)
        ]  # fmt: skip
        source = given[-1] if given else source
    source = source.value if isinstance(source, ast.Await) else source
    return isinstance(source, ast.Call) and called(source) == "generate" and isinstance(loop, ast.AsyncFor)


def _loop_names(loop: ast.AST) -> set[str]:
    """Names that run over `.outputs` inside, in loops and comprehensions."""
    found: set[str] = set()
    for node in ast.walk(loop):
        if isinstance(node, ast.For | ast.comprehension) and isinstance(node.target, ast.Name) and _outputs(node.iter):
            found.add(node.target.id)
    return found


def _outputs(tree: ast.AST) -> bool:
    return any(isinstance(inner, ast.Attribute) and inner.attr == "outputs" for inner in ast.walk(tree))


def _grown(loop: ast.AST, outputs: set[str]) -> set[str]:
    """Names that hold the whole text, handed on by assignments until no more join."""
    names: set[str] = set()
    assigned = [node for node in ast.walk(loop) if isinstance(node, ast.Assign)]
    for _ in range(len(assigned)):
        more = {
            target.id
            for node in assigned if _holds(node.value, names, outputs)
            for target in node.targets if isinstance(target, ast.Name)
        }  # fmt: skip
        if more <= names:
            break
        names |= more
    return names


def _holds(node: ast.AST, names: set[str], outputs: set[str]) -> bool:
    """Whether a value holds the whole text: not where it is sliced, measured or compared."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        return False
    if isinstance(node, ast.Compare) or (
        isinstance(node, ast.Call) and called(node) in ("len", "removeprefix", "replace")
    ):
        return False
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.Attribute) and node.attr == "text":
        base = node.value
        return _outputs(base) or (isinstance(base, ast.Name) and base.id in outputs)
    return any(_holds(child, names, outputs) for child in ast.iter_child_nodes(node))


def media_type(module: ast.Module, nodes: Nodes) -> Iterator[Diagnostic]:
    """Clients and proxies pass a stream on at once where its type says that it is one."""
    for node in ast.walk(module):
        if not isinstance(node, ast.Call) or called(node) != "StreamingResponse":
            continue
        given = next((k.value for k in node.keywords if k.arg == "media_type"), None)
        given = node.args[3] if given is None and len(node.args) > 3 else given
        kind = given.value if isinstance(given, ast.Constant) else None
        if given is not None and (not isinstance(kind, str) or kind.partition(";")[0].strip() in _STREAMED):
            continue
        said = f"is {kind!r}" if kind else "is not given"
        yield warning(
            "DC732",
            "a stream goes out under a type that is none",
            f"media_type {said}: EventSource refuses it, and proxies and browsers may hold text back.",
            'media_type="text/event-stream", each chunk as "data: …\\n\\n"',
            nodes.span(given if given is not None else node),
        )
