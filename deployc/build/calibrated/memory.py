"""What calibration takes of the host's memory, from shapes and lengths alone.

llm-compressor holds the whole 16-bit model and goes through it a layer at a time; what every sample gave at the last
layer waits for the next one. The terms are those of llmcompressor 0.14.0.1: pipelines/cache.py and
pipelines/sequential/pipeline.py (activations), modifiers/gptq/gptq_quantize.py (one layer of GPTQ),
modifiers/transform/awq/base.py (one layer of AWQ). On a GPU the layer at hand lies there instead, so this is a bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from deployc.types.facts import DTYPE_BYTES
from deployc.types.groups import Tensor

LIBRARIES = 1_500_000_000
"""Bytes of a process that has loaded torch, transformers and llm-compressor: 0.5 GB measured on a CPU; CUDA's own
libraries take more. Measured whole (SmolLM2-135M, 32 samples of 256 tokens): GPTQ 0.78 GB, AWQ 0.89 GB; 1.9 said."""
HALF, SINGLE = 2, 4  # bytes an element


@dataclass(frozen=True, slots=True)
class Width:
    """A model's widths, by config.json's names; `num_attention_heads` of the queries."""

    hidden_size: int
    num_attention_heads: int
    head_dim: int


def memory(
    tensors: Iterable[Tensor], quantized: Mapping[str, int], lengths: Sequence[int], width: Width, method: str
) -> dict[str, int]:
    """Bytes by what takes them, to be added up.

    `tensors` are the 16-bit model's; `quantized` says to which layer each quantized tensor belongs (`layer_of`);
    `lengths` are tokens of each sample; `method` is "gptq", "awq" or "smoothquant".
    """
    held = list(tensors)
    layers: dict[int, list[tuple[int, ...]]] = {}
    for name, _, shape in held:
        if name in quantized:
            layers.setdefault(quantized[name], []).append(shape)
    one = max((_layer(shapes, lengths, width, method) for shapes in layers.values()), default=0)
    longest = max(lengths, default=0)
    # eager attention: scores in 16 bit, their softmax in float32 and in 16 bit again
    scores = width.num_attention_heads * longest**2 * (HALF + SINGLE + HALF)
    return {
        "the 16-bit model": sum(_bytes(dtype, shape) for _, dtype, shape in held),
        "activations of all samples": sum(_waiting(tokens, width) for tokens in lengths),
        "one layer's work": one,
        "one sample's attention": scores,
        "libraries": LIBRARIES,
    }


def layer_of(tensor: str) -> int:
    """The number of the layer that a tensor belongs to: the first one in its name; -1 where there is none."""
    return next((int(part) for part in tensor.split(".") if part.isdecimal()), -1)


def _waiting(tokens: int, width: Width) -> int:
    """Of one sample between two layers: hidden states before and after, causal mask, cosines and sines."""
    return HALF * (2 * tokens * width.hidden_size + tokens**2 + 2 * tokens * width.head_dim)


def _layer(shapes: Sequence[tuple[int, ...]], lengths: Sequence[int], width: Width, method: str) -> int:
    largest = max((out * inner for out, inner in shapes), default=0)
    if method == "gptq":
        widest = max(inner for _, inner in shapes)
        hessians = sum(inner * inner for _, inner in shapes) * SINGLE
        return hessians + (3 * widest * widest + 3 * largest) * SINGLE  # ordered, factorized; the weight, its error
    if method == "awq":
        outputs = 2 * HALF * sum(lengths) * width.hidden_size  # of the 16-bit block and of the one that is tried
        inputs = sum(_waiting(tokens, width) for tokens in lengths)
        return outputs + inputs + 3 * HALF * sum(out * inner for out, inner in shapes)
    return 2 * SINGLE * largest


def _bytes(dtype: str, shape: tuple[int, ...]) -> int:
    elements = 1
    for size in shape:
        elements *= size
    return int(elements * DTYPE_BYTES[dtype])
