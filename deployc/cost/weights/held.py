"""The parameters of a model as the engine holds them on one rank: divided, joined, widened, padded.

What differs from the checkpoint, by parameter (vLLM 0.25.1, vllm/model_executor/layers/…):

- 16- and 32-bit tensors: the served dtype (models/*.py, `set_default_torch_dtype`). A_log, e_score_correction_bias:
  float32 (mamba/, ../models/deepseek_v2.py).
- Scales of fp8 and int8, of a tensor, row or block: float32 (quantization/fp8.py,
  quantization/compressed_tensors/schemes/compressed_tensors_w8a8_{fp8,int8}.py). Of packed integers: the served dtype
  (…_wNa16.py, quantization/auto_{gptq,awq}.py).
- Zero points: as they are packed, but 16 bit each with Machete, which multiplies them by the scales (compute capability
  9.0; ../kernels/linear/mixed_precision/machete.py); symmetric ones go with Marlin (marlin.py), g_idx without act-order
  too; with it, there are the indices of its order besides.
- Scales of nvfp4: rows padded to 128, columns to 4 (quantization/utils/nvfp4_utils.py, `swizzle_blockscale`).
- absmax of bitsandbytes: float32, what quantized it again is dropped (../model_loader/bitsandbytes_loader.py).
- mxfp4 experts: padded by backend (fused_moe/oracle/mxfp4.py, `mxfp4_round_up_hidden_size_and_intermediate_size`).
- Asymmetric int8 activations: an int32 a row, azp_adj (../kernels/linear/scaled_mm/cutlass.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from deployc.cost.parallel import round_up
from deployc.cost.weights.formats import made, scheme
from deployc.cost.weights.names import Name, read
from deployc.cost.weights.shard import Ranks, shape_on_rank
from deployc.types.architecture import Architecture
from deployc.types.choices import Choices
from deployc.types.facts import DTYPE_BYTES, SERVED_BYTES, Facts, TensorGroup
from deployc.types.prediction_layers import split_prediction
from deployc.types.scheme import packed_bits
from deployc.types.tower_layers import without_unread

FLOATS = ("F64", "F32", "F16", "BF16")
IN_FLOAT32 = ("A_log", "e_score_correction_bias", "absmax", "weight.absmax", "SCB", "quant_map", "weight.quant_map")
DROPPED = ("nested_absmax", "nested_quant_map", "weight.nested_absmax", "weight.nested_quant_map", "weight_format")
ZEROS = ("qzeros", "weight_zero_point")
MACHETE = (9, 0)


@dataclass(frozen=True, slots=True)
class Held:
    """Parameters that are alike, on the fullest rank of their stage."""

    name: str  # pattern of the engine's module, and its parameter after "|"
    bytes: int  # of one
    count: int  # over all stages
    layers: tuple[int, ...]  # of the decoder; empty outside it
    place: str  # "layer" | "first" | "last" | "ends" | "every": the pipeline stages that hold it
    vocabulary: bool  # an embedding or output layer
    tokens: bool  # whether every token's step reads all of it: not so for an untied input embedding, or a tower


@dataclass(frozen=True, slots=True)
class Engine:
    """What decides how a parameter is held."""

    architecture: Architecture
    config: Mapping[str, Any]  # the language model's
    bits: int  # of packed integers
    ranks: Ranks
    dtype: str
    capability: tuple[int, int] | None
    packed: frozenset[str]  # modules (numbers out) with packed integers or four-bit floats
    symmetric: bool
    act_order: bool
    adjusted: bool  # int8 activations with zero points
    method: str  # quant_method of config.json
    scales_stay: bool  # Triton's mxfp4 experts: as loaded, beside their new layout

    @property
    def machete(self) -> bool:
        return self.capability == MACHETE


def held(facts: Facts, choices: Choices) -> tuple[Held, ...]:
    """Every parameter, those that the engine joins as one."""
    groups = [part for group in loaded(facts) for part in made(group, choices)]
    engine = _engine(facts, choices, groups)
    joined: dict[tuple[str, tuple[int, ...]], Held] = {}
    for group in groups:
        name = read(group.pattern)
        one = _held(group, name, engine)
        key = (name.kind, one.layers)
        before = joined.get(key)
        same = before is not None and before.count == one.count
        joined[key if same or before is None else (one.name + group.pattern, one.layers)] = (
            replace(before, bytes=before.bytes + one.bytes) if before is not None and same else one
        )
    return tuple(joined.values())


def loaded(facts: Facts) -> Iterator[TensorGroup]:
    """What the engine keeps of the checkpoint: a tied lm_head is the embedding, rotary tables are computed anew, layers
    that predict further tokens are loaded for speculative decoding only, and those of a tower where they are read."""
    arch = facts.model.architecture
    own, _ = split_prediction(facts.model.tensors, arch.layers)
    for group in without_unread(own, facts.model.read_config):
        name = read(group.pattern)
        parts = group.pattern.split(".")
        tied = name.module == "lm_head" and arch.tie_word_embeddings
        state = name.parameter in DROPPED or "quant_state" in parts
        if not (tied or state or "rotary_emb" in parts):
            yield group


def _engine(facts: Facts, choices: Choices, groups: Iterable[TensorGroup]) -> Engine:
    """`symmetric` and `act_order` as the checkpoint's config says, or our own format's."""
    quantized = facts.model.quantization
    own = scheme(choices)
    names = [read(group.pattern) for group in groups]
    packed = {n.of for n in names if n.parameter in ("weight_packed", "qweight", "weight_scale_2")}
    each = [g for g in (quantized.get("config_groups") or {}).values() if isinstance(g, dict)]
    inputs = [g.get("input_activations") or {} for g in each]
    return Engine(
        architecture=facts.model.architecture,
        config=facts.model.language_config,
        bits=packed_bits(quantized),
        ranks=Ranks.of(facts, choices),
        dtype=choices.dtype.value,
        capability=facts.smallest.compute_capability,
        packed=frozenset(packed),
        symmetric=own.symmetric if own else bool(quantized.get("sym", not quantized.get("zero_point", False))),
        act_order=bool(quantized.get("desc_act")) or any(n.parameter == "weight_g_idx" for n in names),
        adjusted=any(i.get("type") == "int" and i.get("symmetric") is False for i in inputs),
        method=str(quantized.get("quant_method", "")),
        scales_stay=facts.calibration.memory.mxfp4_scales_stay,
    )


def _held(group: TensorGroup, name: Name, engine: Engine) -> Held:
    shape = shape_on_rank(group, name, engine.architecture, engine.config, engine.ranks)
    size, count = math.ceil(_bytes(group, name, shape, engine)), group.count
    if name.experts:  # stacked: one parameter a layer for all experts of this rank
        moved = engine.ranks.experts if engine.ranks.whole_experts else 1
        size, count = size * -(-name.experts // moved), count // name.experts
    place = _place(name, engine.architecture)
    tied = engine.architecture.tie_word_embeddings
    tokens = not name.tower and (tied or name.role != "vocabulary" or name.module in ("lm_head", "output", "embed_out"))
    return Held(name.held_as, size, count, name.layers, place, name.role == "vocabulary", tokens)


def _place(name: Name, architecture: Architecture) -> str:
    if name.layers:
        return "layer"
    if name.tower:
        return "every"
    if name.role == "vocabulary" and name.module not in ("lm_head", "output", "embed_out"):
        return "ends" if architecture.tie_word_embeddings and name.module != "embed_tokens_per_layer" else "first"
    return "last"


def _bytes(group: TensorGroup, name: Name, shape: tuple[int, ...], engine: Engine) -> float:
    """Of one tensor of this shape, as the table above says."""
    elements, parameter = math.prod(shape), name.parameter
    if name.module in IN_FLOAT32 or parameter in IN_FLOAT32:
        return 4 * elements
    if parameter in ZEROS:
        return _zeros(elements, group, engine)
    if parameter in ("g_idx", "weight_g_idx"):
        return 8 * elements if engine.act_order else 4 * elements if engine.machete else 0
    if parameter == "bias" and len(group.shape) == 2 and engine.machete and "mxfp4" in engine.method:
        return 4 * elements  # of Triton's experts
    if parameter in ("blocks", "scales") and len(group.shape) > 2:
        return _mxfp4(group, name, engine)
    if parameter in ("weight_scale", "weight_scale_inv") and len(shape) <= 2:
        if group.dtype == "F8_E4M3":
            return math.prod((round_up(shape[0], 128), round_up(shape[1], 4)))
        wide = group.dtype in FLOATS and name.of not in engine.packed
        return elements * (4 if wide else SERVED_BYTES[engine.dtype] if group.dtype in FLOATS else 1)
    if parameter.endswith("scale") or parameter == "weight_scale_2":
        return 4 * elements
    if group.dtype == "I8" and parameter == "weight" and engine.adjusted:
        return elements + 4 * shape[0]
    return elements * (SERVED_BYTES[engine.dtype] if group.dtype in FLOATS else DTYPE_BYTES[group.dtype])


def _zeros(elements: int, group: TensorGroup, engine: Engine) -> float:
    """Machete multiplies each by its scale beforehand: 2 bytes for what took `bits`. Marlin keeps them packed."""
    if group.pattern.endswith("qzeros") and engine.symmetric:
        return 4 * elements if engine.machete else 0
    return elements * 2 * (32 // engine.bits) if engine.machete else 4 * elements


def _mxfp4(group: TensorGroup, name: Name, engine: Engine) -> int:
    """Stacked experts [experts, outputs, inputs / 32, (16)].

    Marlin (below 9.0) pads the intermediate size of a rank to 128 and the hidden size to 256, FlashInfer (10.0 on) both
    to 256, Triton (9.0) the former to 64. Triton's layout pads outputs of the scales to 256 (triton_kernels,
    HopperMXScaleLayout, 8 warps); older versions delete the weights alone, and the scales as loaded stay beside it.
    """
    arch, up, ranks = engine.architecture, name.module == "gate_up_proj", engine.ranks
    whole = ranks.whole_experts
    count = -(-group.shape[0] // ranks.experts) if whole else group.shape[0]
    part = (arch.moe_intermediate_size or arch.intermediate_size) // (1 if whole else ranks.experts)
    if engine.machete:
        part = round_up(part, 64)
        outputs, inputs = (2 * part, arch.hidden_size) if up else (arch.hidden_size, part)
        scales = round_up(outputs, 256) * round_up(inputs // 32, 2)
        loaded = outputs * inputs // 32 if engine.scales_stay else 0
        return count * (outputs * inputs // 2 if name.parameter == "blocks" else scales + loaded)
    newer = engine.capability is not None and engine.capability > MACHETE
    elements = count * (2 if up else 1) * round_up(part, 256 if newer else 128) * round_up(arch.hidden_size, 256)
    return elements // (2 if name.parameter == "blocks" else 32)
