"""`deployc validate` as a process: exit 3 and words for a wrong file, one JSON document with --json."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

CASES = Path(__file__).resolve().parents[1] / "spec" / "cases"
ODD = {
    "empty": b"",
    "gbk": "name: 领域".encode("gbk"),
    "nul": b"version: 1\nname: a\x00\n",
    "bomb": b"a: &a [x]\n" + b"".join(b"b%d: &b%d [%s]\n" % (i, i, b"*a," * 99) for i in range(300)),
    "full-width": "version：1\nname： a\n".encode(),
    "tab": b"model:\n\tsource: a\n",
    "terminal": b'name: "\\e[31m\\e]0;x\\a"\nversion: 1\n',
    "large": b"# padding\n" * 10**6,
}
WRONG = sorted(CASES.glob("wrong/*.yaml"))[::12]


def validate(*arguments: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "deployc", "validate", *arguments], capture_output=True, text=True, timeout=60
    )
    assert "Traceback" not in done.stderr + done.stdout
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("path", WRONG, ids=lambda p: p.stem)
def test_wrong_files(path: Path) -> None:
    expected = {place.split("@")[0] for place in path.read_text().split("\n")[0].split(";")[0].split()[2:]}
    code, out, said = validate("-f", str(path))
    assert code == 3 and out == ""
    assert all(f"error[{one}]" in said for one in expected)
    assert f"{path.name}:" in said and "fix:" in said


@pytest.mark.parametrize("name", ODD)
def test_odd_bytes_as_json(tmp_path: Path, name: str) -> None:
    file = tmp_path / "deploy.yaml"
    file.write_bytes(ODD[name])
    code, out, _ = validate("-f", str(file), "--json")
    document = json.loads(out)
    assert code == 3 and document["format_version"] == "1.0"
    assert document["diagnostics"] and all(d["code"].startswith("DC1") for d in document["diagnostics"])
    assert "\x1b" not in out


def test_odd_bytes_in_a_terminal(tmp_path: Path) -> None:
    file = tmp_path / "deploy.yaml"
    file.write_bytes(ODD["terminal"])
    code, _, said = validate("-f", str(file))
    assert code == 3 and "\x1b" not in said and "\x07" not in said


def test_a_right_file() -> None:
    path = CASES / "good" / "least.yaml"
    code, out, said = validate("-f", str(path))
    assert code == 0 and "the shape is right" in out and said == ""
    code, out, _ = validate("-f", str(path), "--json")
    assert code == 0 and json.loads(out) == {"format_version": "1.0", "name": "domain-qa", "diagnostics": []}


def test_a_missing_file(tmp_path: Path) -> None:
    code, out, said = validate("-f", str(tmp_path / "none.yaml"))
    assert code == 3 and out == "" and "error[DC100]" in said


def test_wrong_usage() -> None:
    assert validate("--no-such-option")[0] == 64
