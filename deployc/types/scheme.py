"""How a quantized linear layer is stored: which tensors stand in place of its `weight` [out, in]."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["fp8", "int8", "packed", "gptq", "awq", "bitsandbytes-4bit", "bitsandbytes-8bit", "nvfp4", "mxfp4"]
"""fp8, int8: an element a byte. packed: compressed-tensors' integers in int32 words along the inputs. gptq, awq: int32
words along inputs (gptq) or outputs (awq), a zero point a group. nvfp4, mxfp4: two elements a byte."""

StoredPart = tuple[str, str, tuple[int, ...]]
"""Name of the parameter within its module, safetensors dtype, shape."""

FUSED = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"), ("w1", "w3"))
"""Layers that vLLM runs as one matrix (`packed_modules_mapping` of its models): quantized together or not at all."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """One format. `group` inputs share a scale: 0 = a scale a row, -1 = one scale; `block` is (outputs, inputs)."""

    kind: Kind
    bits: int
    group: int = 0
    block: tuple[int, int] = (0, 0)
    symmetric: bool = True
    act_order: bool = False  # a group number for each input: desc_act of GPTQ, actorder "group" of compressed-tensors
    static_input: bool = False  # a scale for activations in the checkpoint
    scale: str = "weight_scale"  # name of the scale
    scale_dtype: str = "BF16"
    double: bool = False  # bitsandbytes: the scales are quantized again

    def stored(self, out: int, inner: int) -> Iterator[StoredPart]:
        """The tensors of one layer of `out` outputs and `inner` inputs, as that format's writer names and shapes them.

        Sources: compressed_tensors/compressors (pack_quantized, nvfp4_quantized), the create_weights of
        vllm/model_executor/layers/quantization/{auto_gptq,auto_awq,fp8,modelopt,bitsandbytes}.py (0.25.1), and
        bitsandbytes' QuantState.as_dict.
        """
        if self.kind in ("fp8", "int8"):
            yield "weight", "F8_E4M3" if self.kind == "fp8" else "I8", (out, inner)
            yield self.scale, self.scale_dtype, self._scales(out, inner)
        elif self.kind == "packed":
            yield "weight_packed", "I32", (out, _words(inner, self.bits))
            yield "weight_scale", self.scale_dtype, (out, self._groups(inner))
            yield "weight_shape", "I64", (2,)
            if not self.symmetric:
                yield "weight_zero_point", "I32", (_words(out, self.bits), self._groups(inner))
            if self.act_order:
                yield "weight_g_idx", "I32", (inner,)
        elif self.kind in ("gptq", "awq"):
            yield from self._words_by_group(out, inner)
        elif self.kind in ("nvfp4", "mxfp4"):
            yield from self._four_bit_floats(out, inner)
        else:
            yield from self._bitsandbytes(out, inner)
        if self.static_input and self.kind != "nvfp4":
            yield "input_scale", "F32", (1,)

    def _groups(self, inner: int) -> int:
        return -(-inner // self.group) if self.group > 0 else 1

    def _scales(self, out: int, inner: int) -> tuple[int, ...]:
        if self.block != (0, 0):
            return (-(-out // self.block[0]), -(-inner // self.block[1]))
        return (1,) if self.group < 0 else (out, self._groups(inner))

    def _words_by_group(self, out: int, inner: int) -> Iterator[StoredPart]:
        groups = self._groups(inner)
        yield (
            "qweight",
            "I32",
            (_words(inner, self.bits), out) if self.kind == "gptq" else (inner, _words(out, self.bits)),
        )
        yield "qzeros", "I32", (groups, _words(out, self.bits))
        yield "scales", "F16", (groups, out)
        if self.kind == "gptq":
            yield "g_idx", "I32", (inner,)

    def _four_bit_floats(self, out: int, inner: int) -> Iterator[StoredPart]:
        modelopt = self.scale == "weight_scale_2"
        yield "weight" if modelopt else "weight_packed", "U8", (out, inner // 2)
        yield "weight_scale", "F8_E4M3" if self.kind == "nvfp4" else "U8", (out, -(-inner // self.group))
        if self.kind == "nvfp4":
            yield "weight_scale_2" if modelopt else "weight_global_scale", "F32", (1,)
            if self.static_input:
                yield "input_scale" if modelopt else "input_global_scale", "F32", (1,)

    def _bitsandbytes(self, out: int, inner: int) -> Iterator[StoredPart]:
        if self.kind == "bitsandbytes-8bit":
            yield "weight", "I8", (out, inner)
            yield "SCB", "F32", (out,)
            return
        blocks = -(-out * inner // self.group)
        yield "weight", "U8", (-(-out * inner // 2), 1)
        yield "weight.absmax", "U8" if self.double else "F32", (blocks,)
        yield "weight.quant_map", "F32", (16,)
        if self.double:
            yield "weight.nested_absmax", "F32", (-(-blocks // 256),)
            yield "weight.nested_quant_map", "F32", (256,)


def scheme(values: Mapping[str, Any]) -> Scheme:
    """A scheme as `dataclasses.asdict` and JSON left it."""
    return Scheme(**{**values, "block": tuple(values["block"])})


def _words(elements: int, bits: int) -> int:
    """int32 words for so many elements."""
    return -(-elements * bits // 32)


BESIDE = frozenset(
    {"qzeros", "scales", "g_idx", "weight_scale", "weight_shape", "weight_zero_point", "weight_g_idx", "SCB", "absmax",
     "weight_scale_inv", "weight_scale_2", "weight_global_scale", "input_global_scale", "input_scale", "k_scale",
     "v_scale", "quant_map", "nested_absmax", "nested_quant_map", "bitsandbytes__nf4", "bitsandbytes__fp4",
     "weight_format"}
)  # fmt: skip
"""Parameters of a quantized layer that are no weights of the model."""


def weights_in(pattern: str, dtype: str, elements: int, quantization: Mapping[str, Any]) -> int:
    """How many of the model's weights stand in so many stored elements of a tensor: several in a word of packed ones.

    `quantization` is what config.json says of it, the bits of integers among it.
    """
    parameter = pattern.rpartition(".")[2]
    if parameter in BESIDE or (dtype == "U8" and parameter.endswith("_scales")):
        return 0
    if (dtype == "U8" and parameter in ("weight", "weight_packed")) or parameter.endswith("_blocks"):
        return elements * 2
    if dtype == "I32" and parameter in ("qweight", "weight_packed"):
        return elements * 32 // packed_bits(quantization)
    return elements


def packed_bits(quantization: Mapping[str, Any]) -> int:
    """Bits of packed integers by config.json; 4 where it names none, which no engine loads."""
    groups = (g.get("weights") or {} for g in (quantization.get("config_groups") or {}).values() if isinstance(g, dict))
    named = [quantization.get("bits"), quantization.get("w_bit"), *(weights.get("num_bits") for weights in groups)]
    return next((bits for bits in named if isinstance(bits, int) and 1 < bits <= 32), 4)
