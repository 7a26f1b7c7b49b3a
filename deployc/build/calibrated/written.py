"""What llm-compressor wrote, held against what was planned, and put in place under its names."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from deployc.build.calibrated import faults
from deployc.build.weights.safetensors_file import Reader, sha256, sync
from deployc.facts.faults import Fault
from deployc.types.groups import Tensor
from deployc.types.scheme import Scheme

UNFINISHED = ".calibrated.partial"
"""The folder that the library writes into, within the artifact's; gone when all is in place, or when it fails."""


def expected(tensors: Iterable[Tensor], schemes: Mapping[str, Scheme]) -> set[Tensor]:
    """The artifact's tensors: those of the 16-bit model, each quantized one replaced by what its scheme stores."""
    found: set[Tensor] = set()
    for name, dtype, shape in tensors:
        if (scheme := schemes.get(name)) is None:
            found.add((name, dtype, shape))
            continue
        module = name.rpartition(".")[0]
        out, inner = shape
        found |= {(f"{module}.{parameter}", kind, size) for parameter, kind, size in scheme.stored(out, inner)}
    return found


def fresh(into: Path) -> Path:
    """An empty folder for the library, where a run before this one may have left another."""
    folder = into / UNFINISHED
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def place(folder: Path, into: Path, planned: set[Tensor], source: str) -> dict[str, Any]:
    """Check the shards in `folder`, sync them, and move them to `into`: {shards: {name: {bytes, sha256}}, config}.

    `config` is `quantization_config` of the config.json beside them. Raises Fault DC264 before anything is moved.
    """
    names = sorted(path.name for path in folder.glob("*.safetensors"))
    _compare(folder, names, planned, source)
    shards: dict[str, dict[str, Any]] = {}
    for name in names:
        path = folder / name
        path.chmod(0o644)  # the library makes it private; the engine's user must read it
        sync(path)
        shards[name] = {"bytes": path.stat().st_size, "sha256": sha256(path)}
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))["quantization_config"]
    for name in names:
        (folder / name).replace(into / name)
    sync(into)
    return {"shards": shards, "quantization_config": config}


def _compare(folder: Path, names: Sequence[str], planned: set[Tensor], source: str) -> None:
    found: set[Tensor] = set()
    for name in names:
        with Reader(folder / name, source) as reader:
            found |= {(slot.name, slot.dtype, slot.shape) for slot in reader.slots}
    if differing := found ^ planned:
        raise Fault(faults.other_tensors(sorted({name for name, _, _ in differing})))
