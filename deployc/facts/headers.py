"""Safetensors headers: names, dtypes and shapes of a model's tensors, without reading one byte of its weights.

The format (safetensors' README, "Format"): 8 bytes, little-endian length N; N bytes of JSON that begin with `{`;
then the data, every tensor's `data_offsets` relative to it, without overlap or hole. N is at most 100 MB.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from deployc.facts import faults
from deployc.types.facts import DTYPE_BYTES
from deployc.types.groups import Tensor

MAX_HEADER = 100_000_000
"""Bytes; safetensors' own MAX_HEADER_SIZE."""
MAX_DIMENSIONS = 64
"""Of one tensor: what torch can reduce over (ATen/WrapDimUtilsMulti.h, dim_bitset_size)."""

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
"""A model's one file of weights, or what names its several; other files of weights are copies in other layouts."""
_HALF = re.compile("[\ud800-\udfff]")
_UNPRINTED = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
_BITS = {name: round(size * 8) for name, size in DTYPE_BYTES.items()}

Read = Callable[[str, int, int], bytes]
"""(file name, first byte, end) -> exactly those bytes, or a Fault."""


def read_header(name: str, size: int, where: str, read: Read) -> list[Tensor]:
    """The tensors of one safetensors file of `size` bytes. Raises Fault DC204 where the file is not what it must be."""
    if size < 8:
        raise faults.bad_header(name, where, f"{size} bytes are too few for a safetensors file.")
    start = read(name, 0, 8)
    length = int.from_bytes(start, "little")
    if not 2 <= length <= min(MAX_HEADER, size - 8):
        raise _something_else(name, where, start, length, size)
    return parse_header(name, where, read(name, 8, 8 + length), size - 8 - length)


def parse_header(name: str, where: str, header: bytes, data: int) -> list[Tensor]:
    """The tensors that a header's JSON names, checked against `data`, the bytes that follow it in the file."""
    try:
        entries = json.loads(header.decode(), object_pairs_hook=_each_once)  # of bytes it would take UTF-16 as well
    except _Twice as twice:
        raise faults.bad_header(name, where, f"its header names {_short(str(twice))} twice.") from None
    except (ValueError, RecursionError) as wrong:
        raise faults.bad_header(name, where, f"its header is not JSON ({wrong}).") from None
    if not isinstance(entries, dict) or header[:1] != b"{":
        raise faults.bad_header(name, where, "its header is not a JSON object.")
    metadata = entries.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(_is_text(text) for pair in metadata.items() for text in pair):
        raise faults.bad_header(name, where, "its __metadata__ is not an object of strings.")
    spans: list[tuple[int, int, str]] = []
    tensors: list[Tensor] = []
    for tensor, entry in entries.items():
        dtype, shape, begin, end = _entry(name, where, tensor, entry)
        spans.append((begin, end, tensor))
        tensors.append((tensor, dtype, shape))
    _check_spans(name, where, sorted(spans), data)
    return tensors


