"""What our own quantizer writes, by `quantization.weights`, and which tensors it touches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

from deployc.cost.weights.names import read
from deployc.types.choices import Choices
from deployc.types.facts import TensorGroup
from deployc.types.groups import expand
from deployc.types.scheme import Scheme

SCHEMES: Mapping[str, Scheme] = {
    "fp8": Scheme("fp8", 8),
    "int8": Scheme("int8", 8),
    "int8-weight-only": Scheme("packed", 8),
    "int4-gptq": Scheme("packed", 4, group=128),
    "int4-awq": Scheme("packed", 4, group=128, symmetric=False),
    "int4-rtn": Scheme("packed", 4, group=128),
}
"""Checkpoints of compressed-tensors: fp8 and int8 with a scale a row and activations quantized as they come; integers
of weights alone with a scale a row or a group of inputs, AWQ's with zero points (llm-compressor's W4A16_ASYM)."""
CALIBRATED: Mapping[str, str] = {"int4-gptq": "gptq", "int4-awq": "awq"}
"""Those that are made by looking at text, and how."""
LINEARS = (
    "q_proj", "k_proj", "v_proj", "qkv_proj", "gate_proj", "up_proj", "gate_up_proj", "w1", "w3", "o_proj", "down_proj",
    "w2",
)  # fmt: skip


def scheme(choices: Choices) -> Scheme | None:
    """What the artifact's linear layers are to be in; None where they stay as the source has them."""
    found = SCHEMES.get(choices.weights.value)
    return replace(found, group=choices.group_size.value) if found and found.group else found


def made(group: TensorGroup, choices: Choices) -> Iterator[TensorGroup]:
    """What stands in the artifact for a group of the source."""
    into = scheme(choices)
    count = taken(group, choices.ignore) if into else 0
    if group.count > count:
        yield replace(group, count=group.count - count) if count else group
    if into is None or not count:
        return
    module = group.pattern.rpartition(".")[0]
    out, inner = group.shape
    for parameter, dtype, shape in into.stored(out, inner):
        yield TensorGroup(f"{module}.{parameter}", dtype, shape, count)


@lru_cache(maxsize=1024)
def taken(group: TensorGroup, ignore: tuple[str, ...]) -> int:
    """How many tensors of a group are quantized; `ignore` may name single layers of it."""
    if not is_linear(group):
        return 0
    if any(character.isdigit() for entry in ignore for character in entry):
        wanted = [f".{entry}." for entry in ignore if entry]
        return sum(not any(entry in f".{name}." for entry in wanted) for name in expand(group))
    return group.count if is_quantized(group, ignore) else 0


def is_linear(tensor: TensorGroup) -> bool:
    """Whether it is the 16-bit matrix of a linear layer that our quantizer knows."""
    name = read(tensor.pattern)
    known = name.module in LINEARS and name.parameter == "weight" and not name.tower
    return known and len(tensor.shape) == 2 and tensor.dtype in ("BF16", "F16", "F32")


def is_quantized(tensor: TensorGroup, ignore: tuple[str, ...]) -> bool:
    """Whether our quantizer takes it: the matrices of linear layers, `ignore` and routers left alone.

    An entry of `ignore` is one or several parts of the name: "down_proj", "layers.0", "layers.1.mlp.up_proj".
    """
    return is_linear(tensor) and not any(is_named(tensor.pattern, entry) for entry in ignore)


def is_named(tensor: str, entry: str) -> bool:
    """Whether an entry of `ignore` names this tensor or a module around it, by whole parts between dots."""
    return bool(entry) and f".{entry}." in f".{tensor}."
