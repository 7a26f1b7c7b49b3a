"""Reported failures as people have them: a launch line, a compose file, a unit, a Dockerfile, code around an engine.

A folder of `handed/` with one of these instead of a deploy.yaml: `import` says what `case.yaml` expects, and nothing of
that about `neighbour.*`. `answer.txt` has all that it says and the deploy.yaml that it writes; `import:` in case.yaml
holds the options, and with `plan: true` there the deploy.yaml is planned too, against the configs in `handed/models/`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from golden import assert_golden
from test_handed import HANDED, case_of, said_text

from deployc import pipeline
from deployc.adopt.imported import Imported, imported
from deployc.cli.main import run
from deployc.plan.document import diagnostics

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "examples"))
from make_locks import WRITTEN, frozen  # noqa: E402

KINDS = (
    "launch.txt",
    "compose.yaml",
    "config.yaml",
    "engine.service",
    "Dockerfile",
    "server.py",
    "page.html",
    "client.js",
)
FOUND = sorted(
    (path.parent.name, kind)
    for kind in KINDS
    for path in HANDED.glob(f"*/{kind}")
    if (path.parent / "case.yaml").is_file()
)


def of(folder: Path, file: str, options: dict[str, Any]) -> Imported:
    """The import of one file, shown under its own name."""
    return imported(
        (folder / file).read_text(), file, engine_version=options.get("engine_version"), gpu=options.get("gpu")
    )


def neighbour(file: str) -> str:
    """The name of a file's neighbour: neighbour.yaml, neighbour.service, neighbour.Dockerfile."""
    return f"neighbour.{file.rpartition('.')[2]}"


@pytest.mark.parametrize(("name", "file"), FOUND)
def test_import_says_it(
    name: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    case = case_of(name)
    options = case.get("import", {})
    found = of(HANDED / name, file, options)
    said = diagnostics(found.report)
    if options.get("plan"):
        said += planned(found.files[0], tmp_path, monkeypatch, capsys)
    written = "\n".join(found.files) or "no deploy.yaml\n"
    assert_golden(HANDED / name / "answer.txt", said_text(said) + "\n" + written)
    for expected in case.get("expect", []):
        of_code = [d for d in said if d["code"] == expected["code"]]
        assert of_code and expected["severity"] in {d["severity"] for d in of_code}, expected
        text = " ".join(f"{d['summary']} {d['detail']} {d['fix']}" for d in of_code)
        assert [word for word in map(str, expected["says"]) if word not in text] == []
    assert not {d["code"] for d in said} & set(case.get("quiet", []))


@pytest.mark.parametrize(("name", "file"), [(n, f) for n, f in FOUND if (HANDED / n / neighbour(f)).is_file()])
def test_a_neighbour_is_left_alone(name: str, file: str) -> None:
    case = case_of(name)
    found = of(HANDED / name, neighbour(file), case.get("import", {}))
    expected = {one["code"] for one in case["expect"] if one["severity"] != "note"}
    assert {d.code for d in found.report if d.severity != "note"} & expected == set()


@pytest.mark.parametrize(("name", "file"), FOUND)
def test_what_is_written_is_a_deploy_yaml(name: str, file: str, tmp_path: Path) -> None:
    """But for what only its owner knows, the file that comes out has the right shape."""
    for text in of(HANDED / name, file, case_of(name).get("import", {})).files:
        (tmp_path / "deploy.yaml").write_text(text)
        assert pipeline.shape(tmp_path / "deploy.yaml", {}).report.errors == []


def planned(
    text: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[dict[str, Any]]:
    """What `plan` says of the deploy.yaml that import wrote."""
    monkeypatch.chdir(folder)
    path = Path("deploy.yaml")
    path.write_text(text)
    pipeline.lock_path(path).write_text(frozen(path, written=(HANDED / "models", WRITTEN)))
    capsys.readouterr()
    run(["plan", "--offline", "--json", "-f", str(path)])
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["diagnostics"]
    return found
