"""The quantizer's environment: pinned by data, made by the engine's own path, found once it is finished."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from apply_bench import make_engine

from deployc.apply import engine_install, quantizer
from deployc.apply.engine_env import MARKER
from deployc.diagnostics import Stop
from deployc.files import read_json

VERSION = quantizer.default_version()


class Pip:
    """Stands in for venv and pip."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, torch: str = "2.13.0+cpu", fail: bool = False) -> None:
        self.calls: list[list[str]] = []
        self.torch, self.fail = torch, fail
        monkeypatch.setattr(engine_install, "_run", self.run)

    def run(self, words: list[str], *_: object) -> None:
        self.calls.append(words)
        if "venv" in words:
            make_engine(Path(words[-1]))
            (Path(words[-1]) / "pyvenv.cfg").write_text("home = /usr\n")
            return
        if self.fail:
            raise KeyboardInterrupt
        (packages,) = Path(words[0]).parent.parent.glob("lib/python3*/site-packages")
        for name, version in (("llmcompressor", VERSION), ("torch", self.torch)):
            folder = packages / f"{name}-{version}.dist-info"
            folder.mkdir()
            (folder / "METADATA").write_text(f"Name: {name}\n")


def made(env: dict[str, str], cpu: bool = True, **options: Any) -> tuple[Path, list[str], list[str]]:
    said: list[str] = []
    settings = {"version": None, "path": None} | options
    prefix, report = engine_install.install_quantizer(cpu=cpu, env=env, say=said.append, **settings)
    return prefix, said, [d.code for d in report]


def test_it_is_made_once_found_again_and_located(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip, env = Pip(monkeypatch), {"XDG_DATA_HOME": str(tmp_path)}
    assert quantizer.locate_quantizer(env) is None
    prefix, said, told = made(env)
    assert prefix == tmp_path / "deployc" / "quantizers" / f"llmcompressor-{VERSION}" and told == []
    assert pip.calls[-1][-len(quantizer.pins(VERSION)["packages"]) :] == quantizer.pins(VERSION)["packages"]
    assert "torch for the CPU: no NVIDIA GPU is used here" in said[0] and VERSION in said[-1]
    marker = read_json(prefix / MARKER)
    assert marker is not None and (marker["engine"], marker["version"], marker["torch"]) == (
        "llmcompressor", VERSION, "2.13.0+cpu")  # fmt: skip
    assert quantizer.locate_quantizer(env) == prefix / "bin" / "python"
    count = len(pip.calls)
    made(env)
    assert len(pip.calls) == count


def test_an_unfinished_one_is_not_located_and_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env = {"XDG_DATA_HOME": str(tmp_path)}
    Pip(monkeypatch, fail=True)
    with pytest.raises(KeyboardInterrupt):
        made(env)
    assert quantizer.locate_quantizer(env) is None
    Pip(monkeypatch)
    _, said, _ = made(env)
    assert any("unfinished" in line for line in said) and quantizer.locate_quantizer(env) is not None


def test_a_gpu_build_of_torch_is_told_where_there_is_no_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Pip(monkeypatch, torch="2.13.0")
    assert made({"XDG_DATA_HOME": str(tmp_path / "a")})[2] == ["DC626"]
    assert made({"XDG_DATA_HOME": str(tmp_path / "b")}, cpu=False)[2] == []


def test_every_package_is_pinned_and_an_unknown_version_is_not_guessed() -> None:
    packages = quantizer.pins(VERSION)["packages"]
    assert f"llmcompressor=={VERSION}" in packages and all(re.fullmatch(r"[a-z0-9-]+==[0-9.]+", p) for p in packages)
    with pytest.raises(Stop) as stop:
        quantizer.pins("0.1.0")
    assert [d.code for d in stop.value.report] == ["DC623"] and VERSION in stop.value.report.diagnostics[0].detail