class _Twice(Exception):
    """A key that an object has twice: Python keeps the last of them and other readers the first."""


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        raise _Twice(next(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]
    return made


def _entry(name: str, where: str, tensor: str, entry: Any) -> tuple[str, tuple[int, ...], int, int]:
    shown = _short(tensor)
    if _UNPRINTED.search(tensor):
        raise faults.bad_header(name, where, f"the name {tensor!r:.60} has characters that no tensor's name has.")
    try:
        dtype, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
    except (TypeError, KeyError, ValueError):
        raise faults.bad_header(name, where, f"{shown} lacks dtype, shape or data_offsets.") from None
    if isinstance(shape, list) and len(shape) > MAX_DIMENSIONS:
        raise faults.bad_header(
            name, where, f"{shown} has {len(shape):,} dimensions; at most {MAX_DIMENSIONS} are possible."
        )
    numbers = [*shape, begin, end] if isinstance(shape, list) else [None]
    if not all(type(n) is int and 0 <= n < 2**63 for n in numbers):
        raise faults.bad_header(name, where, f"{shown} has a shape or offset that is no whole number.")
    bits = _BITS.get(dtype) if isinstance(dtype, str) else None
    if bits is None:
        fix = "Use a checkpoint in a dtype of the safetensors format, or a newer deployc."
        raise faults.bad_header(name, where, f"{shown} has the unknown dtype {dtype!r:.60}.", fix)
    for n in shape:
        bits *= n
        if bits >= 2**66:  # no file is so large; without a limit many large numbers would be multiplied for hours
            raise faults.bad_header(name, where, f"{shown} has an impossible shape: {shape!r:.60}.")
    if bits % 8:
        raise faults.bad_header(name, where, f"{shown}: shape {shape!r:.60} of {dtype} does not end at a whole byte.")
    if bits // 8 != end - begin:
        detail = f"{shown}: shape {shape!r:.60} of {dtype} is {bits // 8:,} bytes, its offsets span {end - begin:,}."
        raise faults.bad_header(name, where, detail)
    return dtype, tuple(shape), begin, end


def _check_spans(name: str, where: str, spans: list[tuple[int, int, str]], data: int) -> None:
    """Every byte of the data belongs to exactly one tensor."""
    at = 0
    for begin, end, tensor in spans:
        if begin != at and begin > data:
            detail = f"{_short(tensor)} begins at {begin:,}, past the {data:,} bytes that follow the header."
            raise faults.bad_header(name, where, detail)
        if begin != at:
            fault = "overlaps the tensor before it" if begin < at else "leaves a hole before it"
            detail = f"{_short(tensor)} begins at {begin:,}, which {fault} (expected {at:,})."
            raise faults.bad_header(name, where, detail)
        at = end
    if at > data:
        detail = f"its tensors take {at:,} bytes but only {data:,} follow the header: it is truncated."
        raise faults.bad_header(name, where, detail)
    if at < data:
        raise faults.bad_header(name, where, f"{data - at:,} bytes follow its last tensor that belong to none.")


def _is_text(value: Any) -> bool:
    """A string that UTF-8 can hold; JSON's escapes can spell half a surrogate pair, which it cannot."""
    return isinstance(value, str) and not _HALF.search(value)


def _short(tensor: str) -> str:
    """A name as a message has it: a header of 100 MB may be one name."""
    return tensor if len(tensor) <= 120 else f"{tensor[:120]}…"


def _something_else(name: str, where: str, start: bytes, length: int, size: int) -> faults.Fault:
    """Name what lies there under a safetensors file's name, when its first 8 bytes are no possible length."""
    if start.lstrip()[:1] == b"<":
        fix = "Download it again: a login or error page was saved in its place."
        return faults.bad_header(name, where, "it is an HTML or XML page, not a safetensors file.", fix)
    if start == b"version ":
        fix = "Run `git lfs pull` in that folder, or download it with the hub's own tool."
        return faults.bad_header(name, where, f"it is a git-lfs pointer of {size} bytes, not the file itself.", fix)
    if start[:2] in (b"PK", b"\x80\x02") or start[:1] == b"\x80":
        return faults.bad_header(name, where, "it is a pickle, not a safetensors file.")
    detail = f"its first 8 bytes give a header of {length:,} bytes; between 2 and {MAX_HEADER:,} are possible."
    if 2 <= length <= MAX_HEADER:
        detail = f"its header takes {length:,} bytes but the file ends after {size:,}: it is truncated."
    return faults.bad_header(name, where, detail)


def shards(index: Any, files: Mapping[str, int], where: str) -> dict[str, list[str]]:
    """File -> the tensors that `model.safetensors.index.json` puts there. Raises Fault DC205."""
    placed = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(placed, dict) or not placed:
        raise faults.bad_shards(where, f"{INDEX} has no weight_map.")
    by_file: dict[str, list[str]] = {}
    for tensor, file in placed.items():
        if not isinstance(file, str):
            raise faults.bad_shards(where, f"{INDEX} puts {tensor} into {file!r}, which is no file name.")
        by_file.setdefault(file, []).append(tensor)
    if missing := sorted(set(by_file) - set(files)):
        shown = ", ".join(missing[:3]) + (" …" if len(missing) > 3 else "")
        raise faults.bad_shards(where, f"{len(missing)} of {len(by_file)} shards are missing: {shown}.")
    return dict(sorted(by_file.items()))


def check_shard(file: str, promised: Sequence[str], tensors: Sequence[Tensor], where: str) -> None:
    """A shard holds exactly what the index promises; so no tensor is in two shards either. Raises Fault DC205."""
    want, have = set(promised), {name for name, _, _ in tensors}
    if lacking := sorted(want - have):
        raise faults.bad_shards(where, f"{file} lacks {len(lacking)} tensors of the index, e.g. {lacking[0]}.")
    if extra := sorted(have - want):
        raise faults.bad_shards(
            where, f"{file} has {len(extra)} tensors that the index puts elsewhere, e.g. {extra[0]}."
        )
