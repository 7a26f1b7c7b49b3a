"""Whole files, right and wrong: what SHAPE says of them and where, and whether the JSON Schema sees it as well.

The first line of a wrong one says what is expected: `# expect: DC151@7:1 DC152@5:26; schema refuses`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from deployc.data import schemas
from deployc.diagnostics import Report
from deployc.source import load
from deployc.spec import shape
from deployc.spec.deploy import Deploy

CASES = Path(__file__).parent / "cases"
GOOD, WRONG = sorted(CASES.glob("good/*.yaml")), sorted(CASES.glob("wrong/*.yaml"))
EXAMPLES = sorted(Path(__file__).resolve().parents[2].glob("examples/*/deploy*.yaml"))
CODES = {f"DC{n}" for n in (*range(150, 157), *range(160, 172))}


def shaped(path: Path) -> tuple[dict[str, Any], Deploy | None, Report]:
    document, unread = load(path, {})
    assert document is not None and not unread.errors, [d.detail for d in unread]
    deploy, report = shape(document)
    return document.values, deploy, report


def schema_errors(values: dict[str, Any]) -> list[str]:
    schema = json.loads((schemas() / "deploy.schema.json").read_text(encoding="utf-8"))
    return [error.message for error in jsonschema.Draft202012Validator(schema).iter_errors(values)]


@pytest.mark.parametrize("path", [*GOOD, *EXAMPLES], ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_right_files_pass_both(path: Path) -> None:
    values, deploy, report = shaped(path)
    assert deploy is not None and not report.diagnostics, [d.detail for d in report]
    assert schema_errors(values) == []


@pytest.mark.parametrize("path", WRONG, ids=lambda p: p.stem)
def test_wrong_files_are_refused_in_place(path: Path) -> None:
    header = re.match(r"# expect: (.+); schema (accepts|refuses)\n", path.read_text(encoding="utf-8"))
    assert header is not None
    values, _, report = shaped(path)
    assert [f"{d.code}@{d.at.line}:{d.at.column}" for d in report.ordered() if d.at] == header[1].split()
    assert all(d.summary and d.detail and d.fix and d.at and d.at.excerpt for d in report)
    assert bool(schema_errors(values)) == (header[2] == "refuses")


def test_every_code_fires() -> None:
    fired = {code for path in WRONG for code in re.findall(r"DC\d{3}", path.read_text(encoding="utf-8").split("\n")[0])}
    assert fired == CODES


def test_one_code_has_one_summary() -> None:
    found = {(d.code, d.summary) for path in WRONG for d in shaped(path)[2]}
    assert len(found) == len({code for code, _ in found}) == len(CODES)


def test_a_file_of_mistakes_is_cut_short(tmp_path: Path) -> None:
    file = tmp_path / "deploy.yaml"
    file.write_text("".join(f"key{i}: 1\n" for i in range(5000)))
    _, deploy, report = shaped(file)
    assert deploy is None
    assert len(report) == 101 and report.diagnostics[-1].code == "DC172"
    assert "4,906 more" in report.diagnostics[-1].detail  # 5,000 and six required keys, less a hundred


def test_an_overlay_may_be_any_part_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text((CASES / "good" / "least.yaml").read_text())
    file = tmp_path / "deploy.yaml"
    file.write_text("extends: base.yaml\nhardware: {count: 2}\nworkload: {max_context: 4096}\n")
    _, deploy, report = shaped(file)
    assert deploy is not None and not report.errors
    assert (deploy.hardware.gpu, deploy.hardware.count) == ("rtx-4090", 2)
    assert deploy.because("hardware.count") == "deploy.yaml:2" and deploy.because("hardware.gpu") == "base.yaml:4"
    assert schema_errors({"extends": "base.yaml", "hardware": {"count": 2}, "workload": {"max_context": 4096}}) == []
    assert schema_errors({"extends": "base.yaml", "hardware": {"cuont": 2}})
