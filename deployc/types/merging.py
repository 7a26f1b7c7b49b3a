"""What an adapter makes of a model's tensors, decided from names, shapes and adapter_config.json alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["low", "add", "base", "whole", "rows"]
"""low: scale · B A is added. add: scale · a vector is. base: the tensor that the adapter was trained on in place of the
model's own (embeddings that were resized). whole: what a whole trained module became. rows: what single rows became."""

BY_PEFT = frozenset({
    "ADALORA", "BOFT", "C3A", "FOURIERFT", "HRA", "IA3", "LN_TUNING", "LOHA", "LOKR", "MISS", "OFT", "RANDLORA",
    "ROAD", "SHIRA", "VBLORA", "VERA",
})  # fmt: skip
"""`peft_type`s that peft itself merges (their layers have `merge` in peft 0.21.2), with the whole model in memory."""

CHANGES_BASE = frozenset({"pissa", "olora"})
"""`init_lora_weights` with which peft takes the first B A out of the base's weights, computed from them alone;
it does that again before it merges (peft 0.21.2, `LoraLayer.pissa_init`, `olora_init`)."""


@dataclass(frozen=True, slots=True)
class Part:
    """One change of one tensor of the model by one adapter; `of` names the adapter's own tensors.

    low: A [r, in], B [out, r] and, with DoRA, the magnitude [out]; the model's tensor is [out, in], or [in, out] where
    `transposed`. With `experts` A is [experts · r, in] and B [out, r · experts], each expert's rows of A one after the
    other, its columns of B `experts` apart (peft, `ParamWrapper.get_delta_weight`); the model's tensor is that of
    `expert`, of which it is the `outputs` [first, end) of B's rows, or all of them stacked [experts, …] where None.
    rows: `index` says which, in the order of the adapter's tensor.
    """

    tensor: str
    kind: Kind
    of: tuple[str, ...]
    factor: float = 1.0  # alpha / r, or alpha / sqrt(r)
    transposed: bool = False
    experts: int = 0
    expert: int | None = None
    outputs: tuple[int, int] | None = None
    index: tuple[int, ...] = ()


def part(values: Mapping[str, Any]) -> Part:
    """A part as `dataclasses.asdict` and JSON left it."""
    lists = {key: tuple(values[key]) for key in ("of", "index")}
    outputs = values["outputs"]
    return Part(**{**values, **lists, "outputs": None if outputs is None else (outputs[0], outputs[1])})


def is_streamed(config: Mapping[str, Any]) -> bool:
    """Whether an adapter is merged tensor by tensor; else peft merges it, with the whole model in memory."""
    init = config.get("init_lora_weights")
    return config.get("peft_type", "LORA") == "LORA" and not (isinstance(init, str) and init.lower() in CHANGES_BASE)
