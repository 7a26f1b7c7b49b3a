"""Which model runner serves which model by default, and whose CUDA graphs the KV budget pays for.

`model_runners` are ordered rules, the fields of `types.runner.RunnerRule`. What a plain `vllm serve` of a generating
model on an NVIDIA card never is, such as a pooling model or one without Triton, is left out: `_NEVER`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

from deployc.facts.catalogue.source import Located, Read, Tree, Unreadable, body, method

RUNNERS = {"V1": "vllm.v1.worker.gpu_model_runner", "V2": "vllm.v1.worker.gpu.model_runner"}
_SWITCH, _ESTIMATE = "VLLM_USE_V2_MODEL_RUNNER", "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS"
_ARCHITECTURES = "DEFAULT_V2_MODEL_RUNNER_ARCHITECTURES"
_MODEL = {
    f"any((arch in {_ARCHITECTURES} for arch in architectures))": "listed",
    "any((arch in default_architectures for arch in architectures))": "listed",
    "getattr(model_config, 'is_hybrid', False)": "hybrid",
    "getattr(model_config, 'is_attention_free', False)": "attention_free",
    "model_config.is_moe": "experts",
    "model_config.is_quantized": "quantized",
}
_METHOD = re.compile(r"self\.speculative_config is not None and self\.speculative_config\.method == '(\w+)'")
_NEVER = {
    "use_v2_model_runner is not None",  # the environment variable is not set
    "model_config is None",
    "model_config.runner_type != 'generate'",
    "self.model_config is not None and self.model_config.is_diffusion",
    "model_config is not None and current_platform.is_rocm()",
    "not HAS_TRITON",
    "not HAS_TRITON and (not current_platform.is_unspecified())",
    "self.parallel_config.prefill_context_parallel_size > 1",
    "self.attention_config.hisparse_config is not None",
    "getattr(self, 'watermark_config', None) is not None",
    "self._dflash_needs_multi_kv_group()",
    "self._is_dflash2_draft()",
}


def runners(tree: Tree) -> dict[str, Read]:
    """`model_runners`, `v2_architectures` where there is such a list, and the runners that have `graphs_in_budget`."""
    read = {"model_runners": _model_runners(tree), "graphs_in_budget": _graphs_in_budget(tree)}
    if any("listed" in rule for rule in read["model_runners"][0]):
        listed = tree.definition("vllm.config.vllm", _ARCHITECTURES)
        names = [n.value for n in ast.walk(listed.node) if isinstance(n, ast.Constant)]
        read["v2_architectures"] = sorted(map(str, names)), listed.place
    return read


def _environment(tree: Tree, name: str) -> tuple[str | None, str] | None:
    """An environment variable's default and where it stands; None where the version has no such variable."""
    known = tree.definition("vllm.envs", "environment_variables")
    for key, value in zip(known.node.keys, known.node.values, strict=True) if isinstance(known.node, ast.Dict) else ():
        if isinstance(key, ast.Constant) and key.value == name:
            for call in ast.walk(value):
                match call:
                    case ast.Call(func=ast.Attribute(attr="getenv"), args=[_, ast.Constant(value=default)]):
                        return default if default is None else str(default), f"{known.module.path}:{key.lineno}"
            raise Unreadable(f"{known.module.path}:{key.lineno}: no plain default of {name}")
    return None


def _model_runners(tree: Tree) -> Read:
    """From the variable where it has a default, else from `VllmConfig.use_v2_model_runner`."""
    variable = _environment(tree, _SWITCH)
    if variable is None and tree.module(RUNNERS["V2"]) is None:  # up to 0.11
        return [{"runner": "V1"}], tree.definition(RUNNERS["V1"], "GPUModelRunner").place
    if variable is None:
        raise Unreadable(f"vllm/envs.py has no {_SWITCH}")
    if variable[0] is not None:
        return [{"runner": "V2" if int(variable[0]) else "V1"}], variable[1]
    config = tree.definition("vllm.config.vllm", "VllmConfig")
    switch = _of(config, "use_v2_model_runner")
    return list(_rules(switch, config)), switch.place


def _of(cls: Located, name: str) -> Located:
    found = method(cls, name)
    if found is None:
        raise Unreadable(f"{cls.place} has no {name}")
    return found[1]


