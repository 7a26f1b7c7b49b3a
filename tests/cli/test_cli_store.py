"""`deployc store list | verify | gc` as they are typed: what is shown, asked, removed and left."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from adapted import Small
from deployed import deploy_yaml, environment
from shelved import KEY, OTHER, THIRD, artifact

from deployc import pipeline
from deployc.apply.state import State
from deployc.build import store
from deployc.build.quality.measure import with_quality
from deployc.cli.main import run
from deployc.types.bundle import Text
from deployc.types.figure import Figure
from deployc.types.quality import Quality

Capture = pytest.CaptureFixture[str]
COMMIT = "1" * 40
RECIPE = {"model_source": "./model", "model_revision": None, "adapters": [["qa", "./qa", None, 1.0]],
          "weights": "int8", "dtype": "bfloat16"}  # fmt: skip


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Small:
    """A deploy.yaml with a store of three artifacts, of which its history has the first."""
    small = Small(tmp_path).model().adapter("qa")
    deploy_yaml(small)
    monkeypatch.chdir(tmp_path)
    for name, value in environment(small).items():
        monkeypatch.setenv(name, value)
    for year, key in enumerate((KEY, OTHER, THIRD)):
        artifact(small.store, key, f"203{year}-01-01T00:00:00+00:00", RECIPE)
    applied(state(small), KEY)
    return small


def state(small: Small) -> State:
    return State(small.root / "home" / "deployc" / "lab")


def applied(place: State, key: str) -> Path:
    """A history with one entry."""
    folder = place.history / "1-0000aaaa"
    folder.mkdir(parents=True)
    receipt = {"entry": folder.name, "digest": "sha256:1", "name": place.path.name, "engine": "0.32.0",
               "artifact": key, "started": "2030-01-01T00:00:00Z", "outcome": "serving"}  # fmt: skip
    (folder / "receipt.json").write_text(json.dumps(receipt))
    return folder / "receipt.json"


def said(capsys: Capture, *words: str, code: int = 0) -> Any:
    """The JSON document of a command."""
    assert run([*words, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def keys(small: Small) -> list[str]:
    return sorted(path.name for path in small.store.iterdir())


def test_the_list_says_what_each_is_made_of_and_who_uses_it(project: Small, capsys: Capture) -> None:
    (project.store / f".building-{'d' * 64}").mkdir()
    folder = project.store / "sources" / "huggingface" / "org" / "model" / COMMIT
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(bytes(2048))
    assert run(["store", "list"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].split() == ["KEY", "SIZE", "BUILT", "WEIGHTS", "MODEL", "AND", "ADAPTERS", "USED", "BY"]
    assert shown[1].split() == ["c" * 12, "9", "B", "2032-01-01T00:00:00+00:00", "int8", "./model", "+", "qa"]
    assert shown[3].endswith("./model + qa        lab (serving)")
    assert shown[4:] == ["dddddddddddd  0 B  unfinished", "1 downloaded source  2.00 KiB"]
    document = said(capsys, "store", "list")
    assert document["name"] == "lab"
    assert [(one["key"], one["used_by"]) for one in document["artifacts"]] == [
        (THIRD, []), (OTHER, []), (KEY, ["lab (serving)"]),
    ]  # fmt: skip
    assert document["artifacts"][0]["made_of"] == [
        {"name": "", "source": "./model", "revision": None}, {"name": "qa", "source": "./qa", "revision": None},
    ]  # fmt: skip
    assert document["unfinished"] == [{"key": "d" * 64, "bytes": 0, "at_work": False}]
    assert [(one["source"], one["revision"], one["bytes"]) for one in document["sources"]] == [
        ("org/model", COMMIT, 2048)
    ]


def test_the_list_has_what_quantization_cost(project: Small, capsys: Capture) -> None:
    def figure(value: float) -> Figure:
        return Figure(value, value, value, "", "measured")

    quality = Quality(
        1, Text("./questions.jsonl", "", 2, 64), 2, 90, figure(8.0), figure(8.1), figure(0.0125), figure(0.01),
        figure(0.987), None, (), (), (), "cpu", 1.0,
    )  # fmt: skip
    made = store.artifact_for(project.store, OTHER)
    assert made is not None
    with_quality(project.store, made.manifest, quality)
    assert run(["store", "list"]) == 0
    shown = capsys.readouterr().out
    assert "QUALITY" in shown
    assert "perplexity +1.25%, top-1 98.7%" in shown
    found = [one["quality"] for one in said(capsys, "store", "list")["artifacts"]]
    assert [bool(one) for one in found] == [False, True, False]
    assert found[1]["mean_kl"]["value"] == 0.01


def test_an_empty_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    deploy_yaml(Small(tmp_path).model())
    monkeypatch.chdir(tmp_path)
    for words in (["store", "list"], ["store", "verify"]):
        assert run(words) == 0
        assert "no artifacts" in capsys.readouterr().out
    assert not (tmp_path / "store").exists()


def test_verify_says_which_is_not_as_it_was_built(project: Small, capsys: Capture) -> None:
    assert run(["store", "verify"]) == 0
    assert capsys.readouterr().out.count("as it was built") == 3
    (project.store / OTHER / "model.safetensors").write_text("weightz")
    assert run(["store", "verify"]) == 1
    assert "error[DC280]" in capsys.readouterr().err
    document = said(capsys, "store", "verify", code=1)
    assert [(one["key"], one["whole"]) for one in document["artifacts"]] == [
        (THIRD, True), (OTHER, False), (KEY, True),
    ]  # fmt: skip
    assert [d["code"] for d in document["diagnostics"]] == ["DC280"]
    assert said(capsys, "store", "verify", "aaaa")["artifacts"][0]["whole"]
    assert [d["code"] for d in said(capsys, "store", "verify", "ffff", code=1)["diagnostics"]] == ["DC292"]


def test_a_dry_run_shows_and_removes_nothing(project: Small, capsys: Capture) -> None:
    assert run(["store", "gc", "--dry-run", "--keep", "1"]) == 0
    shown = capsys.readouterr().out
    assert f"artifact {'b' * 12}: no deployment's history has it" in shown
    assert "9 B  in all" in shown
    document = said(capsys, "store", "gc", "--dry-run", "--keep", "0")
    assert (document["dry_run"], document["bytes"]) == (True, 18)
    assert [(one["kind"], Path(one["path"]).name) for one in document["removed"]] == [
        ("artifact", THIRD), ("artifact", OTHER),
    ]  # fmt: skip
    assert keys(project) == [KEY, OTHER, THIRD]
    assert said(capsys, "store", "gc", "--dry-run")["removed"] == [], "rollout.keep"


def test_what_goes_is_asked_for(project: Small, capsys: Capture) -> None:
    command = [sys.executable, "-m", "deployc", "store", "gc", "--keep", "0"]
    for answer in ("n\n", ""):
        done = subprocess.run(command, input=answer, capture_output=True, text=True, cwd=project.root, check=False)
        assert done.returncode == 130
        assert "nothing was removed" in done.stdout
        assert "Traceback" not in done.stderr
    assert keys(project) == [KEY, OTHER, THIRD]
    done = subprocess.run(command, input="y\n", capture_output=True, text=True, cwd=project.root, check=False)
    assert (done.returncode, "18 B removed" in done.stdout) == (0, True)
    assert keys(project) == [KEY]
    assert run(["store", "gc", "--keep", "0", "--yes"]) == 0
    assert "nothing to remove" in capsys.readouterr().out


def test_what_the_file_asks_for_stays(project: Small, capsys: Capture) -> None:
    bundle = pipeline.compile("deploy.yaml").bundle
    assert bundle is not None
    assert bundle.recipe is not None
    artifact(project.store, bundle.recipe.key, recipe=RECIPE)
    assert len(said(capsys, "store", "gc", "--keep", "0", "--yes")["removed"]) == 2
    assert keys(project) == sorted([KEY, bundle.recipe.key])


def test_histories_elsewhere_count_where_they_are_named(project: Small, capsys: Capture) -> None:
    applied(State(project.root / "elsewhere"), OTHER)
    gone = said(capsys, "store", "gc", "--keep", "0", "--yes", "--state", "elsewhere")["removed"]
    assert [Path(one["path"]).name for one in gone] == [THIRD]
    assert run(["store", "gc", "--state", "nowhere"]) == 64


def test_a_history_that_cannot_be_read_keeps_every_artifact(project: Small, capsys: Capture) -> None:
    applied(State(project.root / "home" / "deployc" / "other"), OTHER).write_text("{")
    (project.store / f".building-{'d' * 64}").mkdir()
    document = said(capsys, "store", "gc", "--keep", "0", "--yes")
    assert [one["kind"] for one in document["removed"]] == ["unfinished"]
    assert [d["code"] for d in document["diagnostics"]] == ["DC289"]
    assert keys(project) == [KEY, OTHER, THIRD]
    assert [d["code"] for d in said(capsys, "store", "list")["diagnostics"]] == ["DC289"]


def test_without_the_file_s_own_recipe_nothing_goes(project: Small, capsys: Capture) -> None:
    deploy_yaml(project, model={"source": "./nowhere"})
    assert said(capsys, "store", "gc", "--keep", "0", "--yes", code=3)["diagnostics"]
    assert run(["store", "gc", "--keep", "0", "--yes"]) == 3
    assert keys(project) == [KEY, OTHER, THIRD]


def test_what_came_into_use_while_it_was_asked_stays(
    project: Small, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def answer(_: str) -> bool:
        applied(State(project.root / "home" / "deployc" / "new"), OTHER)
        return True

    monkeypatch.setattr("deployc.cli.collecting.agreed", answer)
    assert run(["store", "gc", "--keep", "0"]) == 0
    assert "9 B removed" in capsys.readouterr().out
    assert keys(project) == [KEY, OTHER]
