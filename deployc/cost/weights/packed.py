"""Quantized linear layers as the engine's kernels see them on one rank: of a checkpoint, or of our own formats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from deployc.cost.weights.formats import made, scheme
from deployc.cost.weights.held import loaded
from deployc.cost.weights.names import Name, read
from deployc.cost.weights.shard import Ranks, shape_on_rank
from deployc.types.choices import Choices
from deployc.types.facts import Facts, TensorGroup
from deployc.types.formats import Layer, Method
from deployc.types.scheme import packed_bits

Siblings = Mapping[str, TensorGroup]  # parameter -> group, of one module


@dataclass(frozen=True, slots=True)
class Stored:
    """Layers that are alike. `block`: outputs and inputs that share a scale of fp8; (0, 0) = not by blocks."""

    pattern: str  # of the module
    method: Method
    layer: Layer  # with the outputs of all that the engine joins with it
    outputs: int  # its own, on a rank
    count: int
    routed: bool  # experts
    joined: str  # the matrix that the engine holds it in
    block: tuple[int, int] = (0, 0)

    @property
    def module(self) -> str:
        """The last part of its name: "down_proj"."""
        return self.pattern.rpartition(".")[2]


def stored(facts: Facts, choices: Choices) -> list[Stored]:
    """Every layer in packed integers or fp8; none of a 16-bit model, of towers, of experts in one tensor, nor of a
    quantized checkpoint that is to be quantized once more (DC250)."""
    if scheme(choices) and facts.model.quantization:
        return []
    groups = [part for group in loaded(facts) for part in made(group, choices)]
    modules: dict[str, dict[str, TensorGroup]] = {}
    for group in groups:
        module, _, parameter = group.pattern.rpartition(".")
        modules.setdefault(module, {})[parameter] = group
    found = [one for module, parts in modules.items() for one in _stored(facts, choices, module, parts)]
    together: dict[tuple[str, tuple[int, ...]], int] = {}
    for one in found:
        key = _joint(one)
        together[key] = together.get(key, 0) + one.outputs
    return [replace(one, layer=replace(one.layer, outputs=together[_joint(one)])) for one in found]


def _joint(one: Stored) -> tuple[str, tuple[int, ...]]:
    """Those that are one matrix: of one kind, of as many layers."""
    return one.joined, (one.count, one.layer.inputs)


def _stored(facts: Facts, choices: Choices, module: str, parts: Siblings) -> Iterator[Stored]:
    main = next((parts[key] for key in ("qweight", "weight_packed", "weight") if key in parts), None)
    if main is None or len(main.shape) != 2:
        return
    name = read(main.pattern)
    method = _method(facts, parts, main)
    if method is None or name.tower or not name.layers or name.role in ("heads", "vocabulary"):
        return
    config, own = facts.model.quantization, scheme(choices)
    bits = 8 if method == "widened_fp8" else own.bits if own else packed_bits(config)
    out, inner = _sides(main, bits, method)
    held = _on_rank(facts, choices, module, (out, inner), main.count)
    scales = _scales(parts)
    by_words = method in ("gptq", "gptq_plain", "awq")
    many = scales.shape[0 if by_words else -1] if scales and len(scales.shape) > 1 else 1
    block = _block(facts) if method == "widened_fp8" else (0, 0)
    group = block[1] or (-(-inner // many) if many > 1 else 0)
    group = _written(config, group) if by_words else group
    layer = Layer(
        bits, group, _zero_points(config, parts, method), _act_order(config, parts, group), held[0], held[1],
        held[1] < inner,
    )  # fmt: skip
    yield Stored(module, method, layer, held[0], main.count, name.routed, name.of, block)


def _method(facts: Facts, parts: Siblings, main: TensorGroup) -> Method | None:
    """Which list of kernels multiplies by it; None for what has none here: 16 bit, int8, bitsandbytes, 4-bit floats."""
    said = facts.model.quantization
    if "weight_packed" in parts and main.dtype == "I32":
        return "packed"
    if "qweight" in parts:
        if said.get("quant_method") == "awq" or "awq" in str(said.get("packing_format", "")):
            return "awq"
        return "gptq" if said.get("sym", True) and packed_bits(said) in (4, 8) else "gptq_plain"
    return "widened_fp8" if main.dtype == "F8_E4M3" and _scales(parts) is not None else None


def _sides(main: TensorGroup, bits: int, method: Method) -> tuple[int, int]:
    """[outputs, inputs] of the whole matrix."""
    first, second = main.shape
    if method == "awq":
        return second * 32 // bits, first
    if method in ("gptq", "gptq_plain"):
        return second, first * 32 // bits
    return (first, second * 32 // bits) if method == "packed" else (first, second)


def _on_rank(facts: Facts, choices: Choices, module: str, shape: tuple[int, int], count: int) -> tuple[int, int]:
    plain = TensorGroup(f"{module}.weight", "BF16", shape, count)
    name: Name = read(plain.pattern)
    ranks, model = Ranks.of(facts, choices), facts.model
    out, inner = shape_on_rank(plain, name, model.architecture, model.language_config, ranks)
    return out, inner


def _scales(parts: Siblings) -> TensorGroup | None:
    return next((parts[key] for key in ("scales", "weight_scale", "weight_scale_inv") if key in parts), None)


def _written(config: Mapping[str, object], counted: int) -> int:
    """The group that the config names: with as many inputs as it there is one scale either way."""
    said = config.get("group_size", config.get("q_group_size"))
    return counted if not isinstance(said, int) else max(said, 0)


def _zero_points(config: Mapping[str, object], parts: Siblings, method: Method) -> bool:
    if method == "awq":
        return bool(config.get("zero_point", True))
    if method == "gptq_plain":
        return not config.get("sym", True)
    return "weight_zero_point" in parts


def _act_order(config: Mapping[str, object], parts: Siblings, group: int) -> bool:
    return group > 0 and (bool(config.get("desc_act")) or "weight_g_idx" in parts)


def _block(facts: Facts) -> tuple[int, int]:
    """Of fp8 with a scale a block: `weight_block_size`, or compressed-tensors' `block_structure`."""
    said = facts.model.quantization
    groups = [g.get("weights") or {} for g in (said.get("config_groups") or {}).values() if isinstance(g, dict)]
    for size in (said.get("weight_block_size"), *(weights.get("block_structure") for weights in groups)):
        if isinstance(size, list) and len(size) == 2 and all(type(side) is int and side > 0 for side in size):
            return size[0], size[1]
    return 0, 0
