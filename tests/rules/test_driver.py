"""The host's driver against the CUDA of image and wheel: a line a combination of driver, card, version and setting."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from configured import A100, GIB, QWEN_7B, card, case_of, facts_of

from deployc.diagnostics import Diagnostic
from deployc.facts import engine
from deployc.facts.drivers import drivers
from deployc.rules.driver import image_runs_on_the_driver, library_belongs_here, wheel_runs_on_the_driver
from deployc.types.drivers import older
from deployc.types.facts import GpuFacts

V100 = card("v100-32", 31.7 * GIB, 0.9e12, (7, 0), 125e12, "nvlink")
GEFORCE = card("rtx-3090", 23.6 * GIB, 0.936e12, (8, 6), 71e12)


def said(
    one: GpuFacts, version: str, driver: str, env: str = "", kind: str = "docker", more: str = ""
) -> list[Diagnostic]:
    name = {"a100-80": "a100-80-sxm"}.get(one.name, one.name)
    facts = replace(facts_of(QWEN_7B, (one,), version), engine=engine.load(version))
    given = f", driver: '{driver}'" if driver else ""
    case = case_of(
        facts,
        hardware=f"{{gpu: {name}{given}}}",
        engine=f"{{version: {version}, env: {{{env}}}{more}}}",
        target=f"{{kind: {kind}}}",
    )
    rules = (image_runs_on_the_driver, wheel_runs_on_the_driver, library_belongs_here)
    return [found for rule in rules for found in rule(case)]


LIBRARY = 'VLLM_ENABLE_CUDA_COMPATIBILITY: "1"'
UNCHECKED = 'NVIDIA_DISABLE_REQUIRE: "1"'


@pytest.mark.parametrize(
    ("one", "version", "driver", "env", "expected", "words"),
    [
        (A100, "0.33.0", "580.65.06", "", "", ""),  # knows CUDA 13.0
        (A100, "0.33.0", "590", "", "", ""),  # a branch: its newest
        (A100, "0.33.0", "", "", "", ""),  # nothing is known
        (GEFORCE, "0.33.0", "575.64.03", "", "error", "are not for GeForce cards, and rtx-3090 is one"),
        (GEFORCE, "0.11.0", "570.133.07", "", "", ""),
        (GEFORCE, "0.11.0", "550.90.07", "", "error", 'unsatisfied condition: cuda>=12.8"'),
        (GEFORCE, "0.11.0", "550.90.07", UNCHECKED, "error", "error 804"),  # the image loads the library all the same
        (GEFORCE, "0.19.0", "570.133.07", UNCHECKED, "warning", "fewer features"),
        (GEFORCE, "0.33.0", "570.133.07", UNCHECKED, "error", "too old"),
        (GEFORCE, "0.8.5", "535.104.05", "", "error", "error 804"),  # that image lets GeForce cards start
        (V100, "0.8.5", "530.30.02", "", "error", "branches 470, 525, 535"),
        (V100, "0.8.5", "535.104.05", "", "warning", "library"),
        (A100, "0.11.0", "535.104.05", "", "warning", "library"),  # up to 0.16 the image always loads it
        (A100, "0.11.0", "525.147.05", "", "error", "branches 470, 535, 550, 560, 565"),
        (A100, "0.19.0", "535.104.05", "", "note", "fewer features"),  # from 0.17 on where it is asked to
        (A100, "0.19.0", "535.104.05", LIBRARY, "warning", "library"),
        (A100, "0.33.0", "570.133.20", "", "error", "too old"),
        (A100, "0.33.0", "570.133.20", LIBRARY, "warning", "library"),
        (A100, "0.33.0", "560.35.05", "", "error", "branches 535, 550, 565, 570, 575"),
        (A100, "0.33.0", "390.157", "", "error", "is older than CUDA 11.4"),
    ],
)
def test_image(one: GpuFacts, version: str, driver: str, env: str, expected: str, words: str) -> None:
    found = said(one, version, driver, env)
    assert [(d.code, str(d.severity)) for d in found] == ([("DC570", expected)] if expected else [])
    assert all(words in d.detail for d in found)


@pytest.mark.parametrize(
    ("one", "version", "driver", "env", "expected", "words"),
    [
        (A100, "0.19.0", "535.104.05", "", "", ""),  # any CUDA 12 runs from 525 on
        (GEFORCE, "0.19.0", "525.60.13", "", "", ""),
        (GEFORCE, "0.19.0", "520.61.05", "", "error", "needs driver 525.60.13 or newer"),
        (A100, "0.33.0", "570.133.20", "", "error", "needs driver 580.65.06 or newer"),
        (A100, "0.33.0", "570.133.20", "LD_LIBRARY_PATH: /usr/local/cuda-13.0/compat", "warning", "mends it"),
        (GEFORCE, "0.33.0", "570.133.20", "LD_LIBRARY_PATH: /usr/local/cuda-13.0/compat", "error", "error 804"),
        (A100, "0.33.0", "570.133.20", LIBRARY, "warning", "mends it"),
        (A100, "0.16.0", "520.61.05", LIBRARY, "error", "needs driver 525.60.13"),  # not read by that version
        (GEFORCE, "0.33.0", "580", "", "", ""),
    ],
)
@pytest.mark.parametrize("kind", ["process", "systemd"])
def test_wheel(one: GpuFacts, version: str, driver: str, env: str, expected: str, words: str, kind: str) -> None:
    found = said(one, version, driver, env, kind)
    assert [(d.code, str(d.severity)) for d in found] == ([("DC571", expected)] if expected else [])
    assert all(words in d.detail for d in found)


def test_fixes_name_what_the_driver_runs_as_it_is() -> None:
    (geforce,) = said(GEFORCE, "0.33.0", "575.64.03")
    assert geforce.fix == (
        "update the driver to 580.65.06 or newer; or set engine.version to 0.19.1 or an older one, made for CUDA 12.9; "
        "or name this version's image of CUDA 12.9 in engine.image (tags with -cu129)"
    )
    (a100,) = said(A100, "0.33.0", "570.133.20")
    assert a100.fix.startswith('set engine.env.VLLM_ENABLE_CUDA_COMPATIBILITY: "1"; or update the driver to 580.65.06')
    assert "engine.image" in a100.fix  # which lets this branch start
    (process,) = said(A100, "0.33.0", "570.133.20", kind="process")
    assert 'install cuda-compat-13-0 and set engine.env.VLLM_ENABLE_CUDA_COMPATIBILITY: "1"' in process.fix
    (before,) = said(A100, "0.16.0", "520.61.05", kind="process")
    assert "install cuda-compat-12-9 and set engine.env.LD_LIBRARY_PATH: /usr/local/cuda-12.9/compat" in before.fix
    (old,) = said(GEFORCE, "0.33.0", "390.157", kind="process")
    assert old.fix == "update the driver to 580.65.06 or newer"


@pytest.mark.parametrize(
    ("one", "version", "driver", "expected"),
    [
        (GEFORCE, "0.33.0", "580.65.06", [("DC572", "error")]),
        (GEFORCE, "0.33.0", "", [("DC572", "error")]),
        (A100, "0.33.0", "580.65.06", [("DC572", "warning")]),
        (A100, "0.33.0", "", []),  # nothing says that it is not needed
        (A100, "0.33.0", "570.133.20", [("DC570", "warning")]),
        (A100, "0.16.0", "580.65.06", []),  # not read by that version
    ],
)
def test_the_library_where_it_has_no_place(
    one: GpuFacts, version: str, driver: str, expected: list[tuple[str, str]]
) -> None:
    assert [(d.code, str(d.severity)) for d in said(one, version, driver, LIBRARY)] == expected


def test_an_image_of_ones_own_counts_by_its_tag() -> None:
    other = ", image: vllm/vllm-openai:v0.33.0-cu129-ubuntu2404"
    assert said(GEFORCE, "0.33.0", "575.64.03", more=other) == []
    (found,) = said(GEFORCE, "0.33.0", "570.133.20", more=other)
    assert "the image is of CUDA 12.9" in found.detail
    assert said(GEFORCE, "0.33.0", "450.80.02", more=", image: registry.example/own:1") == []
    assert said(GEFORCE, "0.33.0", "450.80.02", kind="process", more=", python: /opt/own/bin/python") == []


def test_the_driver_that_nvml_told_counts_where_the_file_says_none() -> None:
    (seen,) = said(replace(GEFORCE, driver="550.90.07"), "0.33.0", "")
    assert seen.code == "DC570"
    assert said(replace(GEFORCE, driver="550.90.07"), "0.33.0", "580.65.06") == []


@pytest.mark.parametrize(
    ("version", "than", "expected"),
    [("570", "570.26", False), ("570.20", "570.26", True), ("570.26", "570.26", False), ("569.99", "570.26", True),
     ("570.124.06", "570.26", False), ("12.9", "13.0", True), ("12.10", "12.9", False)],
)  # fmt: skip
def test_versions_are_compared_as_far_as_written(version: str, than: str, expected: bool) -> None:
    assert older(version, than) is expected


def test_the_shipped_tables_rise_and_meet() -> None:
    """Every CUDA of an engine's image has a row in both tables, and drivers rise with CUDA."""
    known = drivers()
    firsts = list(known.by_cuda.values())
    assert all(older(one, next_) for one, next_ in pairwise(firsts))
    assert [cuda for _, cuda in known.engine_images] == ["12.4", "12.8", "12.9", "13.0"]
    for _, cuda in known.engine_images:
        assert known.base(cuda).branches
        assert cuda in known.by_cuda
        assert cuda.partition(".")[0] in known.by_major
    assert {"rtx-4090", "rtx-5090"} <= set(known.geforce)
    assert not {"l4", "a100-80", "rtx-a6000", "t4"} & set(known.geforce)
