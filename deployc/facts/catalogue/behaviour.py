"""What a version of vLLM does by default, read from its sources: each value with the file and line it stands in.

Reads 0.8.0 to 0.33.0. Sources of another shape raise Unreadable: the reader is mended, not the value.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable

from deployc.facts.catalogue.batch import batch_defaults
from deployc.facts.catalogue.before_v1 import v1_needs
from deployc.facts.catalogue.cpu import block_size_of, cpu
from deployc.facts.catalogue.hints import class_fields
from deployc.facts.catalogue.runner import runners
from deployc.facts.catalogue.source import Absent, Located, Read, Tree, Unreadable, body
from deployc.facts.catalogue.values import Reader


def behaviours(tree: Tree) -> dict[str, Read]:
    """Every behaviour by its name in `EngineFacts`; of a wheel without those of the image. Raises Unreadable."""
    readers: dict[str, Callable[[Tree], Read]] = {
        "gpu_memory_utilization": _gpu_memory_utilization,
        "batch_defaults": batch_defaults,
        "block_size": _block_size,
        "cuda": _cuda,
        "compute_capabilities": _compute_capabilities,
        "entrypoint": _entrypoint,
        "rope_key": _rope_key,
        "cpu": cpu,
    }
    found = runners(tree) | v1_needs(tree)
    for name, read in readers.items():
        try:
            found[name] = read(tree)
        except Absent:
            if not tree.wheel:
                raise
    return found


def _gpu_memory_utilization(tree: Tree) -> Read:
    """Of the cache's configuration; in 0.8.0 to 0.8.4 that has no defaults, the command line's arguments have them."""
    for cls in (tree.definition("vllm.config", "CacheConfig"), tree.definition(_ARGUMENTS, "EngineArgs")):
        for field in class_fields(cls):
            if field.name == "gpu_memory_utilization":
                value = Reader(tree).default(field)
                if not isinstance(value, float):
                    raise Unreadable(f"{field.owner.path}: gpu_memory_utilization has no plain default")
                return value, f"{field.owner.path}:{field.annotation.lineno}"
    raise Unreadable("vllm/config has no gpu_memory_utilization")


_ARGUMENTS = "vllm.engine.arg_utils"


def _block_size(tree: Tree) -> Read:
    """A constant of the cache's configuration, or what the CUDA platform puts where none was given."""
    cls = tree.definition("vllm.config", "CacheConfig")
    for node in body(cls):
        match node:
            case ast.AnnAssign(target=ast.Name(id="DEFAULT_BLOCK_SIZE"), value=ast.Constant(value=int(size))):
                return size, f"{cls.module.path}:{node.lineno}"
    return block_size_of(tree.definition("vllm.platforms.cuda", "CudaPlatformBase"))


def _docker(tree: Tree, pattern: str, what: str) -> tuple[str, str]:
    path = next((p for p in _DOCKERFILES if (tree.root / p).is_file()), _DOCKERFILES[0])
    text = tree.text(path)
    found = re.search(pattern, text, re.M)
    if found is None:
        raise Unreadable(f"{path} does not say {what}")
    return found[1], f"{path}:{text.count(chr(10), 0, found.start(1)) + 1}"


_DOCKERFILES = ("docker/Dockerfile", "Dockerfile")  # the second up to 0.8.2


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
    """The key of config.json that the engine reads rotary scaling from: renamed in 0.12.0."""
    module = tree.module("vllm.transformers_utils.config")
    for key in ("rope_parameters", "rope_scaling"):
        if module and (node := module.names.get(f"patch_{key}")) is not None:
            found = Located(module, node)
            text = ast.unparse(node)
            if f".{key}" not in text and f"'{key}'" not in text:  # the attribute, not the function's name
                raise Unreadable(f"{found.place} does not patch {key}")
            return key, found.place
    raise Unreadable("vllm/transformers_utils/config.py patches no key of rotary scaling")
