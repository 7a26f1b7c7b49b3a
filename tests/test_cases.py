"""Golden cases: a folder in `cases/` is a deploy.yaml and all that the command line says and makes of it, offline.

Adding a case is adding a folder with a deploy.yaml; `DEPLOYC_UPDATE=1` writes its `expect/`, to be read before it is
committed. No lockfile is kept: it is made from `examples/written_by_hand/` and the shipped profiles, as those of the
examples are, so that a case is no longer than what it is about. `examples/make_locks.py tests/cases/NAME/deploy.yaml`
writes one to plan a case by hand.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from golden import assert_golden

from deployc import pipeline
from deployc.cli.main import run
from deployc.diagnostics import ExitCode

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "examples"))
from make_locks import frozen  # noqa: E402

CASES = sorted(path.parent for path in (HERE / "cases").glob("*/deploy.yaml"))
SECRETS = {"DEPLOYC_API_KEY": "sk-0123456789abcdef", "HF_TOKEN": "hf_0123456789abcdef"}
ENV = SECRETS | {"MAX_CONTEXT": "16384"}
OF_TARGET = {
    "process": ("command.txt",),
    "docker": ("command.txt", "Dockerfile"),
    "compose": ("compose.yaml", "Dockerfile"),
    "systemd": ("*.service",),
}
"""What a target starts from: the other files of the bundle say the same in another format."""


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_case(case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name, value in ENV.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    made = outputs(case, tmp_path, capsys)
    expected = {path.name for path in (case / "expect").glob("*")}
    for name, content in made.items():
        assert_golden(case / "expect" / name, content)
    assert expected <= made.keys(), f"nothing makes {sorted(expected - made.keys())} any more: remove them"
    assert not [secret for secret in SECRETS.values() if secret in "".join(made.values())]


def outputs(case: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """File name -> text. Of a file that is wrong only the errors matter; one that does not fit is not compiled."""
    for source in case.glob("*.yaml"):
        shutil.copy(source, folder)
    analysis = pipeline.shape("deploy.yaml")
    if not analysis.report.errors:
        pipeline.lock_path(analysis.path).write_text(frozen(analysis.path))
    code = run(["plan", "--offline", "--json"])
    made = {"exit": f"{code}\n", "plan.json": capsys.readouterr().out}
    assert run(["plan", "--offline"]) == code
    plan = capsys.readouterr().out
    assert run(["compile", "--offline", "-o", "out"]) == code
    errors = capsys.readouterr().err
    assert all(len(line) <= 80 for line in (plan + errors).splitlines())
    if code == ExitCode.WRONG_FILE:
        return made | {"errors.txt": errors}
    made["plan.txt"] = plan
    if code == ExitCode.OK:
        assert analysis.deploy is not None
        patterns = OF_TARGET[analysis.deploy.target.kind]
        made |= {path.name: path.read_text() for pattern in patterns for path in Path("out").glob(pattern)}
    return made
