"""profiles/engines/formats.json: it is whole, rises by version, and its kernels take what they say."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any, get_args

import pytest

from deployc.data import profiles
from deployc.facts.catalogue.history import release
from deployc.facts.engine import versions
from deployc.facts.formats import FILE, formats
from deployc.types.formats import Layer, Method, PackedKernel

READ: dict[str, Any] = json.loads((profiles() / "engines" / FILE).read_bytes())


@pytest.mark.parametrize("version", versions())
def test_every_version_has_its_formats(version: str) -> None:
    found = formats(version)
    assert found.kernels.keys() == set(get_args(Method))
    assert all(found.kernels[method] for method in found.kernels if method != "gptq_plain")
    assert found.pads_since == "0.24.0"


@pytest.mark.parametrize("name", sorted(READ["behaviours"]))
def test_entries_rise_and_say_where_they_are_from(name: str) -> None:
    entries = READ["behaviours"][name]
    since = [release(entry["since"]) for entry in entries]
    assert since == sorted(set(since))
    assert since[0] == release("0.8.0")
    assert all(entry["source"] for entry in entries)
    assert all(a["value"] != b["value"] for a, b in pairwise(entries))


def test_no_kernel_is_there_for_nothing() -> None:
    listed = {name for method in get_args(Method) for entry in READ["behaviours"][method] for name in entry["value"]}
    assert listed == READ["kernels"].keys()


def marlin(pads: bool) -> PackedKernel:
    tiles = ((64, 128), (128, 64)) if pads else ((64, 128),)
    return PackedKernel("Marlin", (7, 5), None, (4, 8), (0, 32, 64, 128), False, "yes", (), tiles, pads, slow=False)


@pytest.mark.parametrize(
    ("outputs", "inputs", "group", "fits", "padded"),
    [
        (8192, 7392, 0, False, (8192, 7424)),  # 58 x 128 is as many as 116 x 64
        (2048, 10944, 0, True, (2048, 10944)),  # by the second tile
        (960, 576, 64, False, (1024, 576)),
        (100, 100, 32, False, (128, 128)),
    ],
)
def test_padding_is_the_cheapest_of_the_tiles(
    outputs: int, inputs: int, group: int, fits: bool, padded: tuple[int, int]
) -> None:
    """As marlin_padded_nk of vLLM 0.24.0 computes it, by hand."""
    layer = Layer(4, group, False, False, outputs, inputs, split=False)
    assert (marlin(True).fits(layer), marlin(True).padded(layer)) == (fits, padded)


def test_what_a_kernel_runs() -> None:
    layer, kernel = Layer(4, 128, False, True, 64, 128, split=True), marlin(False)
    assert kernel.runs(layer, (7, 5), "bfloat16")
    assert not kernel.runs(layer, (7, 0), "bfloat16")
    assert not kernel.runs(Layer(4, 48, False, False, 64, 128, False), (8, 0), "bfloat16")
    assert not kernel.runs(Layer(4, 128, True, False, 64, 128, False), (8, 0), "bfloat16")
    assert not kernel.runs(Layer(3, 128, False, False, 64, 128, False), (8, 0), "bfloat16")
    exllama = PackedKernel("E", (6, 0), None, (4,), (), False, "whole", ("float16",), ((8, 1),), False, True)
    assert exllama.runs(Layer(4, 48, False, True, 64, 128, split=False), (7, 5), "float16")
    assert not exllama.runs(Layer(4, 48, False, True, 64, 128, split=True), (7, 5), "float16")
    assert not exllama.runs(Layer(4, 48, False, False, 64, 128, False), (7, 5), "bfloat16")
    assert not exllama.runs(Layer(4, 0, False, False, 64, 128, False), (7, 5), "float16")
