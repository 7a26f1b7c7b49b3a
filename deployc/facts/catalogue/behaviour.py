"""What a version of vLLM does by default, read from its sources: each value with the file and line it stands in.

Written for 0.25.1, 0.32.0 and 0.33.0. Sources of another shape raise Unreadable: the reader is mended, not the value.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from typing import Any

from deployc.facts.catalogue.batch import batch_defaults
from deployc.facts.catalogue.hints import class_fields
from deployc.facts.catalogue.source import Located, Tree, Unreadable, body, method
from deployc.facts.catalogue.values import Reader

Read = tuple[Any, str]
"""A value and the place it was read at."""

RUNNERS = {"V1": "vllm.v1.worker.gpu_model_runner", "V2": "vllm.v1.worker.gpu.model_runner"}


def behaviours(tree: Tree) -> dict[str, Read]:
    """Every behaviour by its name in `EngineFacts`. Raises Unreadable naming what was not found."""
    readers: dict[str, Callable[[Tree], Read]] = {
        "gpu_memory_utilization": _gpu_memory_utilization,
        "batch_defaults": batch_defaults,
        "block_size": _block_size,
        "cuda": _cuda,
        "compute_capabilities": _compute_capabilities,
        "entrypoint": _entrypoint,
        "rope_key": _rope_key,
        "cpu": _cpu,
    }
    return {name: read(tree) for name, read in readers.items()} | _runners(tree)


def _gpu_memory_utilization(tree: Tree) -> Read:
    field = next(
        f
        for f in class_fields(tree.definition("vllm.config.cache", "CacheConfig"))
        if f.name == "gpu_memory_utilization"
    )
    value = Reader(tree, frozenset()).default(field)
    if not isinstance(value, float):
        raise Unreadable(f"{field.owner.path}: gpu_memory_utilization has no plain default")
    return value, f"{field.owner.path}:{field.annotation.lineno}"


def _block_size(tree: Tree) -> Read:
    cls = tree.definition("vllm.config.cache", "CacheConfig")
    for node in body(cls):
        match node:
            case ast.AnnAssign(target=ast.Name(id="DEFAULT_BLOCK_SIZE"), value=ast.Constant(value=int(size))):
                return size, f"{cls.module.path}:{node.lineno}"
    raise Unreadable(f"{cls.place} has no DEFAULT_BLOCK_SIZE")


def _runners(tree: Tree) -> dict[str, Read]:
    """The default model runner of dense and of mixture-of-experts models, and whether each estimates CUDA graphs."""
    config = tree.definition("vllm.config.vllm", "VllmConfig")
    chooser = method(config, "_is_default_v2_model_runner_model")
    switch = method(config, "use_v2_model_runner")
    if switch is None or (chooser is not None and "not model_config.is_moe" not in ast.unparse(chooser[1].node)):
        raise Unreadable(f"{config.place}: the choice between model runners is not one this reader knows")
    read: dict[str, Read] = {"model_runner": ("V2", switch[1].place), "graphs_in_budget": _graphs_in_budget(tree, "V2")}
    if chooser is None:
        return read
    exceptions = tree.definition("vllm.config.vllm", "DEFAULT_V2_MODEL_RUNNER_ARCHITECTURES")
    names = [n.value for n in ast.walk(exceptions.node) if isinstance(n, ast.Constant)]
    return read | {
        "moe_model_runner": ("V1", chooser[1].place),
        "moe_graphs_in_budget": _graphs_in_budget(tree, "V1"),
        "moe_exceptions": (sorted(map(str, names)), exceptions.place),
    }


def _graphs_in_budget(tree: Tree, runner: str) -> Read:
    """Whether the KV budget subtracts an estimate of the CUDA graphs: the worker must, and the runner must make one."""
    worker = method(tree.definition("vllm.v1.worker.gpu_worker", "Worker"), "determine_available_memory")
    estimate = method(tree.definition(RUNNERS[runner], "GPUModelRunner"), "profile_cudagraph_memory")
    if worker is None:
        raise Unreadable("the GPU worker has no determine_available_memory")
    subtracted = "- cudagraph_memory_estimate_applied" in ast.unparse(worker[1].node)
    wanted = "os.getenv('VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS', '1')" in ast.unparse(
        tree.definition("vllm.envs", "environment_variables").node
    )
    place = estimate[1].place if estimate else worker[1].place
    return subtracted and wanted and estimate is not None and not _returns_zero(estimate[1]), place


def _returns_zero(function: Located) -> bool:
    statements = body(function)
    return len(statements) == 1 and ast.unparse(statements[0]) == "return 0"


def _docker(tree: Tree, pattern: str, what: str) -> tuple[str, str]:
    text = tree.text("docker/Dockerfile")
    found = re.search(pattern, text, re.M)
    if found is None:
        raise Unreadable(f"docker/Dockerfile does not say {what}")
    return found[1], f"docker/Dockerfile:{text.count(chr(10), 0, found.start(1)) + 1}"


def _cuda(tree: Tree) -> Read:
    version, place = _docker(tree, r"^ARG CUDA_VERSION=(\S+)", "which CUDA it takes")
    return ".".join(version.split(".")[:2]), place


def _compute_capabilities(tree: Tree) -> Read:
    listed, place = _docker(tree, r"^ARG torch_cuda_arch_list='([^']+)'", "which compute capabilities it builds for")
    return [word.removesuffix("+PTX") for word in listed.split()], place


def _entrypoint(tree: Tree) -> Read:
    """Of the image's own stage, `vllm-openai`."""
    stage = r"^FROM \S+ AS vllm-openai$(?:\n(?!FROM ).*)*?\nENTRYPOINT (\[.*\])"
    words, place = _docker(tree, stage, "what vllm-openai starts")
    return " ".join(json.loads(words)), place


