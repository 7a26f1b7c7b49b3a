"""Which interpreter builds, what it must have, and that the tool's own one needs none of it."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from adapted import Small, read
from deployed import deploy_yaml

from deployc import pipeline
from deployc.build import process
from deployc.cli import building
from deployc.cli.options import Style
from deployc.diagnostics import Stop

ROOT = Path(__file__).resolve().parents[2]
BARE = (
    "import sys, types; torch = types.ModuleType('torch');"
    "torch.__getattr__ = lambda name: 0; torch.Tensor = object;"
    "torch.finfo = torch.iinfo = lambda _: types.SimpleNamespace(min=-1, max=1, eps=1);"
    f"sys.modules['torch'] = torch; sys.path.insert(0, {str(ROOT)!r});"
)
"""A program's beginning: no package is there but an empty torch and our own."""


@pytest.mark.parametrize(
    ("python", "said"),
    [
        (lambda _: "/nowhere/python", "No such file"),
        (lambda p: script(p, 'echo "no module named torch" >&2; exit 1'), "no module named torch"),
        (lambda p: script(p, "exit 0"), "exit code 0"),
    ],
)
def test_an_interpreter_that_cannot_build(small: Small, python: Callable[[Path], str], said: str) -> None:
    with pytest.raises(Stop) as stop:
        small.build(python=python(small.root))
    (found,) = stop.value.report
    assert found.code == "DC271"
    assert said in found.detail


def test_a_relative_interpreter_lies_beside_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub").mkdir()
    small = Small(tmp_path / "sub").model()
    script(small.root, 'echo "this one" >&2; exit 1')
    deploy_yaml(small, quantization={"weights": "int8"}, build={"store": "./store", "python": "./python"})
    monkeypatch.chdir(tmp_path)
    analysis = pipeline.compile(Path("sub/deploy.yaml"), offline=True)
    assert analysis.bundle is not None and analysis.bundle.recipe is not None
    with pytest.raises(Stop) as stop:
        building.build(analysis, analysis.bundle.recipe, Style.NONE)
    (found,) = stop.value.report
    assert found.code == "DC271"
    assert "this one" in found.detail


def script(folder: Path, text: str) -> str:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_which_interpreter_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert process.interpreter("/a/python", "/engine/python") == "/a/python"
    assert process.interpreter(None, "/engine/python") == "/engine/python"
    with pytest.raises(Stop) as stop:
        process.interpreter(None, None)
    assert [d.code for d in stop.value.report] == ["DC270"]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    assert process.interpreter(None, "/engine/python") == sys.executable


def test_the_worker_needs_the_standard_library_and_torch_alone() -> None:
    """With no site-packages and an empty torch, all of the worker's modules can be imported."""
    program = f"{BARE}import deployc.build.worker; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_what_runs_in_the_build_interpreter_needs_no_other_package() -> None:
    """Nor does any other such module, but for transformers where both models of a measurement are run by it."""
    said = "Runs in the build interpreter."
    paths = [path.relative_to(ROOT).with_suffix("") for path in (ROOT / "deployc/build").rglob("*.py")
             if said in " ".join((ast.get_docstring(ast.parse(path.read_text())) or "").split())]  # fmt: skip
    names = sorted(".".join(path.parts) for path in paths)
    by_transformers = [f"deployc.build.quality.{name}" for name in ("answers", "both", "models")]
    assert "deployc.build.worker" in names and set(by_transformers) < set(names)
    later = "sys.modules['transformers'] = t = types.ModuleType('transformers'); t.__version__ = '5.0.0';"
    first = ";".join(f"import {name}" for name in names if name not in by_transformers)
    program = f"{BARE}{first};{later}{';'.join(f'import {name}' for name in by_transformers)}"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.build
def test_the_tool_itself_never_imports_torch(small: Small) -> None:
    program = f"""
import sys; sys.path[:0] = [{str(ROOT)!r}, {str(Path(__file__).parent)!r}]
from pathlib import Path
from adapted import Small
small = Small(Path({str(small.root)!r})); small.adapters["qa"] = 1.0
print(small.build().manifest.torch)
print(sorted({{"torch", "transformers", "peft", "numpy"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    version, loaded = done.stdout.splitlines()
    assert version[0].isdigit()
    assert loaded == "[]"
    assert read(small.store / small.recipe().key).keys() == read(small.root / "model").keys()
