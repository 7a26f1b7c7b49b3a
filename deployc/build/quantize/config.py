"""`quantization_config` of config.json, as compressed-tensors writes it of each scheme."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deployc.types.scheme import Scheme

FORMATS = {"fp8": "float-quantized", "int8": "int-quantized", "packed": "pack-quantized"}
"""Kind of a scheme -> CompressionFormat (compressed_tensors/config)."""


def quantization_config(scheme: Scheme, alone: Sequence[str]) -> dict[str, Any]:
    """What versions 0.17 to 0.20 understand alike of a scheme, `alone` the modules at 16 bit (names, or "re:…").

    Fields that only one of those versions knows are left to their defaults (block_structure, scale_dtype, zp_dtype,
    observer, actorder, sparsity_config, transform_config); so is `version`, which names that library.
    """
    number = {"num_bits": scheme.bits, "type": "float" if scheme.kind == "fp8" else "int"}
    grouped = {"strategy": "group", "group_size": scheme.group} if scheme.group else _plain("channel")
    activations = {**number, **_plain("token"), "symmetric": True, "dynamic": True}
    group = {
        "targets": ["Linear"],
        "weights": {**number, **grouped, "symmetric": scheme.symmetric, "dynamic": False},
        "input_activations": activations if scheme.kind in ("fp8", "int8") else None,
        "output_activations": None,
        "format": FORMATS[scheme.kind],
    }
    return {
        "config_groups": {"group_0": group},
        "quant_method": "compressed-tensors",
        "kv_cache_scheme": None,
        "format": FORMATS[scheme.kind],
        "quantization_status": "compressed",
        "global_compression_ratio": None,
        "ignore": list(alone),
    }


def _plain(strategy: str) -> dict[str, Any]:
    return {"strategy": strategy, "group_size": None}
