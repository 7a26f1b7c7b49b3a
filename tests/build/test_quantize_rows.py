"""Rows of every format against compressed-tensors' own functions, to the byte; however they are split."""

from __future__ import annotations

from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import FORMATS, compressed, decompressed, same, scheme

if find_spec("torch"):  # else the marker says whether that is a failure
    import torch

    from deployc.build.quantize import rows

pytestmark = pytest.mark.build
DTYPES = ("bfloat16", "float16")


def stored(weights: str, values: Any, group: int = 32) -> dict[str, Any]:
    """Parameter -> tensor, as our own code makes it of a whole layer."""
    ours = scheme(weights, group)
    made = rows.stored(ours, "m", values) | rows.constants(ours, "m", tuple(values.shape))
    return {name.removeprefix("m."): tensor for name, tensor in made.items()}


def every_value(dtype: str) -> Any:
    """All finite values of a 16-bit dtype in rows of 128 in ascending order, so that each row spans few magnitudes."""
    bits = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16)
    values = bits.view(getattr(torch, dtype))
    finite = values[torch.isfinite(values)]
    return finite[: finite.numel() // 128 * 128].view(-1, 128)


def noise(dtype: str, shape: tuple[int, int], size: float = 0.02) -> Any:
    return (torch.randn(shape, generator=torch.Generator().manual_seed(3)) * size).to(getattr(torch, dtype))


def layer(kind: str, dtype: str) -> Any:
    values = every_value(dtype)
    if kind == "mixed":
        order = torch.randperm(values.numel(), generator=torch.Generator().manual_seed(1))
        return values.flatten()[order].view(-1, 128)
    if kind == "constant":
        return values[:, :1].expand(-1, 128).contiguous()
    if kind == "outlier":
        spiked = noise(dtype, (64, 128))
        spiked[:, 5] *= torch.logspace(0, 4, 64).to(spiked.dtype)
        return spiked
    shapes = {"ascending": values, "zeros": torch.zeros_like(values[:3]), "minus zeros": -torch.zeros_like(values[:3])}
    return shapes.get(kind, noise(dtype, (96, 256)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weights", FORMATS)
@pytest.mark.parametrize("kind", ["ascending", "mixed", "constant", "outlier", "zeros", "minus zeros", "noise"])
def test_equal_to_the_library_to_the_byte(kind: str, weights: str, dtype: str) -> None:
    values = layer(kind, dtype)
    for group in (32, 64, 128) if weights.startswith("int4") else (0,):
        ours, theirs = stored(weights, values, group), compressed(weights, values, group)
        assert ours.keys() == theirs.keys()
        assert all(same(ours[name], theirs[name]) for name in ours), (group, [n for n in ours])
        names = [name for name, _, _ in scheme(weights, group).stored(*values.shape)]
        assert set(names) == ours.keys()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weights", FORMATS[:3])
@pytest.mark.parametrize("width", [1, 3, 7, 12, 30, 33, 101])
def test_widths_that_fill_no_word(width: int, weights: str, dtype: str) -> None:
    values = noise(dtype, (5, width))
    ours, theirs = stored(weights, values), compressed(weights, values)
    assert all(same(ours[name], theirs[name]) for name in theirs)
    if weights == "int8-weight-only":
        assert ours["weight_packed"].shape == (5, -(-width // 4))


@settings(max_examples=60, deadline=None)
@given(
    weights=st.sampled_from(FORMATS),
    dtype=st.sampled_from(DTYPES),
    cuts=st.lists(st.integers(1, 39), max_size=6, unique=True),
    size=st.sampled_from([1e-7, 1e-3, 1.0, 1e4]),
)
def test_any_split_of_the_rows_gives_the_same_bytes(weights: str, dtype: str, cuts: list[int], size: float) -> None:
    values = noise(dtype, (40, 96), size)
    values[7] = 0
    whole, ours = rows.stored(scheme(weights), "m", values), scheme(weights)
    bounds = [0, *sorted(cuts), 40]
    parts = [rows.stored(ours, "m", values[first:last]) for first, last in pairwise(bounds)]
    for name, tensor in whole.items():
        assert same(torch.cat([part[name] for part in parts]), tensor), name


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weights", FORMATS)
def test_nothing_is_written_into_what_came_in(weights: str, dtype: str) -> None:
    values = layer("mixed", dtype)
    before = values.clone()
    stored(weights, values)
    assert same(values, before)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weights", FORMATS)
def test_the_library_reads_it_back_within_half_a_step(weights: str, dtype: str) -> None:
    """fp8 keeps three bits after the first: half a step is 1/16 of a value, or of the smallest normal one."""
    values = noise(dtype, (64, 128))
    made = stored(weights, values)
    back = decompressed(weights, made).double()
    scales = made["weight_scale"].double().repeat_interleave(128 // made["weight_scale"].shape[1], 1)
    exact = values.double()
    step = torch.maximum(exact.abs() / 16, scales * 2**-10) if weights == "fp8" else scales / 2
    rounding = exact.abs() * 2 * torch.finfo(values.dtype).eps  # of the quotient, and of the product
    assert bool(((back - exact).abs() <= step + rounding).all())
    assert float((back - exact).abs().max()) > 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weights", FORMATS)
def test_nothing_is_infinite_or_no_number(weights: str, dtype: str) -> None:
    made = stored(weights, every_value(dtype))
    assert bool(torch.isfinite(made["weight_scale"]).all())
    assert bool((made["weight_scale"] > 0).all())
    if weights == "fp8":
        assert bool(torch.isfinite(made["weight"].float()).all())


def test_a_format_that_needs_more_than_weights_is_no_matter_of_rows() -> None:
    values = noise("bfloat16", (4, 128))
    with pytest.raises(ValueError, match="weights alone"):
        rows.stored(scheme("int4-awq"), "m", values)
