"""Rank and scale of a module by adapter_config.json."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any


def rank(config: Mapping[str, Any], module: str) -> int:
    """`r`, or `rank_pattern` where a pattern matches."""
    return int(_pattern(config, "rank_pattern", module, config.get("r", 0)))


def scale(config: Mapping[str, Any], module: str) -> float:
    """alpha / r, or alpha / sqrt(r) for rsLoRA (peft, `LoraLayer.update_layer`), by `rank_pattern`, `alpha_pattern`."""
    r = rank(config, module)
    alpha = _pattern(config, "alpha_pattern", module, config["lora_alpha"])
    return float(alpha / math.sqrt(r)) if config.get("use_rslora") else float(alpha / r)


def _pattern(config: Mapping[str, Any], key: str, module: str, otherwise: Any) -> Any:
    """peft's `get_pattern_key`: the first pattern that is the end of the module's name."""
    for pattern, value in (config.get(key) or {}).items():
        if re.match(rf"(.*\.)?({pattern})$", module):
            return value
    return otherwise
