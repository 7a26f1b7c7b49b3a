"""From a built wheel, outside the checkout: its data is inside it, and it says what the checkout says to the byte."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.wheel


def process(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A process that inherits nothing of the checkout."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(cwd)}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built by the project's own backend, in this environment: nothing is fetched."""
    folder = tmp_path_factory.mktemp("dist")
    done = process(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def program(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`deployc` of an environment that holds the wheel; its dependencies are those of the tests' own environment."""
    prefix = tmp_path_factory.mktemp("venv")
    venv.create(prefix, symlinks=True)
    python = prefix / "bin" / "python"
    pip = ("-m", "pip", "--python", str(python), "install", "-q", "--no-deps", "--no-index", str(wheel))
    done = process(sys.executable, *pip, cwd=prefix)
    assert done.returncode == 0, done.stderr
    (site,) = prefix.glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return prefix / "bin" / "deployc"


def test_the_wheel_holds_the_tool_and_its_data_alone(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    held = {name.removeprefix("deployc/_data/") for name in names if name.startswith("deployc/_data/")}
    for folder in ("templates", "schemas", "profiles", "docs"):
        shipped = ROOT / ("docs/codes" if folder == "docs" else folder)
        here = {str(p.relative_to(ROOT)) for p in shipped.rglob("*") if p.is_file()}
        assert here
        assert {name for name in held if name.startswith(f"{folder}/")} == here
    tops = {name.partition("/")[0] for name in names}
    assert tops == {"deployc", next(top for top in tops if top.endswith(".dist-info"))}
    modules = {str(p.relative_to(ROOT)) for p in (ROOT / "deployc").rglob("*.py")}
    assert {name for name in names if name.endswith(".py")} == modules


def test_it_runs_from_the_wheel(program: Path, tmp_path: Path) -> None:
    where = "import deployc, deployc.data as data; print(deployc.__file__, data.data_root())"
    shown = process(program.with_name("python"), "-c", where, cwd=tmp_path).stdout.split()
    assert len(shown) == 2
    assert all(Path(path).is_relative_to(program.parent.parent) for path in shown)


@pytest.mark.parametrize(
    "words",
    [
        ("plan", "--offline", "-f", "example/deploy.yaml"),
        ("plan", "--offline", "--json", "-f", "example/deploy.yaml"),
        ("schema",),
        ("profiles",),
        ("explain",),
        ("explain", "DC302"),
    ],
    ids=" ".join,
)
def test_the_output_is_that_of_the_checkout(program: Path, words: tuple[str, ...], tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples" / "qwen2.5-7b-lora-rtx4090", tmp_path / "example")
    ours = process(sys.executable, "-m", "deployc", *words, cwd=tmp_path)
    theirs = process(program, *words, cwd=tmp_path)
    assert (theirs.returncode, theirs.stdout, theirs.stderr) == (0, ours.stdout, ours.stderr)
    assert theirs.stdout
