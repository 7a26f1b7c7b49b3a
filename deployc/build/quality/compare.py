"""Logits of two models on the same tokens: cross entropy, KL divergence, agreement. Runs in the build interpreter.

The reference's logits are kept in a file without a name, in the dtype they come in, until the artifact was computed: of
both models only one is in memory at a time, and nothing is rounded on the way.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import torch

from deployc.build.quality import faults
from deployc.build.quality.figures import LINES, Unit
from deployc.build.quality.samples import Scored
from deployc.build.weights.tensors import as_bytes
from deployc.facts.faults import Fault

AT_ONCE = 2**23
"""Logits compared at once: 32 MiB in float32."""


@dataclass(frozen=True, slots=True)
class _Kept:
    offset: int
    shape: tuple[int, ...]
    dtype: torch.dtype


class Logits:
    """The reference's logits of every scored token, in a file that goes with this process. A context manager."""

    def __init__(self, folder: Path) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # closed by the context that this is
        self._kept: list[_Kept] = []
        self._end = 0

    def __enter__(self) -> Logits:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._file.close()

    def keep(self, logits: torch.Tensor) -> None:
        """Add those of the next line [tokens, vocabulary]."""
        view = as_bytes(logits.contiguous())
        self._kept.append(_Kept(self._end, tuple(logits.shape), logits.dtype))
        at = 0
        while at < len(view):
            at += os.pwrite(self._file.fileno(), view[at : at + 2**30], self._end + at)
        self._end += len(view)

    def rows(self, line: int, first: int, last: int) -> torch.Tensor:
        """Rows [first, last) of a line's logits."""
        kept = self._kept[line]
        stride = kept.shape[1] * kept.dtype.itemsize
        raw, at = bytearray((last - first) * stride), 0
        with memoryview(raw) as view:
            while at < len(raw):
                at += os.preadv(self._file.fileno(), [view[at:]], kept.offset + first * stride + at)
        return torch.frombuffer(raw, dtype=kept.dtype).reshape(last - first, kept.shape[1])


def logits(model: Any, line: Scored, whose: str) -> torch.Tensor:
    """[scored tokens, vocabulary] on the CPU: of each scored token, from what is before it. Raises Fault DC265."""
    ids = torch.tensor([line.ids], device=model.device)
    found = model(input_ids=ids, use_cache=False).logits[0, line.first - 1 : -1]
    if not bool(torch.isfinite(found).all()):
        raise Fault(faults.not_finite(whose))
    kept: torch.Tensor = found.cpu()
    return kept


def units(model: Any, lines: Sequence[Scored], kept: Logits, advance: Callable[[int], None]) -> list[Unit]:
    """The sums of `figures`: a line each, or a token each where there are fewer than LINES."""
    found: list[Unit] = []
    for index, line in enumerate(lines):
        whole = logits(model, line, "the artifact")
        tokens: list[torch.Tensor] = []
        step = max(1, AT_ONCE // whole.shape[1])
        for first in range(0, len(whole), step):
            part = whole[first : first + step]
            before = kept.rows(index, first, first + len(part))
            wanted = torch.tensor(line.ids[line.first + first : line.first + first + len(part)])
            tokens.append(compared(before, part, wanted))
        rows = torch.cat(tokens)
        if len(lines) >= LINES:
            rows = rows.sum(dim=0, keepdim=True)
        found += [(round(n), a, b, kl, round(same)) for n, a, b, kl, same in rows.tolist()]
        advance(line.tokens)
    return found


def compared(reference: torch.Tensor, artifact: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """[tokens, 5] in float64: 1, -ln p of the wanted token by either, KL(reference || artifact), 1 where they agree.

    They agree where the artifact's likeliest token is among the reference's: at 16 bit two may be equally likely.
    """
    p, q = (torch.log_softmax(logits.float(), dim=-1) for logits in (reference, artifact))
    column = wanted.unsqueeze(1)
    kl = (p.exp() * (p - q)).sum(dim=-1).clamp_(min=0)
    likeliest = artifact.argmax(dim=-1, keepdim=True)
    same = reference.gather(1, likeliest).squeeze(1) == reference.amax(dim=-1)
    said = [torch.ones_like(kl), -p.gather(1, column).squeeze(1), -q.gather(1, column).squeeze(1), kl, same.float()]
    return torch.stack([part.double() for part in said], dim=1)
