"""Python around an engine: what its answers, its clients and its memory suffer from. Read by AST, never run."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from deployc.adopt.judge import streams
from deployc.adopt.judge.page import posting_event_source
from deployc.adopt.read.kind import Text
from deployc.adopt.read.snippet import FROM_ARGS, Nodes, called, constants_of, handed_dict, literal_of
from deployc.diagnostics import Diagnostic, error, warning

_ROUTES = frozenset(("get", "post", "put", "patch", "delete", "route", "api_route", "websocket", "websocket_route"))
_KNOWN = frozenset(
    {"StreamingResponse", "JSONResponse", "Response", "FastAPI", "Request", "SamplingParams", "AsyncLLMEngine", "LLM"}
    | {"AsyncEngineArgs", "EngineArgs", "HTTPException", "BaseModel", "uvicorn", "uuid", "json", "asyncio"}
)
_GUARDS = ("httpbearer", "apikey", "api_key", "authorization", "depends(", "x-api-key", "oauth", "verify_token", "jwt")
Handler = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Code:
    """One Python file."""

    module: ast.Module
    nodes: Nodes
    text: str


CodeRule = Callable[[Code], Iterable[Diagnostic]]


def judge_python(source: Text) -> list[Diagnostic]:
    """What every rule has to say of a file that uses vLLM; nothing of one that does not."""
    if source.module is None or "vllm" not in source.text.lower():
        return []
    code = Code(source.module, Nodes(source.text, source.lines), source.text)
    found = [diagnostic for rule in RULES for diagnostic in rule(code)]
    return found + list(posting_event_source(source.text, source.lines))


def one_id_for_all(code: Code) -> Iterator[Diagnostic]:
    """The engine tells requests apart by their id."""
    if not any(_handlers(code.module)):
        return  # a script that asks once
    constants, inside = constants_of(code.module), _inside_functions(code.module)
    for node in _calls(code.module):
        place = {"generate": 2, "encode": 2, "add_request": 0}.get(called(node))
        if place is None or not isinstance(node.func, ast.Attribute):
            continue
        given = next((k.value for k in node.keywords if k.arg == "request_id"), None)
        given = node.args[place] if given is None and len(node.args) > place else given
        known, value = literal_of(given, constants) if given is not None else (False, None)
        if given is not None and known and isinstance(value, str) and id(node) in inside:
            yield warning(
                "DC730",
                "every request has the same id",
                f"request_id is {value!r} in every call. Up to vLLM 0.13 the second of two at once is refused "
                "(`Request id … already running`); from 0.14.0 the engine tells them apart by itself, and an abort by "
                "that id ends all of them.",
                "request_id=str(uuid.uuid4()) for each request",
                code.nodes.span(given),
            )


def engine_of_a_dict(code: Code) -> Iterator[Diagnostic]:
    """`from_engine_args` takes an object of EngineArgs."""
    constants = constants_of(code.module)
    for node in _calls(code.module):
        if handed_dict(node, constants) is not None:
            yield error(
                "DC734",
                "the engine is made from a dict",
                f"{called(node)} asks for an AsyncEngineArgs object; a dict has no create_engine_config and ends in an "
                "AttributeError.",
                f"{called(node)}(AsyncEngineArgs(**engine_args))",
                code.nodes.span(node),
            )


def names_are_imported(code: Code) -> Iterator[Diagnostic]:
    """A name of these libraries that nothing in the file brings in."""
    bound = {alias.asname or alias.name.partition(".")[0] for alias in _aliases(code.module)}
    if "*" in bound:
        return
    bound |= {
        node.id for node in ast.walk(code.module) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    bound |= {n.name for n in ast.walk(code.module) if isinstance(n, Handler | ast.ClassDef)}
    bound |= {node.arg for node in ast.walk(code.module) if isinstance(node, ast.arg)}
    said: set[str] = set()
    for node in ast.walk(code.module):
        if isinstance(node, ast.Name) and node.id in _KNOWN - bound - said:
            said.add(node.id)
            yield error(
                "DC733",
                "a name is not imported",
                f"{node.id} is used and nothing imports it: NameError at the first request that comes here.",
                _IMPORTS.get(node.id, f"import {node.id}"),
                code.nodes.span(node),
            )


_IMPORTS = {
    **{name: f"from fastapi.responses import {name}" for name in ("StreamingResponse", "JSONResponse", "Response")},
    **{name: f"from fastapi import {name}" for name in ("FastAPI", "Request", "HTTPException")},
    **{name: f"from vllm import {name}" for name in ("SamplingParams", "LLM", "AsyncLLMEngine", "AsyncEngineArgs")},
    "EngineArgs": "from vllm import EngineArgs",
    "BaseModel": "from pydantic import BaseModel",
}


def engine_per_request(code: Code) -> Iterator[Diagnostic]:
    """An engine takes the card when it is made."""
    for handler in _handlers(code.module):
        for node in _calls(handler):
            if called(node) in (*FROM_ARGS, "LLM"):
                yield error(
                    "DC737",
                    "a new engine for each request",
                    f"{handler.name} makes an engine whenever it is called: weights are loaded again, and the second "
                    "finds the card's memory taken.",
                    "make it once, when the application starts (lifespan), and keep it",
                    code.nodes.span(node),
                )


def blocked_loop(code: Code) -> Iterator[Diagnostic]:
    """`LLM` is synchronous: while it generates, nothing else of the event loop runs."""
    engines = _bound_to(code.module, "LLM")
    for handler in (node for node in ast.walk(code.module) if isinstance(node, ast.AsyncFunctionDef)):
        for node in _calls(handler):
            owner = node.func.value if isinstance(node.func, ast.Attribute) else None
            name = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
            if name in engines and called(node) in ("generate", "chat", "encode", "embed", "score", "classify"):
                yield warning(
                    "DC736",
                    "the event loop stands still while the engine works",
                    f"{name}.{called(node)} in `async def {handler.name}` is synchronous: requests are answered one "
                    "after the other, and the engine never has more than one in its batch.",
                    "use AsyncLLMEngine, or serve with `vllm serve` and call /v1",
                    code.nodes.span(node),
                )


def tokenizer_again(code: Code) -> Iterator[Diagnostic]:
    """Reading a tokenizer takes a second; in a handler, each request pays it."""
    loops: list[ast.AST] = [node for node in ast.walk(code.module) if isinstance(node, ast.AsyncFor)]
    for place in (*_handlers(code.module), *loops):
        for node in _calls(place):
            owner = node.func.value if isinstance(node.func, ast.Attribute) else None
            loads = called(node) == "from_pretrained" and isinstance(owner, ast.Name) and "Tokenizer" in owner.id
            if loads or (called(node) == "get_tokenizer" and place in loops):
                yield warning(
                    "DC738",
                    "the tokenizer is read again and again",
                    "It is read anew each time this code runs, from the disk or the hub, on the thread that serves.",
                    "read it once beside the engine",
                    code.nodes.span(node),
                )


def open_server(code: Code) -> Iterator[Diagnostic]:
    """A server of one's own has no key unless it is written."""
    if any(word in code.text.lower() for word in _GUARDS):
        return
    for node in _calls(code.module):
        for keyword in node.keywords if called(node) in ("run", "Config") else ():
            if keyword.arg == "host" and isinstance(keyword.value, ast.Constant) and keyword.value.value == "0.0.0.0":  # noqa: S104
                yield warning(
                    "DC739",
                    "a server for everyone",
                    "It listens on every address, and nothing in the file asks for a key.",
                    'host="127.0.0.1" behind a proxy, or a dependency that checks a key',
                    code.nodes.span(keyword.value),
                )


