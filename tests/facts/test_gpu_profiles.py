"""Every GPU profile: figures with unit, basis and source, in plausible ranges, and names that are never mixed up."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import get_args

import pytest
from ruamel.yaml import YAML

from deployc.data import profiles
from deployc.diagnostics import Stop
from deployc.facts import gpu_profile
from deployc.types.facts import FigureBasis, Spec

FOLDER = profiles() / "gpus"
NAMES = sorted(path.stem for path in FOLDER.glob("*.yaml"))
ASKED = {
    "rtx-3070", "rtx-3090", "rtx-4090", "rtx-4090d", "rtx-4090-48g", "rtx-4090d-48g", "rtx-5090", "a10", "a10g", "l4",
    "l40s", "t4", "v100-16", "v100-32", "rtx-a6000", "rtx-6000-ada", "rtx-pro-6000", "a30", "a100-40", "a100-80",
    "a100-80-pcie", "h20", "h100-sxm", "h100-pcie", "h100-nvl", "h200-sxm", "b200",
}  # fmt: skip
RANGES = {  # bytes, bytes/s, operations/s: below the smallest and above the largest card there is
    "memory": (7 * 2**30, 290 * 2**30),
    "bandwidth": (250e9, 9e12),
    "bf16": (40e12, 2.6e15),
    "fp16": (40e12, 2.6e15),
    "fp8": (200e12, 5.1e15),
    "int8": (100e12, 5.1e15),
    "nvlink": (50e9, 1e12),
    "pcie": (15e9, 64e9),
}
CATALOGUE_GB = re.compile(r"(\d+) GB")


def figures(name: str) -> dict[str, Spec]:
    profile = gpu_profile.load(name)
    return {**profile.figures, **profile.links}


def test_every_card_of_the_contract_has_a_profile_and_every_profile_a_name() -> None:
    assert set(NAMES) >= ASKED
    assert set(gpu_profile.names()) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_figures_have_unit_basis_and_source(name: str) -> None:
    read = YAML(typ="safe").load(FOLDER / f"{name}.yaml")
    units = {"memory": r"(MiB|GiB|B)", "int8": "TOPS", "bf16": "TFLOPS", "fp16": "TFLOPS", "fp8": "TFLOPS"}
    for key in read.keys() - {"compute_capability", "interconnect"}:
        value, basis, source = read[key].split(", ", 2)
        assert re.fullmatch(r"[\d.]+" + units.get(key, "GB/s"), value), key
        assert basis in get_args(FigureBasis), key
        assert len(source) > 5, key
        assert key in RANGES, key


@pytest.mark.parametrize("name", NAMES)
def test_figures_are_plausible(name: str) -> None:
    found = figures(name)
    for key, spec in found.items():
        low, high = RANGES[key]
        assert low <= spec.value <= high, key
    assert found["fp16"].value == found.get("bf16", found["fp16"]).value
    if "fp8" in found and "bf16" in found:
        assert found["fp8"].value == pytest.approx(2 * found["bf16"].value, rel=0.02)


@pytest.mark.parametrize("name", NAMES)
def test_units_that_a_generation_lacks_are_absent(name: str) -> None:
    profile = gpu_profile.load(name)
    assert ("fp8" in profile.figures) == (profile.compute_capability >= (8, 9))
    assert ("bf16" in profile.figures) == (profile.compute_capability >= (8, 0))
    assert ("int8" in profile.figures) == (profile.compute_capability >= (7, 5))


@pytest.mark.parametrize("name", NAMES)
def test_cuda_shows_less_than_the_catalogue_promises(name: str) -> None:
    size = CATALOGUE_GB.search((FOLDER / f"{name}.yaml").read_text())
    assert size is not None
    # the catalogue's GB are powers of 1000 for HBM and of 1024 for GDDR; the driver and ECC take up to 10 %
    assert 0.90 * int(size[1]) * 1e9 <= gpu_profile.load(name).figures["memory"].value < int(size[1]) * 2**30


def test_the_figures_that_are_measured() -> None:
    assert figures("h100-sxm")["memory"].value / 2**30 == pytest.approx(79.19, abs=0.005)
    assert figures("h200-sxm")["memory"].value / 2**30 == pytest.approx(139.80, abs=0.005)
    assert figures("h100-sxm")["memory"].basis == figures("h200-sxm")["memory"].basis == "measured"
    assert "pull/205" in figures("h100-sxm")["memory"].source


@pytest.mark.parametrize("name", ["rtx-4090", "rtx-4090d", "l40s", "rtx-5090", "l4", "t4", "rtx-4090-48g"])
def test_cards_without_nvlink(name: str) -> None:
    profile = gpu_profile.load(name)
    assert profile.interconnect == "pcie"
    assert "nvlink" not in profile.links


def test_sxm_and_pcie_differ() -> None:
    assert figures("a100-80")["bandwidth"].value == 2039e9
    assert figures("a100-80-pcie")["bandwidth"].value == 1935e9
    assert gpu_profile.load("a100-80").interconnect == "nvlink"
    assert gpu_profile.load("a100-80-pcie").interconnect == "pcie"


@pytest.mark.parametrize("name", ["rtx-4090-48g", "rtx-4090d-48g"])
def test_modified_cards_say_so(name: str) -> None:
    assert "odified card" in (FOLDER / f"{name}.yaml").read_text()
    assert figures(name)["memory"].value > 46 * 2**30
    assert figures(name)["bandwidth"].basis != "vendor"


def test_a_spelling_means_one_card_unless_it_is_a_family() -> None:
    several = {spelling for spelling, cards in gpu_profile.spellings().items() if len(cards) > 1}
    assert several == {
        "a100", "a100sxm", "a100sxm4", "a100pcie", "h100", "h10080", "v100", "v100sxm", "v100sxm2", "v100pcie",
        "rtx6000",
    }  # fmt: skip


def test_one_nvml_name_means_cards_that_differ_in_memory() -> None:
    for name, known in gpu_profile.names().items():
        assert known["nvml"], name
        for reported in known["nvml"]:
            memories = sorted(figures(other)["memory"].value for other in gpu_profile.of_nvml(reported))
            for below, above in itertools.pairwise(memories):
                assert above > 1.5 * below, reported


@pytest.mark.parametrize(
    "text",
    [
        "",
        "just text",
        "[]",
        "memory: 24GiB, vendor, x",
        'compute_capability: "8.9"\ninterconnect: pcie\nmemory: 24GiB, vendor, x\nbandwidth: 1GB/s, vendor, x',
        'compute_capability: "8.9"\ninterconnect: pcie\nmemory: 24, guessed, x',
        'compute_capability: "8.9"\ninterconnect: pcie\nmemory: 24GiB, vendor, ""\nunknown: 1',
        "compute_capability: 8.9\ninterconnect: pcie",
        "a: [",
    ],
)
def test_a_damaged_profile_is_named(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "odd.yaml").write_text(text)
    monkeypatch.setattr(gpu_profile, "_folder", lambda: tmp_path)
    with pytest.raises(Stop, match="DC669") as stop:
        gpu_profile.load.__wrapped__("odd")
    assert "odd.yaml" in next(iter(stop.value.report)).detail
