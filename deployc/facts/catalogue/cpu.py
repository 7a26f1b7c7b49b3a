"""What a version of vLLM does on a CPU, read from its sources: the KV pool, its blocks, the 16-bit types."""

from __future__ import annotations

import ast
import re

from deployc.facts.catalogue.source import Located, Read, Tree, Unreadable, body, method

_POOL = {
    "requested_cpu_memory - consumed_memory": "gpu_memory_utilization",
    "cache_config.cpu_kvcache_space_bytes": "",
}
"""How the CPU worker finds its pool where VLLM_CPU_KVCACHE_SPACE is not set: utilization x memory of the NUMA node less
what the worker holds by then, or what the platform says: half of that memory, and up to 0.12 4 GiB."""
_PLATFORM = {"DEFAULT_CPU_MEM_UTILIZATION = 0.5": "half_of_node", "= 4 * GiB_bytes": "four_gib"}
_WORKERS = ("vllm.v1.worker.cpu_worker", "vllm.worker.cpu_worker")  # the second, of the engine before V1, up to 0.9.1
_ALL_DTYPES = ["bfloat16", "float16", "float32"]


def cpu(tree: Tree) -> Read:
    """The CPU backend: tokens of a KV block, 16-bit types, and what VLLM_CPU_KVCACHE_SPACE means.

    The variable is a whole number of `kv_space_unit` bytes; `kv_space_unset` says what takes its place (`_POOL`).
    """
    platform = tree.definition("vllm.platforms.cpu", "CpuPlatform")
    text = ast.unparse(platform.node)
    module = next((name for name in _WORKERS if tree.module(name)), _WORKERS[0])
    worker = ast.unparse(tree.definition(module, "CPUWorker").node)
    unset = next((word for part, word in _POOL.items() if part in worker), None)
    if unset == "":
        unset = next((word for part, word in _PLATFORM.items() if part in text), None)
    if unset is None or not re.search(r"kv_cache_space \*=? GiB_bytes", text):
        raise Unreadable(f"{platform.place}: VLLM_CPU_KVCACHE_SPACE is not read as this reader knows it")
    return {
        "block_size": block_size_of(platform)[0],
        "dtypes": _dtypes(platform),
        "kv_space_unit": 2**30,
        "kv_space_unset": unset,
    }, platform.place


def _dtypes(platform: Located) -> list[str]:
    """Up to 0.8 no platform names its types, and none is refused."""
    found = method(platform, "supported_dtypes")
    if found is None:
        interface = platform.module.tree.text("vllm/platforms/interface.py")
        if "supported_dtypes" in interface:
            raise Unreadable(f"{platform.place}: the types are not this platform's own")
        return _ALL_DTYPES
    last = body(found[1])[-1]
    if not isinstance(last, ast.Return):
        raise Unreadable(f"{platform.place}: supported_dtypes ends in no plain list")
    return re.findall(r"torch\.(\w+)", ast.unparse(last))


_UNGIVEN = {
    "not cache_config.user_specified_block_size",
    "cache_config.block_size is None",
    "cache_config and cache_config.block_size is None",
}


def block_size_of(platform: Located) -> tuple[int, str]:
    """What a platform sets where no block size was given; where that hangs on IPEX, whether its packages hold it."""
    for node in ast.walk(platform.node):
        if isinstance(node, ast.If) and ast.unparse(node.test) in _UNGIVEN:
            sizes = [n.value for n in ast.walk(_held(node.body[0], platform)) if isinstance(n, ast.Constant)]
            if len(sizes) == 1 and isinstance(sizes[0], int):
                return sizes[0], f"{platform.module.path}:{node.body[0].lineno}"
    raise Unreadable(f"{platform.place}: no default block size")


_IPEX = ("ipex_available", "ipex_avaliable")


def _held(statement: ast.stmt, platform: Located) -> ast.AST:
    """Of `a if ipex_available else b` the part that holds, by what requirements/cpu.txt asks for."""
    match statement:
        case ast.Assign(value=ast.IfExp(test=ast.Name(id=name), body=there, orelse=lacking)) if name in _IPEX:
            asked = platform.module.tree.text("requirements/cpu.txt")
            return there if "intel_extension_for_pytorch" in asked else lacking
    return statement
