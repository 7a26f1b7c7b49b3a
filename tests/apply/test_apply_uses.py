"""Who uses which artifact: histories as they are written, damaged ones, an apply at work, living processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from handmade import QWEN_ON_4090, deploy_of

from deployc.apply.mutex import hold
from deployc.apply.state import State
from deployc.apply.uses import states, used_by, uses

KEY, OTHER = "a" * 64, "b" * 64


def entry(state: State, name: str, artifact: str | None, outcome: str = "serving") -> Path:
    """One apply of the history, its receipt alone."""
    folder = state.history / name
    folder.mkdir(parents=True)
    document = {
        "format_version": "1.0", "entry": name, "digest": "sha256:1", "name": state.path.name, "engine": "0.32.0",
        "artifact": artifact, "started": "2030-01-01T00:00:00Z", "outcome": outcome,
    }  # fmt: skip
    path = folder / "receipt.json"
    path.write_text(json.dumps(document))
    return path


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State(tmp_path / "state" / "deployc" / "qa")


def test_every_entry_of_every_history_counts(state: State, tmp_path: Path) -> None:
    entry(state, "1-0000aaaa", OTHER, "replaced")
    entry(state, "2-0000bbbb", KEY)
    entry(state, "3-0000cccc", None)
    other = State(tmp_path / "other")
    entry(other, "1-0000aaaa", KEY, "destroyed")
    (state.history / "4-0000dddd").mkdir()  # cut short before anything was started
    found = used_by([state, other, State(tmp_path / "nothing")], [])
    assert found.by == {OTHER: ["qa"], KEY: ["qa (serving)", "other"]}
    assert found.doubts == []


@pytest.mark.parametrize(
    ("text", "says"),
    [("{", "receipt.json"), ("[]", "list"), ('{"entry": "1"}', "receipt.json"), ("\xff", "receipt.json")],
)
def test_a_damaged_receipt_is_a_doubt_and_the_others_are_read(state: State, text: str, says: str) -> None:
    entry(state, "1-0000aaaa", KEY)
    entry(state, "2-0000bbbb", OTHER).write_text(text, encoding="latin-1")
    found = used_by([state], [])
    assert found.by == {KEY: ["qa (serving)"]}
    assert [(d.code, says in d.detail, str(state.path) in d.detail) for d in found.doubts] == [("DC289", True, True)]


def test_what_is_no_history_is_a_doubt(state: State) -> None:
    state.path.mkdir(parents=True)
    state.history.write_text("")
    assert [d.code for d in used_by([state], []).doubts] == ["DC289"]
    state.history.unlink()
    entry(state, "1-0000aaaa", KEY)
    path = state.history / "1-0000aaaa" / "receipt.json"
    path.write_text(path.read_text().replace(f'"{KEY}"', "[]"))
    assert [d.code for d in used_by([state], []).doubts] == ["DC289"]


def test_an_apply_at_work_is_a_doubt(state: State) -> None:
    state.make()
    with hold(state):
        (doubt,) = used_by([state], []).doubts
    assert (doubt.code, "qa" in doubt.detail) == ("DC290", True)
    assert used_by([state], []).doubts == []


def test_a_process_that_has_the_artifact_on_its_command_line(state: State) -> None:
    program = "import sys; print(1, flush=True); sys.stdin.read()"
    engine = subprocess.Popen(
        [sys.executable, "-c", program, f"/store/{KEY}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert engine.stdout is not None
    engine.stdout.readline()
    assert used_by([state], [KEY, OTHER]).by == {KEY: [f"process {engine.pid}"]}
    engine.communicate()
    assert used_by([state], [KEY, OTHER]).by == {}


def test_a_container_that_the_artifact_is_mounted_into(state: State, tmp_path: Path) -> None:
    (tmp_path / KEY).mkdir()
    (tmp_path / "model").mkdir()
    program = 'mount --bind "$ARTIFACT" model && echo mounted && read end'
    engine = subprocess.Popen(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", program], cwd=tmp_path, text=True,
        env={**os.environ, "ARTIFACT": KEY}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert engine.stdout is not None
    said = engine.stdout.readline()
    found = used_by([state], [KEY]).by
    engine.communicate("\n")
    if said != "mounted\n":
        pytest.skip("this system lets nobody mount in a namespace of their own")
    assert found == {KEY: [f"process {engine.pid}"]}


def test_state_folders_that_cannot_be_listed_are_a_doubt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    (tmp_path / "deployc").mkdir()
    monkeypatch.setattr(Path, "iterdir", refuse)
    found = uses(deploy_of(QWEN_ON_4090), tmp_path, {"XDG_STATE_HOME": str(tmp_path)}, [])
    assert [(d.code, "Permission denied" in d.detail) for d in found.doubts] == [("DC289", True)]


def test_which_state_folders_are_known(tmp_path: Path) -> None:
    env = {"XDG_STATE_HOME": str(tmp_path)}
    for name in ("qa", "other"):
        (tmp_path / "deployc" / name).mkdir(parents=True)
    (tmp_path / "deployc" / "a-file").write_text("")
    deploy = deploy_of(QWEN_ON_4090.replace("target:\n", "target:\n  state: ./here\n"))
    found = [state.path for state in states(deploy, tmp_path, env, [tmp_path / "more", tmp_path / "deployc" / "qa"])]
    assert found == [tmp_path / "deployc" / "other", tmp_path / "deployc" / "qa", tmp_path / "here", tmp_path / "more"]
