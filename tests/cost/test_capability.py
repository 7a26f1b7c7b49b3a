"""What a card runs, by version: the shipped intervals as the sources of those versions have them."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import pytest
from configured import QWEN_7B, card, choices_of, codes, facts_of

from deployc.cost.capability import (
    covered,
    eight_bit,
    has_kernels,
    interval,
    is_built,
    multiplies,
    runs,
)
from deployc.data import profiles
from deployc.facts import engine
from deployc.facts.catalogue.history import release
from deployc.facts.engine_kernels import engine_kernels
from deployc.types.facts import Facts


def on(capability: tuple[int, int], version: str = "0.32.0") -> Facts:
    facts = facts_of(QWEN_7B, (card("odd", capability=capability),), version)
    return replace(facts, engine=engine.load(version))


# (format, version, capability): how; each looked up in the sources that kernels.json names
HOW = {
    ("fp8", "0.32.0", (8, 9)): "native",  # quantization/compressed_tensors/schemes/compressed_tensors_w8a8_fp8.py
    ("fp8", "0.32.0", (7, 5)): "weight-only",  # quantization/utils/marlin_utils_fp8.py:31
    ("fp8", "0.13.0", (7, 5)): "",  # quantization/utils/marlin_utils_fp8.py:25, 80
    ("fp8", "0.13.0", (8, 0)): "weight-only",
    ("fp8", "0.9.1", (12, 0)): "",  # csrc/quantization/cutlass_w8a8/scaled_mm_entry.cu:172
    ("fp8", "0.9.2", (12, 0)): "native",
    ("int8", "0.33.0", (7, 0)): "",  # compressed_tensors_w8a8_int8.py, 75
    ("int8", "0.33.0", (9, 0)): "native",
    ("int8", "0.33.0", (10, 0)): "",  # csrc/quantization/w8a8/cutlass/c3x/scaled_mm_helper.hpp
    ("int8", "0.10.2", (12, 0)): "",  # csrc/quantization/cutlass_w8a8/scaled_mm_c3x_sm120.cu:18
    ("int8-weight-only", "0.11.2", (7, 5)): "",  # compressed_tensors_wNa16.py:77, 80
    ("int8-weight-only", "0.12.0", (7, 5)): "weight-only",  # compressed_tensors_wNa16.py:83, 75
    ("int4", "0.33.0", (12, 0)): "weight-only",
    ("awq", "0.8.5", (7, 5)): "weight-only",  # quantization/awq.py, 75
    ("awq", "0.8.5", (7, 0)): "",
    ("gptq", "0.8.5", (7, 0)): "weight-only",  # quantization/gptq.py, 60
    ("mxfp4", "0.10.0", (9, 0)): "",
    ("mxfp4", "0.10.2", (10, 0)): "native",  # quantization/mxfp4.py:61
    ("mxfp4", "0.10.2", (8, 0)): "weight-only",
    ("nvfp4", "0.8.5", (9, 0)): "",  # quantization/modelopt.py, 100
    ("nvfp4", "0.9.2", (9, 0)): "weight-only",  # quantization/utils/marlin_utils_fp4.py:22
    ("nvfp4", "0.10.2", (12, 0)): "native",  # CMakeLists.txt:540
    ("bfloat16", "0.8.5", (7, 5)): "",  # platforms/cuda.py
    ("fp8-kv", "0.33.0", (8, 6)): "",  # v1/attention/backends/triton_attn.py:514
    ("fp8-e5m2-kv", "0.23.0", (8, 6)): "native",  # triton_attn.py has no such line yet
    ("fp8-e5m2-kv", "0.24.0", (8, 6)): "",  # triton_attn.py:472
}


@pytest.mark.parametrize(("what", "version", "capability"), HOW)
def test_how_a_format_runs(what: str, version: str, capability: tuple[int, int]) -> None:
    found = runs(on(capability, version), what)
    assert (found.how if found else "") == HOW[what, version, capability]


def test_the_kernel_is_named_where_cards_differ() -> None:
    kernels = {capability: runs(on(capability), "int4") for capability in ((8, 9), (9, 0), (10, 0))}
    assert [found.kernel for found in kernels.values() if found] == ["Marlin", "Machete", "Marlin"]
    old = runs(on((7, 5), "0.12.0"), "int4")
    assert old is not None
    assert (old.kernel, old.note) == ("Exllama", "float16 alone")


def test_the_whole_interval_is_told_and_none_where_there_is_none() -> None:
    assert interval(on((8, 9)), "int8") == ((7, 5), (10, 0))
    assert interval(on((8, 9)), "int4") == ((7, 5), None)
    assert interval(on((8, 9), "0.8.5"), "mxfp4") is None


@pytest.mark.parametrize(
    ("version", "capability", "eight"),
    [("0.32.0", (8, 6), "int8"), ("0.32.0", (8, 9), "fp8"), ("0.32.0", (12, 0), "fp8"), ("0.32.0", (7, 0), None),
     ("0.9.1", (12, 0), None), ("0.13.0", (7, 5), "int8")],
)  # fmt: skip
def test_the_8_bit_type_of_a_card(version: str, capability: tuple[int, int], eight: str | None) -> None:
    assert eight_bit(on(capability, version)) == eight


def test_a_card_of_unknown_capability_multiplies_what_others_do() -> None:
    facts = facts_of(cards=(replace(card(), compute_capability=None),))
    assert multiplies(facts, "fp8")
    assert runs(facts, "fp8") is None
    assert is_built(facts, facts.smallest)


@pytest.mark.parametrize(
    ("version", "capability", "image", "wheel"),
    [
        ("0.33.0", (7, 0), False, False),
        ("0.33.0", (7, 5), True, True),
        ("0.33.0", (8, 9), True, True),  # of torch's 8.6
        ("0.33.0", (12, 1), True, True),  # of 12.0
        ("0.19.0", (7, 0), True, True),  # docker/Dockerfile:191; torch 2.10 for CUDA 12.8 has Volta again
        ("0.9.2", (7, 0), False, True),  # torch 2.7 for CUDA 12.8 has none, that of the package index, for 12.6, has
        ("0.9.2", (12, 0), True, False),
        ("0.9.0", (12, 0), False, False),  # docker/Dockerfile:80: up to 10.0
        ("0.8.5", (10, 0), False, False),
        ("0.8.5", (7, 0), True, True),
    ],
)
def test_what_image_and_wheel_are_built_for(
    version: str, capability: tuple[int, int], image: bool, wheel: bool
) -> None:
    facts = on(capability, version)
    assert is_built(facts, facts.smallest, image=True) is image
    assert is_built(facts, facts.smallest, image=False) is wheel


def test_image_and_wheel_are_judged_by_the_target() -> None:
    facts = on((12, 0), "0.9.2")
    engine_of = {"engine": "{version: 0.9.2}"}
    assert "DC535" not in codes(facts, **engine_of, target="{kind: docker}")
    assert codes(facts, **engine_of, target="{kind: process}")["DC535"] == "error"


def test_code_runs_within_a_major_version_upwards() -> None:
    assert covered(((8, 0),), (8, 9))
    assert not covered(((8, 6),), (8, 0))
    assert not covered(((8, 0),), (9, 0))


def test_a_card_without_code_is_not_offered() -> None:
    facts = on((8, 9))
    assert has_kernels(facts, card(capability=(8, 9)), choices_of())
    assert not has_kernels(facts, card(capability=(7, 5)), choices_of())  # bfloat16
    assert has_kernels(facts, card(capability=(7, 5)), choices_of(dtype="float16"))
    assert not has_kernels(facts, card(capability=(7, 0)), choices_of(dtype="float16"))
    assert not has_kernels(facts, card(capability=(12, 0)), choices_of(weights="int8"))


def test_every_behaviour_of_the_file_is_read_and_entries_ascend() -> None:
    read = json.loads((profiles() / "engines" / "kernels.json").read_bytes())["behaviours"]
    for name, entries in read.items():
        order = [release(entry["since"]) for entry in entries]
        assert order == sorted(set(order)), name
        assert all(entry["source"] for entry in entries), name
    for version in engine.versions():
        kernels = engine_kernels(version)
        assert {f"runs.{name}" for name in kernels.runs} | {
            "without_cpu", "without_cpu_experts", "cpu_tile", "packed_byte_experts", "torch_image", "torch_wheel",
        } == read.keys()  # fmt: skip
        for known in kernels.runs.values():  # no gaps that are not meant, no overlaps
            assert all(a.before is not None and a.before <= b.since for a, b in pairwise(known))
