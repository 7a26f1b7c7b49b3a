"""What people said of slow servers, and what `deployc doctor --describe` says of it.

A folder in `handed/` with a `describe.yaml` is one: `case.yaml` as in test_handed.py, where `expect` may name causes
too (`severity: cause`), first the one that must come first; `diagnosis.txt` has all that is said.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from golden import assert_golden
from ruamel.yaml import YAML

from deployc.cli.main import run
from deployc.facts import lock
from deployc.facts.engine import engine, versions
from deployc.facts.gpu import devices
from deployc.facts.model import from_config
from deployc.measure.doctor.description import described
from deployc.measure.doctor.expected import deploy_of
from deployc.types.facts import Facts

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "examples"))
from make_locks import WRITTEN  # noqa: E402

HANDED = HERE / "handed"
CASES = sorted(path.parent.name for path in HANDED.glob("*/describe.yaml"))


@pytest.mark.parametrize("name", CASES)
def test_it_is_diagnosed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    case = YAML(typ="safe", pure=True).load((HANDED / name / "case.yaml").read_text())
    said, shown = diagnosed(HANDED / name / "describe.yaml", tmp_path, monkeypatch, capsys)
    assert_golden(HANDED / name / "diagnosis.txt", shown)
    found = [*said["diagnostics"], *({"severity": "cause", "detail": c["evidence"], **c} for c in said["causes"])]
    for expected in case.get("expect", []):
        about = [d for d in found if d["code"] == expected["code"]]
        assert {d["severity"] for d in about} == {expected["severity"]}, expected
        text = " ".join(f"{d['summary']} {d['detail']} {d['fix']}" for d in about)
        assert [word for word in map(str, expected["says"]) if word not in text] == []
    assert not {d["code"] for d in found} & set(case.get("quiet", []))
    causes = [one["code"] for one in case.get("expect", []) if one["severity"] == "cause"]
    ranked = [cause["code"] for cause in said["causes"] if cause["code"] in causes]
    assert ranked == causes


def diagnosed(
    file: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[dict[str, Any], str]:
    """The document and the text of a description, offline; the model's facts lie in a lockfile beside it."""
    here = folder / "describe.yaml"
    here.write_text(file.read_text())
    monkeypatch.chdir(folder)
    read, report = described(here, {})
    assert read is not None, list(report)
    deploy = deploy_of(read.values, read.values.version or versions()[-1])
    name = read.values.model.rpartition("/")[2].lower()
    config = next(path for path in (HANDED / "models" / name, WRITTEN / name) if path.is_dir()) / "config.json"
    model = from_config(
        json.loads(config.read_text()), source=read.values.model, hub="huggingface", provenance="", chat_template=True
    )
    cards, version = devices(deploy, {})[0], engine(deploy)[0]
    assert cards is not None and version is not None
    here.with_suffix(".lock").write_text(lock.freeze(deploy, Facts(model, (), cards, version, locked=True)))
    assert run(["doctor", "--describe", "describe.yaml", "--offline"]) == 0
    shown = capsys.readouterr().out
    assert run(["doctor", "--describe", "describe.yaml", "--offline", "--json"]) == 0
    return json.loads(capsys.readouterr().out), shown
