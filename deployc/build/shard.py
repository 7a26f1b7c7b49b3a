"""One shard: read in the order it lies, each tensor merged, quantized or copied, block by block. Runs in the build
interpreter."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence

import torch

from deployc.build import faults, int8
from deployc.build.adapters import Adapter
from deployc.build.layout import Work
from deployc.build.merge import Pair, delta
from deployc.build.safetensors_file import Reader, Writer
from deployc.build.tensors import as_bytes, as_float32, blocks
from deployc.facts.faults import Fault
from deployc.types.facts import DTYPE_BYTES

Advance = Callable[[str, int], None]
"""(tensor, bytes written since the last call)."""


def write(reader: Reader, writer: Writer, work: Sequence[Work], adapters: Sequence[Adapter], advance: Advance) -> str:
    """Fill the writer's file; returns the sha256 of the whole input file, which is read exactly once.

    Raises Fault DC275 for a weight that is not finite, OSError.
    """
    digest = hashlib.sha256(reader.read(0, reader.data))
    for item in work:
        if item.copied:
            target = writer.slots[item.source.name].begin - item.source.begin
            for at, raw in reader.chunks(item.source.begin, item.source.end):
                digest.update(raw)
                writer.write(at + target, raw)
                advance(item.source.name, len(raw))
        else:
            _change(reader, writer, item, adapters, digest, advance)
    return digest.hexdigest()


def _change(
    reader: Reader, writer: Writer, item: Work, adapters: Sequence[Adapter], digest: hashlib._Hash, advance: Advance
) -> None:
    source, name = item.source, item.source.name
    pairs = [pair for adapter in adapters if (pair := adapter.pair(name)) is not None] if item.merge else []
    row = math.prod(source.shape[1:])
    stride = round(row * DTYPE_BYTES[source.dtype])
    for first, last in blocks(source.shape):
        raw = reader.read(source.begin + first * stride, source.begin + last * stride)
        digest.update(raw)
        weight = _merged(as_float32(raw, source.dtype, (last - first, *source.shape[1:])), pairs, first, last, item)
        if item.quantize:
            scales = int8.row_scales(weight, item.dtype)
            stored = [(name, "I8", int8.quantized(weight, scales), row), (f"{name}_scale", item.dtype, scales, 1)]
        else:
            stored = [(name, item.dtype, weight, row)]
        for output, dtype, values, width in stored:
            content = as_bytes(values, dtype)
            writer.write(writer.slots[output].begin + first * width * round(DTYPE_BYTES[dtype]), content)
            advance(name, len(content))


def _merged(base: torch.Tensor, pairs: Sequence[Pair], first: int, last: int, item: Work) -> torch.Tensor:
    """The changed rows in float32; checked, as one infinity would spoil every answer of the model."""
    weight = base + delta(pairs, first, last) if pairs else base
    largest = float(weight.abs().amax()) if weight.numel() else 0.0
    limit = LARGEST[item.dtype]
    if not largest <= limit:  # NaN too
        spoiled = not bool(torch.isfinite(base).all())
        raise Fault(faults.merged_not_finite(item.source.name, item.dtype, spoiled))
    return weight


LARGEST = {"F16": 65519.0, "BF16": 3.3961e38, "F32": torch.finfo(torch.float32).max}
"""Below this a float32 value rounds to a finite one of the dtype."""
