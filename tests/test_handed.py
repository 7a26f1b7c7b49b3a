"""Failures that people reported, and advice that circulates: what deployc says of each, and of a neighbour without it.

A folder in `handed/` is one: `case.yaml` (source, what happened, what must be said), what was configured
(`deploy.yaml`) and, unless nothing can be, `neighbour.yaml`, on which none of that may be said. All that is said is in
`answer.txt`; `DEPLOYC_UPDATE=1` writes it, to be read before it is committed. Models' config.json stand in
`handed/models/`, with an empty `gated` beside it where the hub asks who one is. Weights lie in no folder here: what a
`tensors.json` names (pattern -> [dtype, shape]) is made as a file that is a header and a hole.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from math import prod
from pathlib import Path
from typing import Any

import pytest
from golden import assert_golden
from ruamel.yaml import YAML

from deployc import pipeline
from deployc.cli.main import run
from deployc.facts.opening import remote
from deployc.types.facts import TensorGroup
from deployc.types.groups import expand, numbers

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "examples"))
from make_locks import WRITTEN, frozen  # noqa: E402

HANDED = HERE / "handed"
CASES = sorted(path.parent.name for path in HANDED.glob("*/case.yaml"))
PLANNED = [name for name in CASES if (HANDED / name / "deploy.yaml").is_file()]
KEYS = {"source", "what", "reported", "here", "claim", "verdict", "since", "effect", "expect", "quiet", "emitted"}
KEYS |= {"measured"}  # [{run, against, differs}]: runs of profiles/calibration/rows, for docs/advice.md
KEYS |= {"import"}  # how test_handed_imports.py reads it
VERDICTS = {"right", "wrong", "outdated", "depends", "default"}
RUN = re.compile(r"\{([0-9,-]+)\}")
SECRETS = {"DEPLOYC_API_KEY": "sk-0123456789abcdef", "HF_TOKEN": "hf_0123456789abcdef"}


def case_of(name: str) -> dict[str, Any]:
    """case.yaml. `expect`: [{code, severity, says: words of its summary, detail or fix}]; `quiet`: codes that must not
    be said; `emitted`: file of the bundle -> texts in it, where what went wrong cannot be written any more. `claim` is
    advice that circulates, `verdict` one of VERDICTS on it, `since` of which version, `effect` what was measured."""
    read: dict[str, Any] = YAML(typ="safe", pure=True).load((HANDED / name / "case.yaml").read_text())
    return read


@pytest.mark.parametrize("name", CASES)
def test_a_case_says_what_it_is(name: str) -> None:
    case = case_of(name)
    assert case.keys() <= KEYS
    assert ("claim" in case) == ("verdict" in case) and case.get("verdict", "right") in VERDICTS
    assert case["source"] and case["what"] and (case.get("expect") or case.get("emitted"))
    assert all(one.keys() == {"code", "severity", "says"} for one in case.get("expect", []))


@pytest.mark.parametrize("name", PLANNED)
def test_it_is_said(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    case = case_of(name)
    said = planned(HANDED / name, "deploy.yaml", tmp_path, monkeypatch, capsys)
    assert_golden(HANDED / name / "answer.txt", said_text(said))
    for expected in case.get("expect", []):
        found = [d for d in said if d["code"] == expected["code"]]
        assert found and {d["severity"] for d in found} == {expected["severity"]}, expected
        text = " ".join(f"{d['summary']} {d['detail']} {d['fix']}" for d in found)
        assert [word for word in map(str, expected["says"]) if word not in text] == []
    assert not {d["code"] for d in said} & set(case.get("quiet", []))
    for file, texts in case.get("emitted", {}).items():
        written = Path("out", file).read_text()
        assert [text for text in texts if text not in written] == []


@pytest.mark.parametrize("name", [name for name in PLANNED if (HANDED / name / "neighbour.yaml").is_file()])
def test_a_neighbour_is_left_alone(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = planned(HANDED / name, "neighbour.yaml", tmp_path, monkeypatch, capsys)
    assert not {d["code"] for d in said} & {one["code"] for one in case_of(name).get("expect", [])}


def planned(
    case: Path, file: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[dict[str, Any]]:
    """All diagnostics of a plan of it, offline; its bundle, where there is one, lies in `out/`."""
    for variable, value in SECRETS.items():
        monkeypatch.setenv(variable, value)
    shutil.copytree(case, folder, dirs_exist_ok=True)
    monkeypatch.chdir(folder)
    for tensors in folder.rglob("tensors.json"):
        hollow(tensors)
    analysis = pipeline.shape(file)
    if analysis.deploy is not None and not analysis.report.errors and remote(analysis.deploy):
        pipeline.lock_path(analysis.path).write_text(frozen(analysis.path, written=(HANDED / "models", WRITTEN)))
    run(["compile", "--offline", "-f", file, "-o", "out"])
    capsys.readouterr()
    run(["plan", "--offline", "--json", "-f", file])
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["diagnostics"]
    return found


def hollow(tensors: Path) -> None:
    """The safetensors file of a folder, with a real header and no bytes behind it."""
    header: dict[str, Any] = {}
    end = 0
    for pattern, (dtype, shape) in json.loads(tensors.read_text()).items():
        for name in expand(
            TensorGroup(pattern, dtype, tuple(shape), prod(len(numbers(one)) for one in RUN.findall(pattern)))
        ):
            begin, end = end, end + TensorGroup(name, dtype, tuple(shape)).bytes
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    adapter = (tensors.parent / "adapter_config.json").is_file()
    with (tensors.parent / ("adapter_model.safetensors" if adapter else "model.safetensors")).open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + end)


def said_text(said: list[dict[str, Any]]) -> str:
    """One paragraph a diagnostic."""
    blocks = (
        f"{d['severity']}[{d['code']}]: {d['summary']}\n  at: {d['at']}\n  {d['detail']}\n  fix: {d['fix']}\n"
        for d in said
    )
    return "\n".join(blocks)
