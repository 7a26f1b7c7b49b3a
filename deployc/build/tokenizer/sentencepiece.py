"""The pieces of a sentencepiece model, read from its protobuf without a library.

Fields after sentencepiece's `sentencepiece_model.proto`: ModelProto.pieces = 1; SentencePiece.piece = 1, type = 3
(NORMAL 1, UNKNOWN 2, CONTROL 3, USER_DEFINED 4, UNUSED 5, BYTE 6). A piece's id is its place.
"""

from __future__ import annotations

from collections.abc import Iterator

CONTROL, USER_DEFINED = 3, 4
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def pieces(raw: bytes) -> list[tuple[str, int]] | None:
    """(piece, type) by id; None where this is no sentencepiece model (tiktoken's files are named `.model` too)."""
    try:
        found = [_piece(value) for field, value in _fields(raw) if field == 1 and isinstance(value, bytes)]
    except (ValueError, IndexError):
        return None
    return found or None


def _piece(raw: bytes) -> tuple[str, int]:
    text, kind = "", 1
    for field, value in _fields(raw):
        if field == 1 and isinstance(value, bytes):
            text = value.decode()
        elif field == 3 and isinstance(value, int):
            kind = value
    return text, kind


def _fields(raw: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Field number and value of each field of one message. Raises ValueError, IndexError where it is none."""
    at = 0
    while at < len(raw):
        tag, at = _varint(raw, at)
        field, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, at = _varint(raw, at)
            yield field, value
            continue
        if wire == _BYTES:
            size, at = _varint(raw, at)
        else:
            size = {_FIXED64: 8, _FIXED32: 4}.get(wire, -1)
        if field == 0 or size < 0 or at + size > len(raw):
            raise ValueError("no protobuf message")
        yield field, raw[at : at + size]
        at += size


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = raw[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise ValueError("no varint")
