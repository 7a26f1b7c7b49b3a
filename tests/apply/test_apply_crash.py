"""Processes that die: the engine, its supervisor, the apply itself; and pids that were given to others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import apply_bench
import pytest
from apply_bench import Bench

import deployc
from deployc.apply import history, process
from deployc.apply.destroy import destroy
from deployc.apply.identity import Identity, alive, identify, session
from deployc.apply.observe import observe, status
from deployc.apply.state import Run, read_run
from deployc.diagnostics import Stop

NEW, OLD = "b" * 64, "a" * 64


def until(true: Callable[[], bool], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.02)


def running(bench: Bench) -> tuple[Run, Identity]:
    run = read_run(bench.state)
    assert run is not None and run.engine is not None
    return run, run.engine


def started(bench: Bench, digest: str) -> bool:
    run = read_run(bench.state)
    return run is not None and run.engine is not None and run.digest == f"sha256:{digest}"


def applying(bench: Bench, **options: object) -> subprocess.Popen[str]:
    """An apply in a process of its own."""
    words = [sys.executable, apply_bench.__file__, str(bench.root), str(bench.port), json.dumps(options)]
    env = {**os.environ, "PYTHONPATH": str(Path(deployc.__file__).parent.parent)}
    return subprocess.Popen(words, env=env, stderr=subprocess.PIPE, text=True)


def test_a_killed_engine_is_restarted_and_status_says_so(bench: Bench) -> None:
    bench.apply(bench.bundle(standin="worker"))
    _, first = running(bench)
    os.kill(first.pid, signal.SIGKILL)
    until(lambda: status(bench.state).restarts == 1 and status(bench.state).condition == "serving")
    _, second = running(bench)
    assert second != first and not session(first), "the worker of the killed engine is gone too"
    assert "killed by SIGKILL" in status(bench.state).reason


def test_a_crash_loop_ends_and_says_why(bench: Bench) -> None:
    broken = bench.root / "broken"
    bench.apply(bench.bundle(env={"STANDIN_CRASH_IF": str(broken)}))
    broken.touch()
    os.kill(running(bench)[1].pid, signal.SIGKILL)
    until(lambda: status(bench.state).condition == "failed")
    seen = status(bench.state)
    assert seen.restarts == 3 and "given up after 3 restarts" in seen.reason
    assert any("Engine core initialization failed" in line for line in seen.log_tail)
    assert observe(None, bench.state, bench.root).digest is None
    until(lambda: not process.supervised(bench.state))
    broken.unlink()
    assert bench.apply(bench.bundle(env={"STANDIN_CRASH_IF": str(broken)})).changed
    assert status(bench.state).condition == "serving"


def test_a_killed_supervisor_takes_its_engine_along_and_apply_converges(bench: Bench) -> None:
    bench.apply(bench.bundle())
    run, engine = running(bench)
    os.kill(run.supervisor.pid, signal.SIGKILL)
    until(lambda: not alive(engine))
    assert status(bench.state).condition == "gone"
    assert bench.apply(bench.bundle()).changed
    assert status(bench.state).condition == "serving"


def test_an_engine_that_outlives_its_killed_supervisor_is_swept(bench: Bench) -> None:
    bench.apply(bench.bundle(OLD, standin="ignore-term,worker"))
    run, engine = running(bench)
    os.kill(run.supervisor.pid, signal.SIGKILL)
    until(lambda: not alive(run.supervisor))
    assert alive(engine) and len(session(engine)) == 2
    bench.apply(bench.bundle(NEW))
    assert not session(engine)
    assert status(bench.state).digest == f"sha256:{NEW}"


def test_an_engine_that_ignores_term_is_killed_after_the_drain_timeout(bench: Bench) -> None:
    bench.apply(bench.bundle(standin="ignore-term,worker"), drain_timeout="300ms")
    _, engine = running(bench)
    destroy(bench.state)
    assert not session(engine) and status(bench.state).condition == "nothing"


def test_a_recycled_pid_is_not_killed(bench: Bench) -> None:
    """run.json names a pid that now belongs to a stranger: other start time, or another boot."""
    bench.apply(bench.bundle())
    run, _ = running(bench)
    process.stop(bench.state)
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as stranger:
        me = identify(stranger.pid)
        assert me is not None
        for fake in (replace(me, start=me.start - 100), replace(me, boot="another-boot")):
            replace(run, supervisor=fake, engine=fake).write(bench.state)
            assert status(bench.state).condition == "gone"
            assert observe(None, bench.state, bench.root).digest is None
            process.stop(bench.state)
            assert alive(me)
        stranger.kill()


def test_two_applies_at_once_the_second_is_refused(bench: Bench) -> None:
    first = applying(bench, standin="hang", rollout={"health_timeout": "20s"})
    until(lambda: read_run(bench.state) is not None)
    second = applying(bench)
    _, said = second.communicate(timeout=10)
    assert second.returncode == 5 and "DC632" in said
    first.send_signal(signal.SIGINT)
    assert first.wait(10) == 130
    assert status(bench.state).condition == "nothing"


def test_interrupted_in_the_middle_the_old_engine_is_put_back(bench: Bench) -> None:
    old = bench.apply(bench.bundle(OLD))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        apply = applying(bench, digest=NEW, standin="hang", rollout={"health_timeout": "20s"})
        until(lambda: started(bench, NEW))
        apply.send_signal(number)
        _, said = apply.communicate(timeout=20)
        assert apply.returncode == 130 and "DC644" in said and "DC645" in said
        seen = status(bench.state)
        assert (seen.condition, seen.entry) == ("serving", old.receipt.entry)


@pytest.mark.parametrize("standin", ["hang", ""])
def test_an_apply_killed_in_the_middle_then_apply_again(bench: Bench, standin: str) -> None:
    old = bench.apply(bench.bundle(OLD))
    apply = applying(bench, digest=NEW, standin="hang", rollout={"health_timeout": "20s"})
    until(lambda: started(bench, NEW))
    apply.kill()
    apply.communicate()
    _, unverified = running(bench)
    assert observe(None, bench.state, bench.root).healthy is False
    if standin:  # the next one fails too: what was verified last comes back
        with pytest.raises(Stop):
            bench.apply(bench.bundle(NEW, standin="hang"), health_timeout="500ms")
        assert status(bench.state).entry == old.receipt.entry
    else:
        assert bench.apply(bench.bundle(NEW)).changed
        assert status(bench.state).digest == f"sha256:{NEW}"
    assert not session(unverified) and status(bench.state).condition == "serving"


@pytest.mark.parametrize("seconds", [0.2, 0.3, 0.4, 0.5])
def test_an_apply_killed_at_any_moment_leaves_something_that_apply_mends(bench: Bench, seconds: float) -> None:
    bench.apply(bench.bundle(OLD, standin="worker"))
    engines = [running(bench)[1]]
    apply = applying(bench, digest=NEW, standin="worker")
    time.sleep(seconds)
    apply.kill()
    apply.communicate()
    if (run := process.running(bench.state)) is not None and run.engine is not None:
        engines.append(run.engine)
    bench.apply(bench.bundle(NEW, standin="worker"))
    last = running(bench)[1]
    assert status(bench.state).digest == f"sha256:{NEW}" and status(bench.state).condition == "serving"
    assert all(not session(engine) for engine in engines if engine != last), "never two"


def test_an_apply_killed_between_stop_and_start(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        pass

    old = bench.apply(bench.bundle(OLD))
    with monkeypatch.context() as patch:
        patch.setattr(process, "launch", lambda *_: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            bench.apply(bench.bundle(NEW))
    assert status(bench.state).condition == "nothing"
    with pytest.raises(Stop) as stop:
        bench.apply(bench.bundle(NEW, standin="crash"))
    assert stop.value.report.diagnostics[-1].code == "DC645"
    assert status(bench.state).entry == old.receipt.entry


def test_an_unverified_engine_that_dies_is_not_restarted(bench: Bench) -> None:
    with pytest.raises(Stop):
        bench.apply(bench.bundle(standin="crash"))
    log = Path(history.start(bench.state, history.entries(bench.state)[-1]).log).read_text()
    assert log.count("stand-in engine") == 1


def test_destroy_stops_forgets_and_keeps_history_unless_purged(bench: Bench) -> None:
    bench.apply(bench.bundle())
    _, engine = running(bench)
    assert destroy(bench.state) is not None
    assert not alive(engine) and status(bench.state).condition == "nothing"
    (entry,) = history.entries(bench.state)
    receipt = history.receipt(bench.state, entry)
    assert receipt and receipt.outcome == "destroyed" and list(bench.state.logs.glob("*.log"))
    assert destroy(bench.state) is None
    destroy(bench.state, purge=True)
    assert not bench.state.path.exists()
