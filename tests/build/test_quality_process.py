"""The measuring process as it is started, in an interpreter that has little, and what it says of what it lacks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import measured
import pytest

from deployc.build import process
from deployc.build.quality.measure import measure
from deployc.diagnostics import Diagnostic, Stop
from deployc.types.bundle import Measurement, Text
from deployc.types.manifest import Progress
from deployc.types.quality import Quality

pytestmark = pytest.mark.build

OURS = ("pydantic", "ruamel.yaml", "typer", "rich", "httpx", "jinja2", "peft", "compressed_tensors")
TEXT: list[dict[str, Any]] = [{"text": sentence} for sentence in measured.sentences(9, seed=5)]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return measured.model(tmp_path_factory.mktemp("base") / "model", steps=2)


def interpreter(folder: Path, *lacking: str, **env: str) -> str:
    """This interpreter without some packages: what is named is not found there."""
    (folder / "site").mkdir()
    blocked = "\n".join(f"sys.modules[{name!r}] = None" for name in lacking)
    (folder / "site" / "sitecustomize.py").write_text(f"import sys\n{blocked}\n")
    path = folder / "python"
    exports = "".join(f"export {name}={value}\n" for name, value in env.items())
    path.write_text(f'#!/bin/sh\n{exports}PYTHONPATH={folder / "site"} exec {sys.executable} "$@"\n')
    path.chmod(0o755)
    return str(path)


def figures(base: Path, folder: Path, python: str, heard: list[Progress] | None = None) -> Quality:
    measured.lines(folder / "text.jsonl", TEXT)
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT)
    try:
        watch = heard.append if heard is not None else lambda _: None
        return measure(Measurement(Text("text.jsonl", "", 9, 64)), base, base, folder, python, lock, watch)[0]
    finally:
        os.close(lock)


def refused(base: Path, folder: Path, python: str) -> Diagnostic:
    with pytest.raises(Stop) as caught:
        figures(base, folder, python)
    (found,) = caught.value.report
    return found


def test_an_interpreter_with_torch_and_transformers_is_enough(base: Path, tmp_path: Path) -> None:
    heard: list[Progress] = []
    found = figures(base, tmp_path, interpreter(tmp_path, *OURS), heard)
    assert (found.lines, found.tokens, found.mean_kl.value) == (9, 9 * 23, 0.0)
    assert {(said.phase, said.unit) for said in heard} == {("measure", "tokens")}
    assert heard[-1].done == heard[-1].total
    assert [path.name for path in base.parent.iterdir()] == ["model"]  # the logits left nothing


def test_one_without_transformers_is_named(base: Path, tmp_path: Path) -> None:
    found = refused(base, tmp_path, interpreter(tmp_path, *OURS, "transformers"))
    assert found.code == "DC265" and "transformers" in found.detail and "pip install" in found.fix


def test_a_model_that_transformers_does_not_know_is_named(base: Path, tmp_path: Path) -> None:
    config = json.loads((base / "config.json").read_text())
    other = tmp_path / "other"
    other.mkdir()
    for path in base.iterdir():
        (other / path.name).write_bytes(path.read_bytes())
    (other / "config.json").write_text(json.dumps(config | {"model_type": "unheard-of"}))
    found = refused(other, tmp_path, sys.executable)
    assert found.code == "DC265" and "unheard-of" in found.detail


def test_a_weight_that_is_missing_is_no_random_one(base: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    other = tmp_path / "other"
    other.mkdir()
    for path in base.iterdir():
        (other / path.name).write_bytes(path.read_bytes())
    tensors = load_file(base / "model.safetensors")
    del tensors["model.layers.1.mlp.up_proj.weight"]
    save_file(tensors, other / "model.safetensors", {"format": "pt"})
    found = refused(other, tmp_path, sys.executable)
    assert found.code == "DC265" and "missing weights model.layers.1.mlp.up_proj.weight" in found.detail


def test_importing_it_needs_nothing_of_ours_but_itself() -> None:
    blocked = ";".join(f"sys.modules[{name!r}] = None" for name in OURS)
    program = f"import sys;{blocked}\n" + process.BOOTSTRAP.replace("module.main()", "")
    module = "deployc.build.quality.both"
    done = subprocess.run([sys.executable, "-c", program, str(process.PACKAGE), module], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
