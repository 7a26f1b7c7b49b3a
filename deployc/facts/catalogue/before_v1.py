"""What V1 asks for in versions that have the engine before it as well, to which they fall back without it.

Read in `EngineArgs._is_v1_supported_oracle`: what the card, the model and the adapters decide. Flags that do it are
told of as such (profiles/engines/remarks.json).
"""

from __future__ import annotations

import ast
import re
from typing import Any

from deployc.facts.catalogue.source import Located, Read, Tree, Unreadable, body, method

_ORACLE = "_is_v1_supported_oracle"


def v1_needs(tree: Tree) -> dict[str, Read]:
    """{"v1_needs": …}, or nothing where V1 is the only engine.

    Keys, each absent where nothing is asked: `capability` (least one of the card), `dtypes` (that it serves in),
    `quantization` (methods of a checkpoint that it does not know), `kv_fp8` (majors of the capabilities on which the KV
    cache may be fp8), `lora` and `cpu` (false = not by default).
    """
    arguments = tree.definition("vllm.engine.arg_utils", "EngineArgs")
    found = method(arguments, _ORACLE)
    if found is None or method(arguments, "_set_default_args_v0") is None:
        return {}
    oracle, text = found[1], ast.unparse(found[1].node)
    made: dict[str, Any] = {}
    if least := re.search(r"get_device_capability\(\)\.major < (\d+)", text):
        made["capability"] = [int(least[1]), 0]
    for key, name in (("dtypes", "V1_SUPPORTED_DTYPES"), ("quantization", "V1_UNSUPPORTED_QUANT")):
        if listed := re.search(rf"{name} = \[(.*?)\]", text):
            made[key] = [word.removeprefix("torch.").strip("'\"") for word in listed[1].split(", ")]
    made["kv_fp8"] = _kv_fp8(tree, oracle, text)
    if "self.enable_lora and _warn_or_fallback" in text:
        made["lora"] = False
    if not cpu_runs_v1(tree):
        made["cpu"] = False
    return {"v1_needs": (made, oracle.place)}


def cpu_runs_v1(tree: Tree) -> bool:
    """Whether V1 is the default on an x86 CPU: its platform says so itself (0.9.1), or there is no other engine."""
    arguments = tree.definition("vllm.engine.arg_utils", "EngineArgs")
    platform = tree.definition("vllm.platforms.cpu", "CpuPlatform")
    own = any(isinstance(node, ast.FunctionDef) and node.name == "supports_v1" for node in body(platform))
    return own or method(arguments, "_set_default_args_v0") is None


def _kv_fp8(tree: Tree, oracle: Located, text: str) -> list[int]:
    """Up to 0.8.1 none; then where FlashAttention 3 is, which is Hopper's; the platform answers for itself later."""
    if "is_kv_cache_dtype_supported" in text:
        cuda = method(tree.definition("vllm.platforms.cuda", "CudaPlatformBase"), "is_kv_cache_dtype_supported")
        text = ast.unparse(cuda[1].node) if cuda else ""
        blackwell = [10] if "is_device_capability(100)" in text else []
    elif "self.kv_cache_dtype != 'auto'" in text and "flash_attn_supports_fp8" not in text:
        return []
    else:
        blackwell = []
    if "flash_attn_supports_fp8" not in text:
        raise Unreadable(f"{oracle.place}: on which cards the KV cache may be fp8 is not known")
    return [9, *blackwell]
