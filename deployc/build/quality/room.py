"""Memory and disk that measuring takes, known before the first weight is read. Runs in the build interpreter."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import torch

from deployc.build.available import available
from deployc.build.quality import faults
from deployc.build.quality.samples import Scored
from deployc.facts.faults import Fault
from deployc.units import show_bytes

BESIDE = 2**30
"""What the libraries hold themselves, and one layer's weights in several forms while it is undone."""
SPARE = 16 * 2**20


def device(weights: int, logits: int, asked: str | None = None) -> tuple[str, str]:
    """Where the models run, and why it is not the GPU if there is one. Raises Fault DC266.

    `weights` is bytes of one model at 16 bit, `logits` those of the longest line. Both models lie in the host's memory
    while they are loaded, one after the other.
    """
    needed = weights + 4 * logits + BESIDE
    if (free := available()) is not None and free < needed:
        parts = f"a model at 16 bit {show_bytes(weights)}, logits of a line {show_bytes(4 * logits)}, the rest 1 GiB"
        raise Fault(faults.little_memory(free, needed, parts))
    if asked is not None or not torch.cuda.is_available():
        return asked or "cpu", ""
    room, _ = torch.cuda.mem_get_info()
    if room >= needed:
        return "cuda", ""
    return "cpu", f"The GPU has {show_bytes(room)} free and the models take {show_bytes(needed)}: the CPU ran them."


def check_disk(folder: Path, lines: Sequence[Scored], row: int) -> None:
    """Raises Fault DC266 where the logits of the reference, `row` bytes a token, do not fit."""
    needed = sum(line.tokens for line in lines) * row
    disk = os.statvfs(folder)
    if (free := disk.f_bavail * disk.f_frsize) < needed + SPARE:
        raise Fault(faults.little_disk(str(folder), free, needed + SPARE))
