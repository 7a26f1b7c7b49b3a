"""The linear layers of the language model and their sizes on a rank, whatever format the checkpoint stores them in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from deployc.cost.weights.held import loaded
from deployc.cost.weights.names import Name, read
from deployc.cost.weights.shard import Ranks, shape_on_rank
from deployc.types.architecture import Architecture
from deployc.types.choices import Choices
from deployc.types.facts import Facts, TensorGroup
from deployc.types.scheme import packed_bits


class Linear(NamedTuple):
    """Matrices of one size: outputs, inputs, how many; which module they are, and whether experts that are chosen."""

    outputs: int
    inputs: int
    copies: int
    of: str = ""
    routed: bool = False


def linears(facts: Facts, choices: Choices) -> Iterator[Linear]:
    """Column- and row-parallel layers of the decoder on one rank, experts among them; not routers, tables, encoders."""
    model, ranks = facts.model, Ranks.of(facts, choices)
    for group in loaded(facts):
        name = read(group.pattern)
        if name.tower or not name.layers or name.role in ("replicated", "vocabulary", "heads"):
            continue
        shape = unpacked(group, name, model.quantization, model.architecture)
        if len(shape) != 2:
            continue
        plain = TensorGroup(f"{group.pattern.rpartition('.')[0]}.weight", "BF16", shape, group.count)
        out, inner = shape_on_rank(plain, read(plain.pattern), model.architecture, model.language_config, ranks)
        yield Linear(out, inner, group.count, name.of, name.routed)


def unpacked(group: TensorGroup, name: Name, quantization: Mapping[str, Any], arch: Architecture) -> tuple[int, ...]:
    """[outputs, inputs] of the matrix that a parameter packs; empty for one that is no matrix."""
    if len(group.shape) != 2 or name.parameter not in ("weight", "weight_packed", "qweight"):
        return ()
    first, second = group.shape
    if name.parameter == "qweight":
        words, packing = 32 // packed_bits(quantization), str(quantization.get("packing_format", ""))
        by_outputs = quantization.get("quant_method") == "awq" or "awq" in packing
        return (second * words, first) if by_outputs else (second, first * words)
    if name.parameter == "weight_packed":
        return (first, second * 2 if group.dtype == "U8" else second * 32 // packed_bits(quantization))
    if group.dtype == "U8":
        return _named(name.module, arch) if second == 1 else (first, second * 2)
    return (first, second)


def _named(module: str, arch: Architecture) -> tuple[int, ...]:
    """bitsandbytes stores one long row: the sizes that the module's name stands for."""
    hidden, inner = arch.hidden_size, arch.intermediate_size
    queries, keys = arch.heads * arch.head_dim, arch.kv_heads * arch.head_dim
    sizes = {
        "q_proj": (queries, hidden), "k_proj": (keys, hidden), "v_proj": (keys, hidden), "o_proj": (hidden, queries),
        "gate_proj": (inner, hidden), "up_proj": (inner, hidden), "down_proj": (hidden, inner),
    }  # fmt: skip
    return sizes.get(module, ())
