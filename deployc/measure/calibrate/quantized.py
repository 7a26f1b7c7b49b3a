"""A row's word for its quantization -> `quantization_config`, in the usual form of whoever publishes such checkpoints.

The row names the engine's method ("gptq_marlin", "compressed-tensors", "fp8"); the model's name tells the scheme.
Groups of 128 where that divides the layers, the output layer and the towers left at 16 bit: the usual recipes of
llm-compressor and AutoAWQ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from deployc.measure.calibrate.config import Config, Unknown, released
from deployc.measure.calibrate.rows import Row

_TOWERS = ("vision_tower", "vision_model", "visual", "embed_vision", "multi_modal_projector")
_EXPERT_GATES = {"regex": ("re:.*mlp.gate$", "re:.*router.*"), "wildcard": ("*mlp.gate", "*router*"), "part": ()}
_SHAPES = {"regex": "re:.*{}.*", "wildcard": "*{}*", "part": "{}"}
"""How a format writes names: compressed-tensors, modelopt, and methods that look for a part of the name."""
_BY_NAME = (
    ("w8a8", "w8a8"), ("w4a16", "w4a16"), ("w8a16", "w8a16"), ("nvfp4", "nvfp4"), ("mxfp4", "mxfp4"), ("awq", "awq"),
    ("gptq", "gptq"), ("autoround", "auto-round"), ("auto-round", "auto-round"), ("fp8", "fp8"), ("fp4", "nvfp4"),
    ("bnb-4bit", "bnb"),
)  # fmt: skip
_GROUP_32 = ("cyankiwi/",)
"""Publishers whose four-bit checkpoints have groups of 32 (recalled)."""


def quantization_config(row: Row, config: Config) -> tuple[Mapping[str, Any] | None, tuple[str, ...], bool]:
    """The key's value or None, notes, and whether it rests on an assumption. Raises Unknown."""
    if given := config.values.get("quantization_config"):
        return given, (), False
    called = row.model.lower()
    scheme = next((scheme for part, scheme in _BY_NAME if part in called), None)
    method = (row.quantization or "").lower()
    if method and method != "none":
        notes: tuple[str, ...] = ()
        if called.startswith(_GROUP_32) and re.search("4-?bit", called):
            notes = ("four-bit groups of 32, as this publisher has them (recalled)",)
        if left := _recalled(called):
            notes = (f"left at 16 bit besides: {', '.join(left)} (recalled)",)
        return _config(method, scheme, called, config.values), notes, bool(notes)
    if scheme is not None:
        made = _config(scheme, scheme, called, config.values)
        return made, (f"the quantization is not said: {scheme} by the model's name",), True
    if config.released and row.kind != "own starts":
        made = _config(config.released, config.released, called, config.values)
        return made, (f"the quantization is not said: {config.released}, as the model was released",), False
    return None, (), False


def _config(method: str, scheme: str | None, called: str, config: Mapping[str, Any]) -> Mapping[str, Any]:
    method = method.replace("compressed_tensors", "compressed-tensors")
    if method == "compressed-tensors":
        if scheme is None:
            raise Unknown("quantization: compressed-tensors, and the model's name does not tell the scheme")
        made = _COMPRESSED.get(scheme)
    elif method == "modelopt":  # its fp8; four bits are a method of their own
        made = _modelopt_nvfp4 if scheme == "nvfp4" else _modelopt_fp8
    elif method.startswith("fp8") and scheme != "fp8":
        return {"quant_method": "fp8", "activation_scheme": "dynamic"}  # quantized while it is loaded
    else:
        wanted = (scheme or "gptq") if method == "moe_wna16" else method  # experts of either by one kernel
        made = next((make for names, make in _FORMS if wanted in names), None)
    if made is None:
        raise Unknown(f"quantization: {method} is not known{f' with {scheme}' if scheme else ''}")
    return made(called, config)


def _bits(called: str) -> int:
    """Bits of a checkpoint by its name: "GPTQ-Int8", "8bit"; four where it says none."""
    said = re.search(r"int-?([2348])(?![0-9])|(?<![0-9.])([2348])-?bits?|w([2348])a16", called)
    return int(next(filter(None, said.groups()))) if said else 4


def _gptq(called: str, config: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"quant_method": "gptq", "bits": _bits(called), "group_size": _group_size(config), "desc_act": False,
            "sym": True, "lm_head": False}  # fmt: skip


def _awq(called: str, config: Mapping[str, Any]) -> Mapping[str, Any]:
    if called.startswith(_GROUP_32):
        return _packed(4, 32, config, symmetric=False)
    return {"quant_method": "awq", "bits": 4, "group_size": _group_size(config), "zero_point": True, "version": "gemm",
            "modules_to_not_convert": _ignored(config, "part")}  # fmt: skip


def _auto_round(_: str, config: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"quant_method": "auto-round", "bits": 4, "group_size": _group_size(config), "sym": True,
            "packing_format": "auto_round:auto_gptq"}  # fmt: skip


def _mxfp4(_: str, __: Mapping[str, Any]) -> Mapping[str, Any]:
    left = ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]
    return {"quant_method": "mxfp4", "modules_to_not_convert": left}


def _bitsandbytes(_: str, __: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}


def _w8a8(_: str, config: Mapping[str, Any]) -> Mapping[str, Any]:
    return _compressed("int-quantized", {"num_bits": 8, "type": "int", "strategy": "channel"}, True, config)


