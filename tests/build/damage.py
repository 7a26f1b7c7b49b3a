"""Ways to damage a file of a small model or adapter."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from adapted import save

from deployc.build.weights.safetensors_file import Reader, layout

Entries = dict[str, Any]


def put(path: Path, **change: object) -> None:
    """Set keys of a JSON file."""
    path.write_text(json.dumps(json.loads(path.read_text()) | change))


def reheaded(path: Path, change: Callable[[Entries], bytes | None]) -> None:
    """Change a safetensors file's header, whose data stays; or put the bytes that `change` returns in its place."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    entries = json.loads(content[8 : 8 + length])
    text = change(entries) or json.dumps(entries).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])


def shifted(path: Path, by: int) -> None:
    """The last tensor begins and ends so many bytes later."""

    def change(entries: Entries) -> None:
        last = max((e for name, e in entries.items() if name != "__metadata__"), key=lambda e: e["data_offsets"][0])
        last["data_offsets"] = [at + by for at in last["data_offsets"]]

    reheaded(path, change)


def twice(path: Path) -> None:
    """One tensor has two entries."""

    def change(entries: Entries) -> bytes:
        text, name = json.dumps(entries), max(entries)
        return f"{text[:-1]}, {json.dumps(name)}: {json.dumps(entries[name])}}}".encode()

    reheaded(path, change)


def retyped(path: Path, ending: str, dtype: str) -> None:
    """Tensors whose names end so have another dtype; every byte of the file's data is 1."""
    with Reader(path, str(path)) as reader:
        tensors = [(s.name, dtype if s.name.endswith(ending) else s.dtype, s.shape) for s in reader.slots]
    header, _, size = layout(tensors, {})
    path.write_bytes(header + b"\1" * (size - len(header)))


def without(path: Path, ending: str) -> None:
    """Leave out the tensors whose names end so, and write the others anew."""
    with Reader(path, str(path)) as reader:
        tensors = [(slot.name, slot.dtype, slot.shape) for slot in reader.slots if not slot.name.endswith(ending)]
    save(path, tensors, 1)


def renamed(path: Path, old: str, new: str) -> None:
    """Part of every tensor's name is another."""
    reheaded(path, lambda entries: json.dumps(entries).replace(old, new).encode())
