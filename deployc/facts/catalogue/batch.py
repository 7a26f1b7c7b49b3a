"""The defaults of max_num_batched_tokens and max_num_seqs, as `EngineArgs` sets them, as ordered rules.

A rule holds where all its conditions do; the first that holds rules. Keys: `device` ("cpu"), `min_memory` (bytes that
the card has), `gpu` and `not_gpu` (parts of the card's lower-case name, one of which it has, none of which it has),
`tokens`, `seqs`, and `times_world_size` where both are multiplied by tensor x pipeline parallel size. Values are those
of the API server, not of the in-process class, and those of the V1 engine. Up to 0.9.0 V1 does not run on the CPU: the
rule for it is V0's, whose step takes a whole prompt where that is longer than `tokens`. 0.9.1 takes a CPU for a card of
the host's memory.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from deployc.facts.catalogue.before_v1 import cpu_runs_v1
from deployc.facts.catalogue.source import Located, Tree, Unreadable, body, method

_SERVER = "UsageContext.OPENAI_API_SERVER"
_NAMES = re.compile(r"'(\w+)' (not )?in device_name")
_NOT_GPU = {"not is_gb10": "gb10"}
_METHODS = ("get_batch_defaults", "_set_default_args_v1", "_set_default_args")


def batch_defaults(tree: Tree) -> tuple[list[dict[str, Any]], str]:
    """The rules and where they stand. Raises Unreadable at a condition that this reader does not know."""
    arguments = tree.definition("vllm.engine.arg_utils", "EngineArgs")
    found = next((m for name in _METHODS if (m := method(arguments, name)) is not None), None)
    if found is None:
        raise Unreadable(f"{arguments.place} has none of {', '.join(_METHODS)}")
    where = found[1]
    rules: list[dict[str, Any]] = []
    for node in body(where):
        if isinstance(node, ast.If) and re.search(r"\bdevice_(memory|name)\b", ast.unparse(node.test)):
            rules += _by_card(node, where)
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "current_platform.is_cpu()":
            rules.insert(0, {"device": "cpu"} | _values(node.body, where))
    alike = _values(body(where), where)  # what stands beside the branches: the same for every card
    if rules and "device" not in rules[0] and not cpu_runs_v1(tree):
        rules.insert(0, _before_v1(tree))
    elif rules and "device" not in rules[0] and method(arguments, "_set_default_args_v0"):
        rules = [{"device": "cpu"} | {k: v for k, v in r.items() if k not in ("gpu", "not_gpu")} for r in rules] + rules
    rules = [alike | rule for rule in rules]
    if len(rules) < 2 or "device" not in rules[0]:
        raise Unreadable(f"{where.place}: no rule for the CPU, or none by card")
    if any(not {"tokens", "seqs"} <= rule.keys() for rule in rules):
        raise Unreadable(f"{where.place}: a branch without both defaults")
    return rules, where.place


def _before_v1(tree: Tree) -> dict[str, Any]:
    """The CPU's, of `_set_default_args_v0` and `SchedulerConfig`."""
    config = tree.module("vllm.config")
    named = (tree.find(config, name) for name in _TOKENS_V0) if config else ()
    tokens = next((found.node for found in named if isinstance(found, Located)), None)
    v0 = method(tree.definition("vllm.engine.arg_utils", "EngineArgs"), "_set_default_args_v0")
    seqs = re.search(r"self\.max_num_seqs = (\d+)", ast.unparse(v0[1].node)) if v0 else None
    if not isinstance(tokens, ast.Constant) or seqs is None:
        raise Unreadable("vllm/config.py: the defaults of the engine before V1 are not known")
    return {"device": "cpu", "tokens": tokens.value, "seqs": int(seqs[1])}


_TOKENS_V0 = ("_DEFAULT_MAX_NUM_BATCHED_TOKENS", "DEFAULT_MAX_NUM_BATCHED_TOKENS")


def _by_card(node: ast.If, where: Located) -> Iterator[dict[str, Any]]:
    yield _conditions(node.test, where) | _values(node.body, where)
    if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        yield from _by_card(node.orelse[0], where)
    else:
        yield _values(node.orelse, where)


def _conditions(test: ast.expr, where: Located) -> dict[str, Any]:
    made: dict[str, Any] = {}
    either = isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or)
    for part in test.values if isinstance(test, ast.BoolOp) else [test]:
        text = ast.unparse(part)
        name = _NAMES.fullmatch(text)
        if (memory := re.fullmatch(r"device_memory >= (\d+) \* GiB_bytes", text)) and not either:
            made["min_memory"] = int(memory[1]) * 2**30
        elif (excepted := _NOT_GPU.get(text) or (name[1] if name and name[2] else None)) and not either:
            made.setdefault("not_gpu", []).append(excepted)
        elif name and not name[2] and (either or len(made) == 0):
            made.setdefault("gpu", []).append(name[1])
        else:
            raise Unreadable(f"{where.module.path}:{part.lineno}: condition `{text}` is not known")
    return made


def _values(statements: list[ast.stmt], where: Located) -> dict[str, Any]:
    """The defaults that these statements set for the server, whether by usage or for all of them."""
    made: dict[str, Any] = {}
    for node in statements:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in _DEFAULTS:
                if isinstance(value, ast.Dict):
                    given = {ast.unparse(key): each for key, each in zip(value.keys, value.values, strict=True) if key}
                    value = given[_SERVER]
                made |= _value(_DEFAULTS[name], value, where)
    return made


_DEFAULTS = {"default_max_num_batched_tokens": "tokens", "default_max_num_seqs": "seqs"}


def _value(key: str, node: ast.expr, where: Located) -> dict[str, Any]:
    match node:
        case ast.Constant(value=int(number)):
            return {key: number}
        case ast.BinOp(left=ast.Constant(value=int(number)), op=ast.Mult(), right=ast.Name(id="world_size")):
            return {key: number, "times_world_size": True}
    raise Unreadable(f"{where.module.path}:{node.lineno}: `{ast.unparse(node)}` is no plain number")