def _fp8(called: str, config: Mapping[str, Any]) -> Mapping[str, Any]:
    """A checkpoint in fp8: scales a channel (llm-compressor), a tensor (modelopt), or a block of 128 x 128 (others)."""
    if called.startswith(("redhatai/", "neuralmagic/", "nm-testing/")):
        return _compressed_fp8(called, config)
    if called.startswith("nvidia/"):
        return _modelopt_fp8(called, config)
    return {"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3", "weight_block_size": [128, 128],
            "modules_to_not_convert": _ignored(config, "part")}  # fmt: skip


def _compressed_fp8(_: str, config: Mapping[str, Any]) -> Mapping[str, Any]:
    return _compressed("float-quantized", {"num_bits": 8, "type": "float", "strategy": "channel"}, True, config)


def _modelopt_fp8(called: str, config: Mapping[str, Any]) -> Mapping[str, Any]:
    left = [*_ignored(config, "wildcard"), *_recalled(called)]
    return {"quant_method": "modelopt", "quant_algo": "FP8", "ignore": left}


def _nvfp4(called: str, config: Mapping[str, Any]) -> Mapping[str, Any]:
    return (_modelopt_nvfp4 if called.startswith("nvidia/") else _compressed_nvfp4)(called, config)


def _compressed_nvfp4(_: str, config: Mapping[str, Any]) -> Mapping[str, Any]:
    weights = {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}
    return _compressed("nvfp4-pack-quantized", weights, True, config)


def _modelopt_nvfp4(called: str, config: Mapping[str, Any]) -> Mapping[str, Any]:
    left = [*_ignored(config, "wildcard"), *_recalled(called)]
    return {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16, "ignore": left}


def _w4a16(_: str, config: Mapping[str, Any]) -> Mapping[str, Any]:
    return _packed(4, _group_size(config), config)


def _w8a16(_: str, config: Mapping[str, Any]) -> Mapping[str, Any]:
    return _packed(8, _group_size(config), config)


def _scaled_then_packed(called: str, config: Mapping[str, Any]) -> Mapping[str, Any]:
    """AWQ and GPTQ by llm-compressor: how the scales were found; stored as any packed format, AWQ with zero points."""
    if called.startswith(_GROUP_32):
        return _packed(4, 32, config, symmetric=False)
    return _packed(_bits(called), _group_size(config), config, symmetric="awq" not in called)


def _packed(bits: int, group: int, config: Mapping[str, Any], symmetric: bool = True) -> Mapping[str, Any]:
    weights = {"num_bits": bits, "type": "int", "strategy": "group", "group_size": group, "symmetric": symmetric}
    return _compressed("pack-quantized", weights, False, config)


def _compressed(form: str, weights: Mapping[str, Any], activations: bool, config: Mapping[str, Any]) -> dict[str, Any]:
    seen = {"num_bits": weights["num_bits"], "type": weights["type"], "symmetric": True, "strategy": "token",
            "dynamic": True}  # fmt: skip
    group = {"targets": ["Linear"], "weights": {"symmetric": True, "dynamic": False, **weights},
             "input_activations": seen if activations else None}  # fmt: skip
    return {"quant_method": "compressed-tensors", "format": form, "ignore": _ignored(config, "regex"),
            "config_groups": {"group_0": group}, "quantization_status": "compressed"}  # fmt: skip


def _group_size(config: Mapping[str, Any]) -> int:
    """128, or the largest half of it that divides what every linear layer takes in."""
    text = config.get("text_config", config)
    inputs = [text.get(key) for key in ("hidden_size", "intermediate_size", "moe_intermediate_size")]
    whole = [size for size in inputs if isinstance(size, int)]
    return next((size for size in (128, 64, 32) if all(width % size == 0 for width in whole)), 128)


def _ignored(config: Mapping[str, Any], form: str) -> list[str]:
    """What is left at 16 bit: the output layer, towers and their projector, the routers of experts."""
    text = config.get("text_config", config)
    experts = any(text.get(key) for key in ("num_experts", "num_local_experts", "n_routed_experts"))
    towers = [_SHAPES[form].format(name) for name in _TOWERS] if "vision_config" in config else []
    return ["lm_head", *towers, *(_EXPERT_GATES[form] if experts else ())]


def _recalled(called: str) -> list[str]:
    """What one publisher's files of one family leave at 16 bit besides (profiles/calibration/families.json)."""
    return [name for of, names in released()["left_at_16_bit"].items() if called.startswith(of) for name in names]


_Make = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]
_COMPRESSED: Mapping[str, _Make] = {
    "w8a8": _w8a8, "w4a16": _w4a16, "w8a16": _w8a16, "fp8": _compressed_fp8, "nvfp4": _compressed_nvfp4,
    "awq": _scaled_then_packed, "gptq": _scaled_then_packed,
}  # fmt: skip
_FORMS: Sequence[tuple[Sequence[str], _Make]] = (
    (("fp8", "fp8_e4m3"), _fp8),
    (("gptq", "gptq_marlin", "auto_gptq"), _gptq),
    (("awq", "awq_marlin", "awq-4bit", "auto_awq"), _awq),
    (("auto-round", "autoround", "inc"), _auto_round),
    (("nvfp4",), _nvfp4),
    (("modelopt_fp4",), _modelopt_nvfp4),
    (("mxfp4", "gpt_oss_mxfp4"), _mxfp4),
    (("bnb", "bitsandbytes"), _bitsandbytes),
    (("w8a8", "int8"), _w8a8),
    (("w4a16", "int4"), _w4a16),
    (("w8a16",), _w8a16),
)
"""By the words of rows and names; the engine calls Marlin's kernels a method of their own."""
