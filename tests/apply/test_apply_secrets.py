"""Secrets are read when they are needed and found nowhere else than in their own files."""

from __future__ import annotations

import http.client
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from apply_bench import Bench

from deployc.apply import history, secrets
from deployc.apply.identity import session
from deployc.apply.observe import status
from deployc.apply.state import read_run
from deployc.diagnostics import Stop

KEY, TOKEN = "canary-k3y-0123456789", "canary-t0ken-9876543210"


def keyed(bench: Bench) -> Bench:
    (bench.root / "token").write_text(TOKEN + "\n")
    return replace(
        bench, env={"THE_KEY": KEY, "UNRELATED_SECRET": "canary-unrelated", "HTTPS_PROXY": "http://u:canary-p@h"}
    )


def test_a_canary_is_found_in_no_argument_log_history_or_state_file(bench: Bench) -> None:
    bench = keyed(bench)
    references = {"VLLM_API_KEY": "env:THE_KEY", "HF_TOKEN": "file:token"}
    bench.apply(bench.bundle(standin="tell-secrets", secrets=references))
    run = read_run(bench.state)
    assert run is not None and run.engine is not None
    for process in (*session(run.engine), run.supervisor):
        assert b"canary" not in Path(f"/proc/{process.pid}/cmdline").read_bytes()
    environment = Path(f"/proc/{run.engine.pid}/environ").read_bytes()
    assert KEY.encode() in environment and TOKEN.encode() in environment and b"canary-unrelated" not in environment
    log = Path(history.start(bench.state, run.entry).log).read_text()
    assert "api key ********" in log
    for path in (p for p in bench.state.path.rglob("*") if p.is_file()):
        text = path.read_bytes()
        assert (KEY.encode() not in text and TOKEN.encode() not in text) or path.parent.parent == bench.state.secrets, (
            path
        )
        if path != Path(history.start(bench.state, run.entry).log):  # this stand-in prints its whole environment
            assert b"canary-unrelated" not in text and b"canary-p" not in text
    assert KEY not in repr(status(bench.state))


def test_state_is_readable_by_its_owner_alone(bench: Bench) -> None:
    bench = keyed(bench)
    os.umask(0o022)
    bench.apply(bench.bundle(secrets={"VLLM_API_KEY": "env:THE_KEY"}))
    for path in bench.state.path.rglob("*"):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode & 0o077 == 0 or (path.is_dir() and bench.state.path in path.parents), path
    assert stat.S_IMODE(bench.state.path.stat().st_mode) == 0o700
    for folder in (bench.state.secrets, *bench.state.secrets.iterdir()):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_the_key_guards_the_engine_and_health_uses_it(bench: Bench) -> None:
    bench = keyed(bench)
    applied = bench.apply(bench.bundle(secrets={"VLLM_API_KEY": "env:THE_KEY"}))
    connection = http.client.HTTPConnection("127.0.0.1", bench.port, timeout=5)
    connection.request("GET", "/v1/models")
    assert connection.getresponse().status == 401
    connection.close()
    assert applied.receipt.outcome == "serving"


def test_the_old_engine_is_put_back_with_the_key_it_had(bench: Bench) -> None:
    old = keyed(bench)
    references = {"VLLM_API_KEY": "env:THE_KEY"}
    first = old.apply(old.bundle("a" * 64, secrets=references))
    new = replace(bench, env={"THE_KEY": "canary-another-key"})
    with pytest.raises(Stop):
        new.apply(new.bundle("b" * 64, standin="crash", secrets=references))
    assert status(bench.state).condition == "serving"
    assert [f.name for f in bench.state.secrets.iterdir()] == [first.receipt.entry]
    assert secrets.kept(bench.state, first.receipt.entry) == {"VLLM_API_KEY": KEY}


def test_a_changed_key_is_told_when_nothing_else_changes(bench: Bench) -> None:
    old = keyed(bench)
    bundle = old.bundle(secrets={"VLLM_API_KEY": "env:THE_KEY"})
    old.apply(bundle)
    again = replace(bench, env={"THE_KEY": "canary-another-key"}).apply(bundle)
    assert not again.changed and [d.code for d in again.report] == ["DC629"]
    assert "canary" not in again.report.diagnostics[0].detail
    assert not bench.apply(bundle).report.diagnostics, "an unset variable changes nothing"


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("env:UNSET", "is not set"),
        ("env:EMPTY", "empty"),
        ("env:BROKEN", "line break"),
        ("file:none", "No such file"),
        ("file:binary", "not UTF-8"),
    ],
)
def test_a_secret_that_cannot_be_read_says_why_and_never_what(tmp_path: Path, reference: str, said: str) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfecanary")
    env = {"EMPTY": "", "BROKEN": "canary\nx: y"}
    values, report = secrets.resolve({"HF_TOKEN": reference}, tmp_path, env)
    (told,) = report
    assert not values and told.code == "DC634" and said in told.detail and reference in told.detail
    assert "canary" not in told.detail + told.fix
