"""apply, status and destroy as a person types them, on a stand-in engine, on hosts that are not as one would like."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from apply_bench import free_port, make_engine
from small_models import model_files, put

from deployc.cli.main import run

AWKWARD = 'it\'s a "folder" & $HOME %s'
NOBODY = 54321


@dataclass
class Folder:
    """A deploy.yaml's folder with a small model and the stand-in engine; state and cache beside it."""

    root: Path
    port: int = field(default_factory=free_port)
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.root.mkdir()
        make_engine(self.root / "engine")
        put(self.root / "model", model_files())
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.root), **self.env}
        self.write()

    def write(self, file: str = "deploy.yaml", name: str = "lab", **target: Any) -> None:
        text = {
            "version": 1,
            "name": name,
            "model": {"source": "./model"},
            "hardware": {"gpu": "cpu", "host_memory": "8GiB"},
            "workload": {"input_tokens": 10, "output_tokens": 10, "concurrency": 1},
            "engine": {"version": "0.32.0", "python": "./engine/bin/python"},
            "target": {"kind": "process", "bind": "127.0.0.1", "port": self.port, **target},
        }
        (self.root / file).write_text(json.dumps(text, indent=1))

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        program = Path(sys.executable).with_name("deployc")
        return subprocess.run(
            [str(program), *words],
            cwd=self.root,
            env=self.env,
            capture_output=True,
            text=True,
            errors="replace",
        )

    def condition(self, *words: str) -> str:
        return str(json.loads(self.run("status", "--json", *words).stdout)["condition"])


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    made = Folder(tmp_path / AWKWARD)
    yield made
    for file in made.root.glob("*.yaml"):
        made.run("destroy", "--yes", "-f", file.name)


def refused(done: subprocess.CompletedProcess[str], code: str, exit_code: int = 1) -> str:
    """The text of a refusal with one error, that has no traceback."""
    assert done.returncode == exit_code, done.stderr
    assert [line[6:11] for line in done.stderr.splitlines() if line.startswith("error[")] == [code], done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def test_a_folder_whose_name_holds_spaces_quotes_and_variables(folder: Folder) -> None:
    done = folder.run("apply")
    assert done.returncode == 0, done.stderr
    assert f"lab serves: http://127.0.0.1:{folder.port}/v1, model lab" in done.stdout
    (launch,) = folder.root.glob(".local/state/deployc/lab/history/*/launch.json")
    assert str(folder.root / "model") in json.loads(launch.read_text())["argv"]
    assert folder.condition() == "serving"


def test_an_apply_tells_programs_how_far_it_is(folder: Folder) -> None:
    done = folder.run("apply", "--progress", "json")
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    steps = [one["item"].split()[0] for one in told if one["phase"] == "step"]
    assert steps == ["create", "verify"]
    assert {one["unit"] for one in told if one["phase"] == "start"} <= {"seconds"}
    again = folder.run("apply", "--json")
    assert (json.loads(again.stdout)["changed"], again.stderr) == (False, ""), "with --json nothing is told"


def test_an_ipv6_address(folder: Folder) -> None:
    if not socket.has_ipv6 or not Path("/proc/net/if_inet6").read_text():
        pytest.skip("no IPv6 here")
    folder.write(bind="::1")
    done = folder.run("apply")
    assert f"lab serves: http://[::1]:{folder.port}/v1" in done.stdout, done.stderr
    assert folder.condition() == "serving"


def test_two_deployments_do_not_touch_each_other(folder: Folder) -> None:
    assert folder.run("apply").returncode == 0
    folder.write("second.yaml", name="second", port=folder.port)
    said = refused(folder.run("apply", "-f", "second.yaml"), "DC636")
    assert f"127.0.0.1:{folder.port}: process " in said
    folder.write("second.yaml", name="second", port=free_port())
    assert folder.run("apply", "-f", "second.yaml").returncode == 0
    assert (folder.condition(), folder.condition("-f", "second.yaml")) == ("serving", "serving")
    assert folder.run("destroy", "--yes", "-f", "second.yaml").returncode == 0
    assert (folder.condition(), folder.condition("-f", "second.yaml")) == ("serving", "nothing")


def test_without_home_its_own_entry_of_the_system_serves(folder: Folder) -> None:
    del folder.env["HOME"]
    assert folder.run("plan").returncode == 0


