"""Merging LoRA adapters: W + Σ weight · scale · B A in float32, rounded once. Runs in the build interpreter."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class Pair:
    """One adapter's change of one module: A [r, in], B [out, r] in float32; `factor` is weight · scale."""

    a: torch.Tensor
    b: torch.Tensor
    factor: float


@dataclass(frozen=True, slots=True)
class Low:
    """The change of one tensor by all adapters' pairs."""

    pairs: Sequence[Pair]
    whole: bool = False

    def rows(self, base: torch.Tensor | None, first: int, last: int) -> torch.Tensor:
        """Rows [first, last) of W + Σ factor · B A, float32."""
        if base is None:
            raise ValueError("a pair changes a tensor that the base has")
        for pair in self.pairs:
            base = torch.addmm(base, pair.b[first:last], pair.a, alpha=pair.factor)
        return base


def scale(config: Mapping[str, Any], module: str) -> float:
    """alpha / r, or alpha / sqrt(r) for rsLoRA (peft, `LoraLayer.update_layer`), by `rank_pattern`, `alpha_pattern`."""
    rank = _pattern(config, "rank_pattern", module, config["r"])
    alpha = _pattern(config, "alpha_pattern", module, config["lora_alpha"])
    return float(alpha / math.sqrt(rank)) if config.get("use_rslora") else float(alpha / rank)


def _pattern(config: Mapping[str, Any], key: str, module: str, otherwise: Any) -> Any:
    """peft's `get_pattern_key`: the first pattern that is the end of the module's name."""
    for pattern, value in (config.get(key) or {}).items():
        if re.match(rf"(.*\.)?({pattern})$", module):
            return value
    return otherwise
