"""Every command as it is typed: help, exit codes, one JSON document, streams, colours, interruption."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deployc.cli.main import COMMANDS, run

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "qwen2.5-7b-lora-rtx4090"
Capture = pytest.CaptureFixture[str]
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The 4090 example with its lockfile, as the current folder; state and store beside it."""
    folder = tmp_path / "project"
    shutil.copytree(EXAMPLE, folder)
    monkeypatch.chdir(folder)
    for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    return folder


def edit(folder: Path, old: str, new: str) -> None:
    path = folder / "deploy.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


CHANGES: dict[str, Callable[[Path], None]] = {
    "right": lambda _: None,
    "wrong": lambda folder: edit(folder, "gpu: rtx-4090", "gpu: rtx-9999"),
    "unreadable": lambda folder: edit(folder, "name: domain-qa\n\n", "name: [domain-qa\n\n"),
    "misses": lambda folder: edit(folder, "tpot_p95: 50ms", "tpot_p95: 1ms"),
    "process": lambda folder: edit(folder, "kind: docker", "kind: process"),
    "missing": lambda folder: (folder / "deploy.yaml").unlink(),
}


@pytest.mark.parametrize(
    "words",
    [
        (),
        *((name,) for name in COMMANDS),
        ("store", "list"),
        ("store", "verify"),
        ("store", "gc"),
        ("engine", "install"),
        ("calibrate", "score"),
    ],
)
def test_every_command_has_help_with_an_example(words: tuple[str, ...], capsys: Capture) -> None:
    assert run([*words, "--help"]) == 0
    shown = capsys.readouterr()
    assert "Usage: deployc" in shown.out
    assert shown.err == ""
    if words not in ((), ("store",), ("engine",), ("calibrate",)):  # these list what stands below them
        assert f"Example: deployc {' '.join(words)}" in " ".join(shown.out.split())


