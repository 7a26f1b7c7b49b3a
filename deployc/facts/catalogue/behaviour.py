"""What a version of vLLM does by default, read from its sources: each value with the file and line it stands in.

Reads 0.16.0 to 0.33.0. Sources of another shape raise Unreadable: the reader is mended, not the value.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable

from deployc.facts.catalogue.batch import batch_defaults
from deployc.facts.catalogue.hints import class_fields
from deployc.facts.catalogue.runner import runners
from deployc.facts.catalogue.source import Located, Read, Tree, Unreadable, body, method
from deployc.facts.catalogue.values import Reader


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
    return {name: read(tree) for name, read in readers.items()} | runners(tree)


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
    """A constant of the cache's configuration, or what the CUDA platform puts where none was given."""
    cls = tree.definition("vllm.config.cache", "CacheConfig")
    for node in body(cls):
        match node:
            case ast.AnnAssign(target=ast.Name(id="DEFAULT_BLOCK_SIZE"), value=ast.Constant(value=int(size))):
                return size, f"{cls.module.path}:{node.lineno}"
    return _block_size_of(tree.definition("vllm.platforms.cuda", "CudaPlatformBase"))


_UNGIVEN = {
    "not cache_config.user_specified_block_size",
    "cache_config.block_size is None",
    "cache_config and cache_config.block_size is None",
}


def _block_size_of(platform: Located) -> tuple[int, str]:
    """What a platform sets where no block size was given."""
    for node in ast.walk(platform.node):
        if isinstance(node, ast.If) and ast.unparse(node.test) in _UNGIVEN:
            sizes = [n.value for n in ast.walk(node.body[0]) if isinstance(n, ast.Constant)]
            if len(sizes) == 1 and isinstance(sizes[0], int):
                return sizes[0], f"{platform.module.path}:{node.body[0].lineno}"
    raise Unreadable(f"{platform.place}: no default block size")


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


_POOL = {
    "requested_cpu_memory - consumed_memory": "gpu_memory_utilization",
    "cache_config.cpu_kvcache_space_bytes": "half_of_node",
}
"""How the CPU worker finds its pool where VLLM_CPU_KVCACHE_SPACE is not set: utilization x memory of the NUMA node less
what the worker holds by then, or half of that memory (`DEFAULT_CPU_MEM_UTILIZATION`)."""


def _cpu(tree: Tree) -> Read:
    """The CPU backend: tokens of a KV block, 16-bit types, and what VLLM_CPU_KVCACHE_SPACE means.

    The variable is a whole number of `kv_space_unit` bytes; `kv_space_unset` says what takes its place (`_POOL`).
    """
    platform = tree.definition("vllm.platforms.cpu", "CpuPlatform")
    text = ast.unparse(platform.node)
    worker = ast.unparse(tree.definition("vllm.v1.worker.cpu_worker", "CPUWorker").node)
    unset = next((word for part, word in _POOL.items() if part in worker), None)
    halved = unset == "half_of_node" and "DEFAULT_CPU_MEM_UTILIZATION = 0.5" not in text
    if unset is None or halved or not re.search(r"kv_cache_space \*=? GiB_bytes", text):
        raise Unreadable(f"{platform.place}: VLLM_CPU_KVCACHE_SPACE is not read as this reader knows it")
    dtypes = method(platform, "supported_dtypes")
    last = body(dtypes[1])[-1] if dtypes else None
    if not isinstance(last, ast.Return):
        raise Unreadable(f"{platform.place}: supported_dtypes ends in no plain list")
    return {
        "block_size": _block_size_of(platform)[0],
        "dtypes": re.findall(r"torch\.(\w+)", ast.unparse(last)),
        "kv_space_unit": 2**30,
        "kv_space_unset": unset,
    }, platform.place
