"""`deployc.plan` and `deployc.compile` in Python: the commands' own objects, the same anywhere, offline indeed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import deployc
from deployc import data
from deployc.cli.main import run
from deployc.types.plan import Plan

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "qwen2.5-7b-lora-rtx4090"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The 4090 example with its lockfile, and with an adapter folder that a plan has no business in."""
    folder = tmp_path / "project"
    shutil.copytree(EXAMPLE, folder)
    adapter = folder / "adapters" / "domain-qa"
    adapter.mkdir(parents=True)
    (adapter / "adapter_config.json").write_text("{}")
    (adapter / "adapter_model.safetensors").write_bytes(b"not read")
    return folder / "deploy.yaml"


def python(program: str, *arguments: object, env: dict[str, str] | None = None, cwd: Path | None = None) -> bytes:
    """Standard output of a process of its own, in an environment of its own."""
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **(env or {})},
        cwd=cwd,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def printed(file: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    assert run(["plan", "--offline", "--json", "-f", str(file)]) == 0
    return json.loads(capsys.readouterr().out)


def test_plan_is_the_document_of_the_command(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made: Plan = deployc.plan(file, offline=True)
    assert made.document == printed(file, capsys)
    assert made.changes


def test_compile_is_the_bundle_of_the_command(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = deployc.compile(file, offline=True).bundle
    assert bundle is not None
    assert bundle.digest == printed(file, capsys)["digest"]
    assert run(["compile", "--offline", "-f", str(file), "-o", str(tmp_path / "out")]) == 0
    assert {p.name: p.read_text() for p in (tmp_path / "out").iterdir()} == dict(bundle.files)


@pytest.mark.parametrize("first", ["deployc.plan.steps", "deployc.plan", "deployc.pipeline", "deployc.cli.plan"])
def test_the_stage_of_the_same_name_does_not_hide_the_function(
    file: Path, first: str, capsys: pytest.CaptureFixture[str]
) -> None:
    program = f"import sys, json, {first}, deployc; print(json.dumps(deployc.plan(sys.argv[1], offline=True).document))"
    assert json.loads(python(program, file)) == printed(file, capsys)


def test_a_file_that_is_wrong_has_a_plan_of_its_errors(file: Path) -> None:
    file.write_text(file.read_text().replace("gpu: rtx-4090", "gpu: [rtx-4090"))
    made = deployc.plan(str(file), offline=True)
    assert [d["severity"] for d in made.document["diagnostics"]] == ["error"]
    assert made.document["prediction"] is None
    assert deployc.compile(file, offline=True).bundle is None


def test_the_same_bytes_anywhere(file: Path, tmp_path: Path) -> None:
    """Neither hash seed, folder, home, time zone, locale nor what the environment holds besides reaches the output."""
    program = (
        "import sys; from deployc.cli.main import run; file = sys.argv[1]\n"
        "codes = [run([*words, '-f', file]) for words in (['plan', '--offline'], ['plan', '--offline', '--json'],"
        " ['compile', '--offline', '-o', sys.argv[2]])]\n"
        "assert codes == [0, 0, 0], codes"
    )
    homes = [
        {"PYTHONHASHSEED": "1", "HOME": str(tmp_path / "a"), "TZ": "Asia/Shanghai", "LC_ALL": "C"},
        {"PYTHONHASHSEED": "2", "HOME": "/nowhere", "TZ": "America/Lima", "LC_ALL": "C.UTF-8", "HF_TOKEN": "hf_x",
         "COLUMNS": "200", "HF_ENDPOINT": "http://127.0.0.1:9", "CUDA_VISIBLE_DEVICES": "3", "FORCE_COLOR": "1"},
    ]  # fmt: skip
    out = tmp_path / "out"
    seen = []
    for env, cwd in zip(homes, (tmp_path, file.parent), strict=True):
        shown = python(program, file, out, env=env, cwd=cwd)
        seen.append((shown, {p.name: p.read_bytes() for p in out.iterdir()}))
        shutil.rmtree(out)
    assert seen[0] == seen[1]
    assert b"domain-qa" in seen[0][0]


def test_a_moved_folder_has_the_same_document(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    elsewhere = shutil.copytree(file.parent, tmp_path / "x" / "y z")
    assert printed(elsewhere / "deploy.yaml", capsys) == printed(file, capsys)
    assert str(tmp_path) not in json.dumps(printed(file, capsys))


WATCHED = """
import json, socket, sys

import deployc.pipeline  # what the interpreter itself opens to import is not the plan's reading
opened = []
sys.addaudithook(lambda event, of: opened.append([event, str(of[0])]) if event in EVENTS else None)
EVENTS = {"open", "socket.__new__", "socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.listdir",
          "os.scandir", "os.exec", "os.system", "os.posix_spawn"}

def refuse(*_, **__):
    raise AssertionError("a plan offline opens no socket")

socket.socket = socket.create_connection = refuse
document = deployc.plan(sys.argv[1], offline=True).document
assert document["prediction"], document["diagnostics"]
print(json.dumps([opened, sorted(sys.modules)]))
"""


def test_offline_reads_the_file_its_lockfile_and_shipped_data_only(file: Path) -> None:
    """Imports aside. The adapter's folder is there, and is left alone: the lockfile speaks for it."""
    events, modules = json.loads(python(WATCHED, file))
    code = tuple({sys.prefix, sys.base_prefix, str(ROOT / "deployc"), os.path.dirname(os.__file__)})  # noqa: PTH120
    read = {Path(of) for event, of in events if event == "open" and not of.startswith(code)}
    shipped = {path for path in read if path.is_relative_to(data.profiles()) or path.is_relative_to(data.templates())}
    assert read - shipped == {file, file.with_suffix(".lock")}
    assert shipped
    listed = {Path(of).absolute() for event, of in events if event in ("os.listdir", "os.scandir")}  # to import, too
    assert not [path for path in listed if path.is_relative_to(file.parent)]
    assert not {event for event, _ in events} - {"open", "os.listdir", "os.scandir"}
    heavy = {"torch", "transformers", "peft", "safetensors", "httpx", "huggingface_hub", "pynvml", "docker", "numpy",
             "asyncio", "ssl", "rich.console"}  # fmt: skip
    assert not heavy & set(modules)
