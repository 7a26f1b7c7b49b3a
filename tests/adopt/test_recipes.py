"""No false alarm: launch lines of vLLM's own documentation and recipes, each judged by the version it is meant for.

`launch.txt` names its source in the first line; `expect.yaml` has the version, every warning with the reason why it is
right, and where the model's facts are at hand the card on which the deploy.yaml is planned too; `deploy.yaml` is what
import makes of the line (`DEPLOYC_UPDATE=1` writes it).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from golden import assert_golden
from ruamel.yaml import YAML

from deployc import pipeline
from deployc.adopt.imported import Imported, imported
from deployc.adopt.judge.case import Judged
from deployc.diagnostics import Diagnostic, Severity

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
sys.path += [str(TESTS), str(TESTS.parent / "examples")]
from make_locks import WRITTEN, frozen  # noqa: E402

RECIPES = sorted(path.parent for path in HERE.glob("recipes/*/launch.txt"))
OF_THE_VERSION = {"DC518", "DC519"}
"""Warnings that hold of every line of an old version, whatever it says: how far it is behind, and its known holes."""
NAMES = [path.name for path in RECIPES]
MODELS = TESTS / "handed" / "models"


def expectation(folder: Path) -> dict[str, Any]:
    read: dict[str, Any] = YAML(typ="safe", pure=True).load((folder / "expect.yaml").read_text())
    return read


def import_of(folder: Path, expect: dict[str, Any]) -> Imported:
    text = (folder / "launch.txt").read_text()
    return imported(text, "launch.txt", engine_version=expect["version"], gpu=expect.get("plan"))


def codes(said: list[Diagnostic], severity: Severity) -> set[str]:
    return {d.code for d in said if d.severity is severity}


def test_there_are_enough_of_several_versions() -> None:
    assert len(RECIPES) >= 30 and len({expectation(folder)["version"] for folder in RECIPES}) >= 8


@pytest.mark.parametrize("folder", RECIPES, ids=NAMES)
def test_a_documented_line_gives_no_error(folder: Path) -> None:
    expect = expectation(folder)
    assert (folder / "launch.txt").read_text().startswith("# source: https://")
    found = import_of(folder, expect)
    said = found.report.diagnostics
    assert codes(said, Severity.ERROR) == set()
    assert codes(said, Severity.WARNING) - OF_THE_VERSION == set(expect["warnings"]), (
        "justify each warning in expect.yaml"
    )
    assert all(isinstance(why, str) and len(why) > 20 for why in expect["warnings"].values())
    assert_golden(folder / "deploy.yaml", found.files[0])


@pytest.mark.parametrize("folder", RECIPES, ids=NAMES)
def test_its_deploy_yaml_has_the_right_shape(folder: Path) -> None:
    assert pipeline.shape(folder / "deploy.yaml", {}).report.errors == []


@pytest.mark.parametrize("folder", [f for f in RECIPES if "plan" in expectation(f)], ids=lambda f: f.name)
def test_it_is_planned_and_starts_the_same_engine(folder: Path, tmp_path: Path) -> None:
    expect = expectation(folder)
    path = tmp_path / "deploy.yaml"
    path.write_text((folder / "deploy.yaml").read_text())
    pipeline.lock_path(path).write_text(frozen(path, written=(MODELS, WRITTEN)))
    planned = pipeline.compile(path, offline=True, env={})
    assert planned.report.errors == []
    said = codes(planned.report.diagnostics, Severity.WARNING)
    assert said - OF_THE_VERSION == set(expect.get("planned", {})), "justify each warning in expect.yaml"
    assert planned.bundle is not None
    argv = list(planned.bundle.launches[0].argv)
    for case in import_of(folder, expect).launches:
        assert lost(case, argv) == []


def lost(case: Judged, argv: list[str]) -> list[str]:
    """Flags of the found launch that the new one starts without, or with another value."""
    wanted = [flag for flag in case.launch.flags if flag.name not in ("chat-template", "host", "port")]
    return [flag.written for flag in wanted if f"--{case.engine.facts.canonical(flag.name)}" not in argv]
