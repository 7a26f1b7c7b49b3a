"""The defaults of max_num_batched_tokens and max_num_seqs, from `EngineArgs.get_batch_defaults`, as ordered rules.

A rule holds where all its conditions do; the first that holds rules. Keys: `device` ("cpu"), `min_memory` (bytes that
the card has), `not_gpu` (parts of the card's lower-case name), `tokens`, `seqs`, and `times_world_size` where both are
multiplied by tensor x pipeline parallel size. Values are those of the API server, not of the in-process class.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from deployc.facts.catalogue.source import Located, Tree, Unreadable, body, method

_SERVER = "UsageContext.OPENAI_API_SERVER"
_NOT_GPU = {"'a100' not in device_name": "a100", "not is_gb10": "gb10"}


def batch_defaults(tree: Tree) -> tuple[list[dict[str, Any]], str]:
    """The rules and where they stand. Raises Unreadable at a condition that this reader does not know."""
    found = method(tree.definition("vllm.engine.arg_utils", "EngineArgs"), "get_batch_defaults")
    if found is None:
        raise Unreadable("EngineArgs has no get_batch_defaults")
    where = found[1]
    rules: list[dict[str, Any]] = []
    for node in body(where):
        if isinstance(node, ast.If) and "device_memory" in ast.unparse(node.test):
            rules += _by_memory(node, where)
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "current_platform.is_cpu()":
            rules.insert(0, {"device": "cpu"} | _values(node.body, where))
    if len(rules) < 2 or "device" not in rules[0]:
        raise Unreadable(f"{where.place}: no rule for the CPU, or none by memory")
    return rules, where.place


def _by_memory(node: ast.If, where: Located) -> Iterator[dict[str, Any]]:
    yield _conditions(node.test, where) | _values(node.body, where)
    if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        yield from _by_memory(node.orelse[0], where)
    else:
        yield _values(node.orelse, where)


def _conditions(test: ast.expr, where: Located) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for part in test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]:
        text = ast.unparse(part)
        if memory := re.fullmatch(r"device_memory >= (\d+) \* GiB_bytes", text):
            made["min_memory"] = int(memory[1]) * 2**30
        elif text in _NOT_GPU:
            made.setdefault("not_gpu", []).append(_NOT_GPU[text])
        else:
            raise Unreadable(f"{where.module.path}:{part.lineno}: condition `{text}` is not known")
    return made


def _values(statements: list[ast.stmt], where: Located) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for node in statements:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Dict(keys=keys, values=values)):
                given = {ast.unparse(key): value for key, value in zip(keys, values, strict=True) if key}
                made |= _value("tokens" if "tokens" in name else "seqs", given[_SERVER], where)
    if not {"tokens", "seqs"} <= made.keys():
        raise Unreadable(f"{where.place}: a branch without both defaults")
    return made


def _value(key: str, node: ast.expr, where: Located) -> dict[str, Any]:
    match node:
        case ast.Constant(value=int(number)):
            return {key: number}
        case ast.BinOp(left=ast.Constant(value=int(number)), op=ast.Mult(), right=ast.Name(id="world_size")):
            return {key: number, "times_world_size": True}
    raise Unreadable(f"{where.module.path}:{node.lineno}: `{ast.unparse(node)}` is no plain number")