RULES: tuple[CodeRule, ...] = (
    one_id_for_all,
    engine_of_a_dict,
    names_are_imported,
    engine_per_request,
    blocked_loop,
    tokenizer_again,
    open_server,
    lambda code: streams.whole_text_again(code.module, code.nodes, code.text),
    lambda code: streams.media_type(code.module, code.nodes),
)


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _aliases(module: ast.Module) -> Iterator[ast.alias]:
    for node in ast.walk(module):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from node.names


def _handlers(module: ast.Module) -> Iterator[Handler]:
    """Functions that a web framework calls: a decorator of theirs hangs on them."""
    for node in ast.walk(module):
        if isinstance(node, Handler) and any(
            isinstance(d, ast.Call) and isinstance(d.func, ast.Attribute) and d.func.attr in _ROUTES
            for d in node.decorator_list
        ):
            yield node


def _inside_functions(module: ast.Module) -> set[int]:
    functions = (node for node in module.body if isinstance(node, Handler | ast.ClassDef))
    return {id(inner) for function in functions for inner in ast.walk(function)}


def _bound_to(module: ast.Module, name: str) -> set[str]:
    """Names and attributes that are given a call of `name`."""
    found: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and called(node.value) == name:
            found |= {t.id if isinstance(t, ast.Name) else t.attr for t in node.targets
                      if isinstance(t, ast.Name | ast.Attribute)}  # fmt: skip
    return found
