"""A LoRA pair's part of a tensor: W + scale · B A, and DoRA's m · V / |V| of that. Runs in the build interpreter."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from deployc.build.merge.files import Tensors, whole
from deployc.build.weights.tensors import as_single
from deployc.types.merging import Part


@dataclass(frozen=True, slots=True)
class Low:
    """The tensor's rows are those of `left`: left [rows, r], right [r, columns]; `factor` scales their product."""

    left: torch.Tensor
    right: torch.Tensor
    factor: float

    def add(self, base: torch.Tensor, first: int, weight: float = 1.0) -> torch.Tensor:
        """Rows from `first` on of W + weight · factor · left right, in place."""
        flat = base.view(len(base), -1)
        flat.addmm_(self.left[first : first + len(base)], self.right, alpha=as_single(weight * self.factor))
        return base


@dataclass(frozen=True, slots=True)
class Stacked:
    """One pair an expert, each [out, in] or [in, out] of a tensor [experts, …]."""

    pairs: list[Low]

    def add(self, base: torch.Tensor, first: int, weight: float = 1.0) -> torch.Tensor:
        """Experts from `first` on, in place."""
        for expert, pair in zip(base, self.pairs[first:], strict=False):
            pair.add(expert, 0, weight)
        return base


@dataclass(frozen=True, slots=True)
class Dora:
    """m · V / |V| with V = W + scale · B A: |V| is the norm of what leads to one output (peft, `DoraLinearVariant`).

    `norms` are those of the columns where the tensor is [in, out]; else of each row, taken when the row comes.
    """

    low: Low
    magnitude: torch.Tensor
    norms: torch.Tensor | None

    def of(self, base: torch.Tensor, first: int) -> torch.Tensor:
        """Rows from `first` on, in place."""
        values = self.low.add(base, first)
        if self.norms is not None:
            return values.mul_(self.magnitude / self.norms)
        magnitude = self.magnitude[first : first + len(values)]
        return values.mul_((magnitude / torch.linalg.vector_norm(values, dim=1)).unsqueeze(1))


def low(part: Part, tensors: Tensors) -> Low | Stacked:
    """The pair of a part, read into memory."""
    a, b = (whole(tensors, name) for name in part.of[:2])
    if part.experts:
        return _of_experts(part, a, b)
    a, b = a.reshape(len(a), -1), b.reshape(len(b), -1)  # a convolution's B A, laid out flat
    return Low(a.T.contiguous(), b.T, part.factor) if part.transposed else Low(b, a, part.factor)


def dora(part: Part, tensors: Tensors, base: Iterable[torch.Tensor]) -> Dora:
    """`base` gives all rows of the tensor before, block by block; read only where the norms need them."""
    pair = low(part, tensors)
    if not isinstance(pair, Low):
        raise TypeError(f"{part.tensor}: DoRA on stacked experts")
    magnitude = whole(tensors, part.of[2]).reshape(-1)
    if not part.transposed:
        return Dora(pair, magnitude, None)
    squares, first = torch.zeros(len(magnitude), dtype=torch.float64), 0
    for rows in base:
        squares += pair.add(rows, first).double().square().sum(0)
        first += len(rows)
    return Dora(pair, magnitude, squares.sqrt().float())


def _of_experts(part: Part, a: torch.Tensor, b: torch.Tensor) -> Low | Stacked:
    r = len(a) // part.experts
    first, last = part.outputs or (0, len(b))

    def one(expert: int) -> Low:
        left, right = b[first:last, expert :: part.experts], a[expert * r : (expert + 1) * r]
        if part.transposed:
            return Low(right.T.contiguous(), left.T.contiguous(), part.factor)
        return Low(left.contiguous(), right, part.factor)

    return Stacked([one(n) for n in range(part.experts)]) if part.expert is None else one(part.expert)
