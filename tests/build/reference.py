"""What compressed-tensors itself makes of weights, by our formats: the other side of the comparisons.

Importing this loads neither torch nor the library: the functions do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from deployc.cost.weights.formats import SCHEMES
from deployc.types.scheme import Scheme

FORMATS = ("fp8", "int8", "int8-weight-only", "int4-rtn")
"""Those that are made of weights alone."""
COMPRESSORS = {"fp8": "float-quantized", "int8": "int-quantized", "packed": "pack-quantized"}


def scheme(weights: str, group: int = 32) -> Scheme:
    """Our own, with groups of that many inputs where it has groups."""
    found = SCHEMES[weights]
    return replace(found, group=group) if found.group else found


def described(weights: str, group: int = 32) -> dict[str, Any]:
    """A QuantizationScheme of the library, as JSON."""
    ours = scheme(weights, group)
    number = {"num_bits": ours.bits, "type": "float" if ours.kind == "fp8" else "int", "symmetric": True}
    strategy = {"strategy": "group", "group_size": ours.group} if ours.group else {"strategy": "channel"}
    found = {"targets": ["Linear"], "weights": {**number, **strategy}}
    if ours.kind != "packed":
        found["input_activations"] = {**number, "strategy": "token", "dynamic": True}
    return found


def compressed(weights: str, values: Any, group: int = 32) -> dict[str, Any]:
    """Parameter -> tensor, of a layer [out, in]: observed, scaled, compressed by the library's functions.

    With the zero points of 0 that its modules carry, and the observer of llm-compressor 0.14 (memoryless_minmax).
    """
    import torch
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import QuantizationScheme
    from compressed_tensors.quantization.utils import calculate_qparams

    ours = scheme(weights, group)
    theirs = QuantizationScheme(**described(weights, group))
    assert theirs.weights is not None
    observed = values.unflatten(1, (-1, ours.group)) if ours.group else values.unsqueeze(1)
    scales, zeros = calculate_qparams(observed.amin(-1), observed.amax(-1), theirs.weights)
    state = {"weight": values, "weight_scale": scales, "weight_zero_point": torch.zeros_like(zeros)}
    made: dict[str, Any] = BaseCompressor.get_value_from_registry(COMPRESSORS[ours.kind]).compress(state, theirs)
    return made


def decompressed(weights: str, stored: dict[str, Any], group: int = 32) -> Any:
    """The layer again, of parameter -> tensor."""
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import QuantizationScheme

    theirs = QuantizationScheme(**described(weights, group))
    kind = COMPRESSORS[scheme(weights, group).kind]
    return BaseCompressor.get_value_from_registry(kind).decompress(dict(stored), theirs)["weight"]


def same(one: Any, other: Any) -> bool:
    """Whether two tensors are equal to the byte."""
    import torch

    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    return bool(torch.equal(one.contiguous().view(torch.uint8), other.contiguous().view(torch.uint8)))
