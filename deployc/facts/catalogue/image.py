"""What image and wheel of a version are made for, besides what `behaviour.py` reads of the Dockerfile; LoRA's ladder.

`cuda_compat`: how the image comes to NVIDIA's library for newer CUDA on older drivers: "always", "asked" (by the
variable VLLM_ENABLE_CUDA_COMPATIBILITY) or "" (not at all). `wheel_cuda`: the CUDA that the wheel on the package index
is built for. `lora_ranks`: what --max-lora-rank may be, rising.
"""

from __future__ import annotations

import ast
import re

from deployc.facts.catalogue.hints import literal_values
from deployc.facts.catalogue.source import Located, Read, Tree, Unreadable

DOCKERFILES = ("docker/Dockerfile", "Dockerfile")  # the second up to 0.8.2
SWITCH = "VLLM_ENABLE_CUDA_COMPATIBILITY"
_ALWAYS = r"(?m)^(?!\s*#).*/compat/.*$"


def image_facts(tree: Tree) -> dict[str, Read]:
    """Each by its name in `EngineFacts`; of a wheel without those of the image. Raises Unreadable."""
    found = {"wheel_cuda": _wheel_cuda(tree), "lora_ranks": _lora_ranks(tree)}
    return found if tree.wheel else found | {"cuda_compat": _cuda_compat(tree)}


def _cuda_compat(tree: Tree) -> Read:
    path = next((p for p in DOCKERFILES if (tree.root / p).is_file()), DOCKERFILES[0])
    text = tree.text(path)
    for how, pattern in (("asked", rf"(?m)^ENV {SWITCH}=0"), ("always", _ALWAYS)):
        if found := re.search(pattern, text):
            return how, f"{path}:{_line(text, found.start())}"
    return "", path


def _wheel_cuda(tree: Tree) -> Read:
    """A constant of setup.py, later the default of a variable of its own, in one form or another."""
    for path, pattern in (
        ("setup.py", r'^MAIN_CUDA_VERSION = "(\d+\.\d+)"'),
        ("vllm/envs.py", r'VLLM_MAIN_CUDA_VERSION", ""\)\.lower\(\)\s*or "(\d+\.\d+)"'),
        ("vllm/envs.py", r'"VLLM_MAIN_CUDA_VERSION", "(\d+\.\d+)"\)'),
    ):
        text = tree.text(path) if path != "setup.py" or not tree.wheel else ""
        if found := re.search(pattern, text, re.M):
            return found[1], f"{path}:{_line(text, found.start(1))}"
    raise Unreadable("neither setup.py nor vllm/envs.py says which CUDA the wheel is built for")


def _lora_ranks(tree: Tree) -> Read:
    """The Literal of its field, or the tuple that its class checks against."""
    found = tree.definition("vllm.config", "LoRAConfig")
    ladder = found.module.names.get("MaxLoRARanks")
    if isinstance(ladder, ast.expr):
        place = f"{found.module.path}:{ladder.lineno}"
        return sorted(literal_values([ladder], found.module)), place
    for node in ast.walk(found.node):
        match node:
            case ast.Assign(targets=[ast.Name(id="possible_max_ranks")], value=ast.Tuple() as listed):
                return sorted(ast.literal_eval(listed)), _at(found, listed)
    raise Unreadable(f"{found.place}: no ladder of ranks")


def _at(where: Located, node: ast.expr) -> str:
    return f"{where.module.path}:{node.lineno}"


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