def _rope_key(tree: Tree) -> Read:
    found = tree.definition("vllm.transformers_utils.config", "patch_rope_parameters")
    text = ast.unparse(found.node)
    if ".rope_parameters" not in text and "'rope_parameters'" not in text:  # the attribute, not the function's name
        raise Unreadable(f"{found.place} does not patch rope_parameters")
    return "rope_parameters", found.place


def _cpu(tree: Tree) -> Read:
    """The CPU backend: tokens of a KV block, 16-bit types, and what VLLM_CPU_KVCACHE_SPACE means.

    The variable is a whole number of `kv_space_unit` bytes and beats `--kv-cache-memory-bytes`; unset, the pool is
    utilization x memory of the node less what the worker holds by then.
    """
    platform = tree.definition("vllm.platforms.cpu", "CpuPlatform")
    text = ast.unparse(platform.node)
    worker = ast.unparse(tree.definition("vllm.v1.worker.cpu_worker", "CPUWorker").node)
    if (
        "kv_cache_memory_bytes = kv_cache_space * GiB_bytes" not in text
        or "requested_cpu_memory - consumed_memory" not in worker
    ):
        raise Unreadable(f"{platform.place}: VLLM_CPU_KVCACHE_SPACE is not read as this reader knows it")
    dtypes = method(platform, "supported_dtypes")
    last = body(dtypes[1])[-1] if dtypes else None
    if not isinstance(last, ast.Return):
        raise Unreadable(f"{platform.place}: supported_dtypes ends in no plain list")
    return {
        "block_size": _cpu_block_size(platform),
        "dtypes": re.findall(r"torch\.(\w+)", ast.unparse(last)),
        "kv_space_unit": 2**30,
        "kv_space_unset": "gpu_memory_utilization",
    }, platform.place


def _cpu_block_size(platform: Located) -> int:
    for node in ast.walk(platform.node):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "not cache_config.user_specified_block_size":
            sizes = [n.value for n in ast.walk(node.body[0]) if isinstance(n, ast.Constant)]
            if len(sizes) == 1 and isinstance(sizes[0], int):
                return sizes[0]
    raise Unreadable(f"{platform.place}: no default block size")