def test_a_user_without_any_home(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in a container that runs under a number which its /etc/passwd does not know."""
    for name in ("HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: NOBODY)
    assert run(["status", "-f", str(folder.root / "deploy.yaml")]) == 1
    said = capsys.readouterr().err
    assert "error[DC617]" in said and f"user {NOBODY}" in said


def test_what_the_system_refuses_is_said_with_its_path(folder: Folder) -> None:
    (folder.root / "loop").symlink_to("loop")
    folder.write(state="./loop/state")
    said = refused(folder.run("status"), "DC618")
    assert "".join(str(folder.root / "loop").split()) in "".join(said.split()), "wrapped or not"
    refused(folder.run("apply"), "DC618")


def test_an_interpreter_that_may_not_be_run(folder: Folder) -> None:
    (folder.root / "engine" / "bin" / "python").unlink()
    (folder.root / "engine" / "bin" / "python").touch(mode=0o644)
    refused(folder.run("apply"), "DC620")


def test_a_state_folder_that_is_a_file(folder: Folder) -> None:
    folder.write(state="./deploy.yaml")
    refused(folder.run("apply"), "DC631")
    assert folder.condition() == "nothing"


def test_a_home_of_nobody_is_a_folder_like_any_other(folder: Folder) -> None:
    text = (folder.root / "deploy.yaml").read_text()
    (folder.root / "deploy.yaml").write_text(text.replace("./engine", "~nobody-of-that-name"))
    assert "~nobody-of-that-name/bin/python" in "".join(refused(folder.run("apply"), "DC620").split())


def test_a_refusal_with_json_is_one_document(folder: Folder) -> None:
    with socket.create_server(("127.0.0.1", folder.port)):
        done = folder.run("apply", "--json")
    document = json.loads(done.stdout)
    assert done.returncode == 1 and document["format_version"] == "1.0"
    assert [found["code"] for found in document["diagnostics"]] == ["DC636"]
    assert done.stderr == ""


def test_a_file_that_is_wrong_is_one_document_of_status_too(folder: Folder) -> None:
    done = folder.run("status", "--json", "-f", "nowhere.yaml")
    assert done.returncode == 3 and done.stderr == ""
    assert [found["code"] for found in json.loads(done.stdout)["diagnostics"]] == ["DC100"]


@pytest.mark.parametrize("encoding", ["ascii", "gbk", "latin-1"])
def test_a_terminal_that_lacks_characters(folder: Folder, encoding: str) -> None:
    folder.env["PYTHONIOENCODING"] = encoding
    folder.write(kind="进程")
    assert "'进程'" in json.loads(folder.run("plan", "--json").stdout)["diagnostics"][0]["detail"]
    refused(folder.run("apply"), "DC156", exit_code=3)
    folder.write()
    plan = folder.run("plan")
    assert plan.returncode == 0 and plan.stdout.startswith("lab: ./model on CPU") and plan.stderr == ""


@pytest.mark.parametrize(("content", "said"), [(None, "No such file"), ("{}", "no plan document"), ("[", "no plan")])
def test_a_reviewed_plan_that_is_none(folder: Folder, content: str | None, said: str) -> None:
    if content is not None:
        (folder.root / "plan.json").write_text(content)
    assert said in refused(folder.run("apply", "plan.json"), "DC198")


def test_a_temporary_folder_that_is_full_or_gone(folder: Folder) -> None:
    folder.env["TMPDIR"] = str(folder.root / "gone")
    assert folder.run("apply").returncode == 0
    assert folder.condition() == "serving"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 128 MiB."""
    path = tmp_path / "disk"
    path.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128m", "none", path], capture_output=True).returncode:
        pytest.skip("mounting is not allowed here")
    yield path
    subprocess.run(["umount", path], check=True)


def fill(disk: Path) -> Path:
    """Write until nothing more fits."""
    file = disk / "filler"
    with file.open("wb", buffering=0) as opened, contextlib.suppress(OSError):
        while True:
            opened.write(bytes(2**12))
    return file


def test_a_full_disk_is_said_and_destroy_still_stops_the_engine(disk: Path, folder: Folder) -> None:
    folder.env["XDG_STATE_HOME"] = str(disk / "state")
    assert folder.run("apply").returncode == 0
    filler = fill(disk)
    assert folder.condition() == "serving"
    assert folder.run("destroy", "--yes").returncode == 0
    assert folder.condition() == "nothing"
    filler.unlink()
    filler = fill(disk)
    refused(folder.run("apply"), "DC639")
    filler.unlink()
    assert folder.run("apply").returncode == 0
