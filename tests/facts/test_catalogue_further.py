"""Environment variables, quantization methods, image and ladder of LoRA ranks: on made sources and as shipped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_engine import small_engine

from deployc.data import profiles
from deployc.facts import engine
from deployc.facts.catalogue import Unreadable
from deployc.facts.catalogue.image import image_facts
from deployc.facts.catalogue.methods import methods
from deployc.facts.catalogue.source import Tree
from deployc.facts.catalogue.variables import variables
from deployc.types.facts import Method


def test_variables_by_how_they_are_read(tmp_path: Path) -> None:
    """A name that is only set is not read, nor is one that a variable holds; a default that is computed is left out."""
    assert variables(small_engine(tmp_path)) == {
        "ABSENT": {},
        "ASKED_FOR": {},
        "PUT": {},
        "TAKEN": {},
        "VLLM_LEVEL": {"choices": ["low", "high"], "default": "low"},
        "VLLM_MAIN_CUDA_VERSION": {"default": ""},
        "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS": {"kind": "bool", "default": "1"},
        "VLLM_PORT": {},
        "VLLM_ROOT": {},
        "VLLM_USE_V2_MODEL_RUNNER": {"kind": "bool"},
        "VLLM_WAIT": {"kind": "float", "default": "0.5"},
        "XDG_HOME": {},
    }


def test_variables_that_no_table_names_are_refused(tmp_path: Path) -> None:
    changed = small_engine(tmp_path, envs=('"VLLM_PORT":', "NAME_OF_PORT:"))
    with pytest.raises(Unreadable, match=r"vllm/envs\.py:\d+: a variable whose name is no literal"):
        variables(changed)


def test_methods_by_their_classes(tmp_path: Path) -> None:
    """Through a local variable, a shared class, inheritance; what a class says under a condition is not taken."""
    asked = {"least": [7, 5], "dtypes": ["bfloat16", "float16"]}
    assert methods(small_engine(tmp_path)) == {
        "either": {"least": [8, 0]},
        "fast": asked,
        "gguf": {"plugin": "vllm-gguf-plugin"},
        "old": {"least": [8, 0], "deprecated": True},
        "plain": {},
        "short": asked,
    }


def test_a_page_on_a_method_that_is_there_names_no_plugin(tmp_path: Path) -> None:
    assert methods(_changed(tmp_path, '"plain", "short"]', '"plain", "short", "gguf"]'))["gguf"] == {}


def test_a_list_without_classes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="no method_to_config"):
        methods(_changed(tmp_path, "method_to_config: dict[str, type] =", "other ="))


def _changed(folder: Path, old: str, new: str) -> Tree:
    """The made sources with another list of methods."""
    tree = small_engine(folder)
    place = folder / "vllm/model_executor/layers/quantization/__init__.py"
    text = place.read_text()
    assert old in text
    place.write_text(text.replace(old, new))
    return tree


@pytest.mark.parametrize(
    ("changed", "name", "found"),
    [
        ({}, "cuda_compat", ("asked", "docker/Dockerfile:5")),
        ({"Dockerfile": ("ENV VLLM_ENABLE", "ENV OTHER")}, "cuda_compat", ("", "docker/Dockerfile")),
        (
            {"Dockerfile": ("ENV VLLM_ENABLE_CUDA_COMPATIBILITY=0", "RUN ldconfig /usr/local/cuda-$V/compat/")},
            "cuda_compat",
            ("always", "docker/Dockerfile:5"),
        ),
        ({}, "wheel_cuda", ("13.0", "vllm/envs.py:5")),
        ({"setup": ("version =", 'MAIN_CUDA_VERSION = "12.4"\nversion =')}, "wheel_cuda", ("12.4", "setup.py:1")),
        ({}, "lora_ranks", ([8, 16, 64], "vllm/config/lora.py:9")),
        ({"lora": ("Ranks =", "MaxLoRARanks =")}, "lora_ranks", ([8, 64], "vllm/config/lora.py:2")),
    ],
)
def test_image_wheel_and_ladder(changed: dict[str, Any], name: str, found: tuple[Any, str], tmp_path: Path) -> None:
    assert image_facts(small_engine(tmp_path, **changed))[name] == found


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"envs": ('or "13.0"', "")}, "which CUDA the wheel is built for"),
        ({"lora": ("possible_max_ranks", "other")}, "no ladder of ranks"),
    ],
)
def test_what_is_not_found_is_said(changed: dict[str, Any], why: str, tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match=why):
        image_facts(small_engine(tmp_path, **changed))


# looked up by hand in the sources of the version: file and line
METHODS = {
    ("0.8.5", "awq"): Method((7, 5), dtypes=("float16",)),  # quantization/awq.py:66, :70
    ("0.8.5", "awq_marlin"): Method((8, 0), dtypes=("bfloat16", "float16")),  # quantization/awq_marlin.py:93
    ("0.9.2", "gguf"): Method((6, 0), dtypes=("bfloat16", "float16", "float32")),  # quantization/gguf.py:39
    ("0.14.1", "fp8"): Method((7, 5), dtypes=("bfloat16", "float16")),  # quantization/fp8.py
    ("0.14.1", "hqq"): Method((8, 0), dtypes=("bfloat16", "float16"), deprecated=True),  # quantization/__init__.py:45
    ("0.23.0", "gguf"): Method((6, 0), dtypes=("bfloat16", "float16", "float32")),  # quantization/gguf.py
    ("0.24.0", "gguf"): Method(plugin="vllm-gguf-plugin"),  # docs/features/quantization/gguf.md:12
    ("0.27.1", "bitsandbytes"): Method((7, 0), dtypes=("bfloat16", "float16", "float32")),
    ("0.28.0", "bitsandbytes"): Method(plugin="vllm-bnb-plugin"),  # docs/features/quantization/bnb.md:12
    ("0.33.0", "mxfp4"): Method((8, 0), dtypes=("bfloat16",)),  # quantization/mxfp4.py:71, :79
    ("0.33.0", "auto_gptq"): Method((6, 0), dtypes=("bfloat16", "float16")),  # quantization/auto_gptq.py:178, :182
    ("0.33.0", "deepseek_v4_fp8"): Method(
        (7, 5), dtypes=("bfloat16", "float16")
    ),  # Fp8Config's: quantization/fp8.py:142
}


@pytest.mark.parametrize(("version", "name"), METHODS)
def test_shipped_methods(version: str, name: str) -> None:
    assert engine.load(version).methods[name] == METHODS[version, name]


@pytest.mark.parametrize(
    ("name", "last", "first"),
    [("aqlm", "0.10.0", "0.10.1"), ("hqq", "0.14.1", "0.16.0"), ("cpu_awq", "0.22.1", "0.23.0")],
)
def test_methods_go(name: str, last: str, first: str) -> None:
    assert name in engine.load(last).methods
    assert name not in engine.load(first).methods


@pytest.mark.parametrize(
    ("name", "last", "first"),
    [
        ("VLLM_USE_V1", "0.11.0", "0.11.1"),  # 0.11.0 vllm/envs.py:900
        ("VLLM_ATTENTION_BACKEND", "0.14.1", "0.16.0"),  # 0.14.1 vllm/envs.py:687
        ("VLLM_MOE_DP_CHUNK_SIZE", "0.19.1", "0.20.0"),
    ],
)
def test_variables_go(name: str, last: str, first: str) -> None:
    assert name in engine.load(last).variables
    assert name not in engine.load(first).variables


def test_variables_that_stay_are_read_outside_the_table_too() -> None:
    known = engine.load("0.33.0").variables
    assert {"VLLM_CPU_KVCACHE_SPACE", "VLLM_API_KEY", "CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH"} <= set(known)


@pytest.mark.parametrize(("version", "ranks", "wheel", "compat"), [
    ("0.8.5", (8, 16, 32, 64, 128, 256, 320, 512), "12.4", "always"),  # config.py:2677, setup.py:57, Dockerfile:50
    ("0.11.0", (8, 16, 32, 64, 128, 256, 320, 512), "12.8", "always"),  # config/lora.py:104, envs.py:376
    ("0.11.1", (1, 8, 16, 32, 64, 128, 256, 320, 512), "12.8", "always"),  # config/lora.py:26, envs.py:439
    ("0.16.0", (1, 8, 16, 32, 64, 128, 256, 320, 512), "12.9", "always"),  # docker/Dockerfile:136
    ("0.17.1", (1, 8, 16, 32, 64, 128, 256, 320, 512), "12.9", "asked"),  # docker/Dockerfile:138
    ("0.33.0", (1, 8, 16, 32, 64, 128, 256, 320, 512), "13.0", "asked"),  # docker/Dockerfile:196, envs.py:626
])  # fmt: skip
def test_shipped_images(version: str, ranks: tuple[int, ...], wheel: str, compat: str) -> None:
    facts = engine.load(version)
    assert (facts.lora_ranks, facts.wheel_cuda, facts.cuda_compat) == (ranks, wheel, compat)


@pytest.mark.parametrize("table", ["methods", "variables"])
def test_tables_begin_with_a_known_version_and_rise(table: str) -> None:
    known = engine.versions()
    for name, entries in json.loads((profiles() / "engines" / "vllm" / f"{table}.json").read_bytes()).items():
        order = [known.index(entry[0]) for entry in entries]
        assert order == sorted(set(order)), name
        assert entries[0][1] is not None, name