def _rules(where: Located, config: Located) -> Iterator[dict[str, Any]]:
    """The statements of a function that returns whether the runner is V2, as rules."""
    local: dict[str, ast.expr] = {}
    default: list[dict[str, Any]] = []
    for node in body(where):
        match node:
            case ast.If(test=test, orelse=[]) if ast.unparse(test) in _NEVER:
                continue
            case ast.If(test=ast.Name(id="unsupported"), orelse=[]):
                yield from _unsupported(_of(config, "_get_v2_model_runner_unsupported_features"))
            case ast.If(test=test, orelse=[]) if ast.unparse(test) == "not self._is_default_v2_model_runner_model()":
                default = list(_rules(_of(config, "_is_default_v2_model_runner_model"), config))
            case ast.If(test=test, body=[ast.Return(value=ast.Constant(value=bool(v2)))], orelse=[]):
                yield _condition(test, True, local, where) | {"runner": "V2" if v2 else "V1"}
            case ast.Return(value=ast.expr() as value):
                yield from default or _returned(value, local, where)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                local[name] = value
            case ast.Expr() | ast.ImportFrom():
                continue
            case _:
                raise Unreadable(f"{where.module.path}:{node.lineno}: the choice of a model runner is not known")


def _returned(value: ast.expr, local: Mapping[str, ast.expr], where: Located) -> Iterator[dict[str, Any]]:
    """`return a or not b`: a gives V2, else no b does, else V1. `return not a and b`: a gives V1, no b too, else V2."""
    if isinstance(value, ast.Constant):
        yield {"runner": "V2" if value.value else "V1"}
        return
    parts = value.values if isinstance(value, ast.BoolOp) else [value]
    every = isinstance(value, ast.BoolOp) and isinstance(value.op, ast.And)
    for part in parts:
        yield _condition(part, not every, local, where) | {"runner": "V1" if every else "V2"}
    yield {"runner": "V2" if every else "V1"}


def _condition(test: ast.expr, holds: bool, local: Mapping[str, ast.expr], where: Located) -> dict[str, Any]:
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return _condition(inner, not holds, local, where)
        case ast.BoolOp(op=ast.And(), values=parts) if holds and not _METHOD.fullmatch(ast.unparse(test)):
            return {key: value for part in parts for key, value in _condition(part, True, local, where).items()}
        case ast.Name(id=name) if name in local:
            return _condition(local[name], holds, local, where)
    text = ast.unparse(test)
    if (named := _METHOD.fullmatch(text)) and holds:
        return {"speculative": [named[1]]}
    if text not in _MODEL:
        raise Unreadable(f"{where.module.path}:{test.lineno}: `{text}` is no condition that this reader knows")
    return {_MODEL[text]: holds}


def _unsupported(where: Located) -> Iterator[dict[str, Any]]:
    """Of the features that V2 lacks only the speculative methods: the others take a flag that is off by default."""
    for node in ast.walk(where.node):
        match node:
            case ast.If(
                test=ast.Compare(left=left, ops=[ast.In() | ast.NotIn() as op], comparators=[ast.Tuple(elts=methods)])
            ) if ast.unparse(left) == "speculative_config.method":
                key = "speculative" if isinstance(op, ast.In) else "speculative_not"
                yield {key: [n.value for n in methods if isinstance(n, ast.Constant)], "runner": "V1"}


def _graphs_in_budget(tree: Tree) -> Read:
    """The runners that make an estimate, where the worker subtracts it by default."""
    budget = _of(tree.definition("vllm.v1.worker.gpu_worker", "Worker"), "determine_available_memory")
    text = ast.unparse(budget.node)
    subtracted = "- cudagraph_memory_estimate_applied" in text
    if not subtracted and "cudagraph" in text:
        raise Unreadable(f"{budget.place}: what is done with the CUDA graphs is not known")
    variable = _environment(tree, _ESTIMATE) if subtracted else None
    if variable is None or not int(variable[0] or 0):
        return [], variable[1] if variable else budget.place
    return [runner for runner, module in RUNNERS.items() if _estimates(tree, module)], variable[1]


def _estimates(tree: Tree, module: str) -> bool:
    statements = body(_of(tree.definition(module, "GPUModelRunner"), "profile_cudagraph_memory"))
    return [ast.unparse(node) for node in statements] != ["return 0"]