@pytest.mark.parametrize(
    "words",
    [
        ("nonsense",), ("plan", "--nonsense"), ("plan", "surplus"), ("compile", "--offline"), ("plan", "--output"),
        ("logs", "-n", "many"), ("engine", "install"), ("store", "nonsense"),
        ("build", "--progress", "loud"), ("store", "gc", "--keep", "-1"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_wrong_usage_is_64_and_says_what(words: tuple[str, ...], project: Path, capsys: Capture) -> None:
    assert run(words) == 64
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Error: " in shown.err
    assert "Traceback" not in shown.err


@pytest.mark.parametrize(
    ("change", "words", "code"),
    [
        ("right", ("plan", "--offline"), 0),
        ("right", ("plan", "--offline", "--detailed-exitcode"), 2),
        ("wrong", ("plan", "--offline"), 3),
        ("wrong", ("plan", "--offline", "--detailed-exitcode"), 3),
        ("unreadable", ("plan", "--offline"), 3),
        ("missing", ("plan", "--offline"), 3),
        ("misses", ("plan", "--offline"), 4),
        ("misses", ("plan", "--offline", "--detailed-exitcode"), 4),
        ("right", ("validate",), 0),
        ("unreadable", ("validate",), 3),
        ("missing", ("validate",), 3),
        ("right", ("apply", "--offline"), 1),
        ("wrong", ("apply", "--offline"), 3),
        ("misses", ("apply", "--offline"), 4),
        ("right", ("status",), 0),
        ("unreadable", ("status",), 3),
        ("missing", ("status",), 3),
        ("right", ("store", "list"), 0),
        ("unreadable", ("store", "list"), 3),
        ("right", ("store", "verify"), 0),
        ("right", ("store", "gc", "--dry-run", "--offline"), 0),
        ("unreadable", ("store", "gc", "--dry-run", "--offline"), 3),
        ("right", ("profiles",), 0),
        ("right", ("profiles", "rtx-4090"), 0),
    ],
    ids=lambda of: " ".join(of) if isinstance(of, tuple) else str(of),
)
def test_exit_codes_and_one_json_document_at_each(
    change: str, words: tuple[str, ...], code: int, project: Path, capsys: Capture
) -> None:
    CHANGES[change](project)
    assert run(words) == code
    shown = capsys.readouterr()
    assert (shown.out + shown.err).strip()
    assert "Traceback" not in shown.err
    assert run([*words, "--json"]) == code
    document: Any = json.loads(capsys.readouterr().out)
    assert document["format_version"] == "1.0"
    said = [d["severity"] for d in document.get("diagnostics", [])]
    assert ("error" in said) == (code not in (0, 2))


def test_what_a_command_of_no_json_says_of_a_wrong_file(project: Path, capsys: Capture) -> None:
    CHANGES["wrong"](project)
    for words in (("compile", "--offline", "-o", "out"), ("lock",), ("build", "--offline")):
        assert run(words) == 3, words
        shown = capsys.readouterr()
        assert shown.out == ""
        assert "deploy.yaml:16:8" in shown.err
    assert not (project / "out").exists()


def test_a_card_that_is_not_known_is_wrong_usage(capsys: Capture) -> None:
    assert run(["profiles", "rtx-4099"]) == 64
    assert "error[DC660]" in capsys.readouterr().err


def test_a_profile_shows_units(capsys: Capture) -> None:
    assert run(["profiles", "rtx-3090"]) == 0
    shown = capsys.readouterr().out
    assert all(figure in shown for figure in ("capability 8.6,", " 23.6 GiB ", " 936 GB/s ", " 71.2 TFLOPS ", " TOPS "))


def test_a_plan_that_got_nowhere_is_headed_by_its_file(project: Path, capsys: Capture) -> None:
    (project / "other.yaml").write_text("version: 2\n")
    assert run(["plan", "--offline", "-f", "other.yaml"]) == 3
    assert capsys.readouterr().out.startswith("other.yaml\n")


@pytest.mark.parametrize("answer", ["n\n", "", "what\nn\n"])
def test_what_is_not_agreed_to_is_left_and_said(answer: str, project: Path, capsys: Capture) -> None:
    command = [sys.executable, "-m", "deployc", "destroy"]
    done = subprocess.run(command, input=answer, capture_output=True, text=True, cwd=project, check=False)
    assert done.returncode == 130
    assert "left as it is" in done.stdout
    assert "Traceback" not in done.stderr


def test_another_card_is_locked_though_the_adapter_is_not_there(project: Path, capsys: Capture) -> None:
    edit(project, "gpu: rtx-4090", "gpu: rtx-3090")
    assert run(["plan", "--offline"]) == 3
    assert "deployc lock" in capsys.readouterr().out
    assert run(["lock"]) == 0
    assert "warning[DC194]" in capsys.readouterr().err
    assert run(["plan", "--offline"]) == 0
    assert "1 x rtx-3090" in capsys.readouterr().out


def test_apply_acts_on_a_process_only_and_says_so(project: Path, capsys: Capture) -> None:
    assert run(["apply", "--offline"]) == 1
    shown = capsys.readouterr().err
    assert "error[DC619]" in shown
    assert "deployc compile -o out" in shown


def test_a_stale_plan_is_refused_before_anything_starts(project: Path, tmp_path: Path, capsys: Capture) -> None:
    CHANGES["process"](project)
    assert run(["plan", "-o", "plan.json"]) == 0
    edit(project, "max_context: 8192", "max_context: 4096")
    capsys.readouterr()
    assert run(["apply", "plan.json"]) == 5
    shown = capsys.readouterr()
    assert "error[DC199]: the plan is stale" in shown.err
    assert "the file, its lockfile or the tool" in shown.err
    assert run(["apply", "plan.json", "--json"]) == 5
    assert [d["code"] for d in json.loads(capsys.readouterr().out)["diagnostics"]] == ["DC199"]
    assert not (tmp_path / "home").exists() or not [p for p in (tmp_path / "home").rglob("*") if p.is_file()]


def test_the_plan_is_written_as_it_is_printed(project: Path, capsys: Capture) -> None:
    assert run(["plan", "--offline", "--json", "-o", "a/b/plan.json"]) == 0
    assert json.loads((project / "a" / "b" / "plan.json").read_text()) == json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("words", [("plan", "--offline"), ("compile", "--offline")], ids=" ".join)
def test_an_output_that_cannot_be_written(words: tuple[str, ...], project: Path, capsys: Capture) -> None:
    assert run([*words, "-o", "deploy.yaml/inside"]) == 1
    shown = capsys.readouterr().err
    assert "error[DC197]" in shown
    assert "deploy.yaml/inside" in shown
    assert (project / "deploy.yaml").read_text() == (EXAMPLE / "deploy.yaml").read_text()


@pytest.mark.parametrize("name", ["deploy.yaml", "deploy.lock", "link.yaml", "./sub/../deploy.yaml"])
def test_what_a_plan_was_read_from_is_not_overwritten(name: str, project: Path, capsys: Capture) -> None:
    before = {path: path.read_bytes() for path in (project / "deploy.yaml", project / "deploy.lock")}
    (project / "sub").mkdir()
    (project / "link.yaml").symlink_to("deploy.yaml")
    assert run(["plan", "--offline", "-o", name]) == 1
    assert "DC197" in capsys.readouterr().err
    assert before == {path: path.read_bytes() for path in before}


def test_a_pipe_is_not_replaced_and_a_link_is_followed(project: Path, capsys: Capture) -> None:
    os.mkfifo(project / "pipe")
    assert run(["plan", "--offline", "-o", "pipe"]) == 1
    assert "a device or a pipe" in capsys.readouterr().err
    assert (project / "pipe").is_fifo()
    (project / "link.json").symlink_to("there.json")
    assert run(["plan", "--offline", "-o", "link.json"]) == 0
    assert (project / "link.json").is_symlink()
    assert json.loads((project / "there.json").read_text())["name"] == "domain-qa"


def process(project: Path, *words: str, **options: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "deployc", *words], cwd=project, **options)


@pytest.mark.parametrize(("change", "code"), [("right", 0), ("misses", 4)])
@pytest.mark.parametrize("words", [("plan", "--offline"), ("plan", "--offline", "--json")], ids=" ".join)
def test_a_reader_that_goes_away(words: tuple[str, ...], change: str, code: int, project: Path) -> None:
    """As `deployc plan | head -1`: the pipe is closed before the first byte, and the exit code is what it was."""
    CHANGES[change](project)
    reading, writing = os.pipe()
    os.close(reading)
    running = process(project, *words, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert running.communicate()[1] == b""
    assert running.returncode == code


def test_a_reader_of_errors_that_goes_away(project: Path) -> None:
    CHANGES["wrong"](project)
    reading, writing = os.pipe()
    os.close(reading)
    running = process(project, "compile", "--offline", "-o", "out", stdout=subprocess.PIPE, stderr=writing)
    os.close(writing)
    assert running.communicate()[0] == b""
    assert running.returncode == 3


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_stream_that_the_shell_closed(closed: str, project: Path) -> None:
    command = f"'{sys.executable}' -m deployc plan --offline {closed}"
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, cwd=project, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_interrupted_is_130_without_a_traceback(project: Path) -> None:
    """Ctrl-C while the plan waits for a hub that says nothing."""
    (project / "deploy.lock").unlink()
    with socket.create_server(("127.0.0.1", 0)) as hub:
        env = os.environ | {"HF_ENDPOINT": f"http://127.0.0.1:{hub.getsockname()[1]}", "NO_PROXY": "127.0.0.1"}
        running = process(project, "plan", "--no-target", env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            hub.settimeout(30)
            asked, _ = hub.accept()
            with asked:
                running.send_signal(signal.SIGINT)
                out, err = running.communicate(timeout=20)
        finally:
            running.kill()
    assert running.returncode == 130
    assert b"Traceback" not in out + err


def in_a_terminal(project: Path, *words: str, **env: str) -> str:
    """What a terminal of 80 columns gets."""
    leader, follower = pty.openpty()
    usual = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")}
    running = process(
        project, *words, stdin=follower, stdout=follower, stderr=follower, env={**usual, "TERM": "xterm", **env}
    )
    os.close(follower)
    shown = b""
    while True:
        try:
            read = os.read(leader, 65536)
        except OSError:  # the other end is closed
            break
        shown += read
    os.close(leader)
    running.wait()
    return shown.decode().replace("\r\n", "\n")


def test_colours_only_in_a_terminal_that_wants_them(project: Path, capsys: Capture) -> None:
    run(["plan", "--offline"])
    plain = capsys.readouterr().out
    colored = in_a_terminal(project, "plan", "--offline")
    assert not ESCAPE.search(plain)
    assert ESCAPE.search(colored)
    assert ESCAPE.sub("", colored) == plain
    assert in_a_terminal(project, "plan", "--offline", "--no-color") == plain
    assert in_a_terminal(project, "plan", "--offline", NO_COLOR="1") == plain
    assert in_a_terminal(project, "plan", "--offline", TERM="dumb") == plain
    assert json.loads(in_a_terminal(project, "plan", "--offline", "--json"))["name"] == "domain-qa"


LINTED = (
    "qwen2.5-7b-lora-rtx4090/deploy.yaml",
    "qwen2.5-7b-4x4090d/deploy-replicas.yaml",
    "qwen2.5-7b-a100/deploy.yaml",
)


@pytest.mark.parametrize("example", LINTED)
def test_what_an_example_compiles_to_passes_the_linters(example: str, tmp_path: Path, capsys: Capture) -> None:
    out, tools = tmp_path / "out", Path(sys.executable).parent
    assert run(["compile", "--offline", "-f", str(ROOT / "examples" / example), "-o", str(out)]) == 0
    assert capsys.readouterr().out.startswith(f"{out}: ")
    for command in (
        ("shellcheck", "command.txt", "entrypoint.sh"),
        ("hadolint", "Dockerfile"),
        ("check-jsonschema", "--builtin-schema", "vendor.compose-spec", "compose.yaml"),
    ):
        done = subprocess.run([tools / command[0], *command[1:]], cwd=out, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
