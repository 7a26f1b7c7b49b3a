"""Whole artifacts against a real run of llm-compressor on the same 16-bit models: all bytes, and what config.json says.

Runs where the quantizer's environment is; with DEPLOYC_REQUIRE_QUANTIZER=1 its absence is a failure.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import tiny
from reference import FORMATS, described, same

from deployc.types.manifest import Artifact

pytestmark = [pytest.mark.build, pytest.mark.usefixtures("inline")]
MODELS = ("llama-bfloat16-tied", "llama-bfloat16-untied", "llama-float16-tied", "llama-float16-untied", "moe-bfloat16")
SCRIPT = """
import json, sys
from compressed_tensors.quantization import QuantizationScheme
from llmcompressor import oneshot
from llmcompressor.modifiers.quantization import QuantizationModifier
from transformers import AutoModelForCausalLM
for model, out, scheme in json.load(sys.stdin):
    loaded = AutoModelForCausalLM.from_pretrained(model, dtype="auto")
    groups = {"group_0": QuantizationScheme(**scheme)}
    oneshot(model=loaded, recipe=QuantizationModifier(config_groups=groups, ignore=["lm_head"]))
    loaded.save_pretrained(out, save_compressed=True)
"""
DEFAULTED = ("observer", "zp_dtype")
"""Fields that a version fills in by itself: the observer of weights is memoryless_minmax in all of them."""


@pytest.fixture(scope="module")
def library(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`<model>/` and `<model>-<weights>/`, all made in one process of the library."""
    folder = tmp_path_factory.mktemp("library")
    for name in MODELS:
        family, dtype, *tied = name.split("-")
        if family == "moe":
            tiny.mixture(folder / name)
        else:
            tiny.model(folder / name, dtype=dtype, tied=tied == ["tied"])
    jobs = [
        (str(folder / name), str(folder / f"{name}-{weights}"), described(weights))
        for name in MODELS
        for weights in FORMATS
    ]
    run = subprocess.run(
        [str(python), "-c", SCRIPT], input=json.dumps(jobs), text=True, capture_output=True, check=False, cwd=folder
    )
    assert run.returncode == 0, run.stderr[-4000:]
    return folder


def artifact(library: Path, name: str, weights: str, store: Path) -> Artifact:
    group = 32 if weights == "int4-rtn" else 0
    dtype = name.split("-")[1]
    return tiny.built(tiny.recipe(library / name, weights=weights, dtype=dtype, group_size=group), store)


@pytest.mark.parametrize("weights", FORMATS)
@pytest.mark.parametrize("name", MODELS)
def test_all_bytes_are_those_of_the_library(library: Path, name: str, weights: str, tmp_path: Path) -> None:
    ours = tiny.weights(artifact(library, name, weights, tmp_path / "store").path)
    theirs = tiny.weights(library / f"{name}-{weights}")
    assert ours.keys() == theirs.keys()
    assert [one for one in ours if not same(ours[one], theirs[one])] == []


@pytest.mark.parametrize("weights", FORMATS)
@pytest.mark.parametrize("name", MODELS)
def test_config_says_what_the_library_says(library: Path, name: str, weights: str, tmp_path: Path) -> None:
    ours = meaning(artifact(library, name, weights, tmp_path / "store").path)
    theirs = meaning(library / f"{name}-{weights}")
    assert ours == theirs


def meaning(folder: Path) -> dict[str, Any]:
    """`quantization_config` as the library of this interpreter reads it, without what it fills in by itself."""
    from compressed_tensors.quantization import QuantizationConfig

    written = json.loads((folder / "config.json").read_text())["quantization_config"]
    known = {key: value for key, value in written.items() if key in QuantizationConfig.model_fields}
    read: dict[str, Any] = QuantizationConfig.model_validate(known).model_dump(mode="json")
    for group in read["config_groups"].values():
        for part in ("weights", "input_activations"):
            group[part] = {k: v for k, v in (group[part] or {}).items() if k not in DEFAULTED} or None
    return read | {"ignore": sorted(read["ignore"])}
