"""Apply, replace, keep, and every way in which a new engine may fail: the old one serves again."""

from __future__ import annotations

import pytest
from apply_bench import SERVED, Bench

from deployc.apply import history
from deployc.apply.health import live
from deployc.apply.identity import alive
from deployc.apply.observe import observe, status
from deployc.apply.state import read_run
from deployc.diagnostics import Stop

NEW, OLD = "b" * 64, "a" * 64


def codes(stop: Stop) -> list[str]:
    return [d.code for d in stop.report]


def test_first_apply_starts_and_verifies(bench: Bench) -> None:
    applied = bench.apply(bench.bundle())
    assert applied.changed and applied.receipt.outcome == "serving" and applied.receipt.startup_seconds
    assert live(applied.endpoint)
    seen = status(bench.state)
    assert (seen.condition, seen.served_name, seen.restarts) == ("serving", SERVED, 0)
    assert seen.resident_bytes and seen.resident_bytes > 2**20
    assert (bench.state.history / applied.receipt.entry / "bundle" / "command.txt").read_text() == "vllm serve\n"


def test_second_apply_of_the_same_touches_nothing(bench: Bench) -> None:
    first = bench.apply(bench.bundle())
    before = read_run(bench.state)
    second = bench.apply(bench.bundle())
    assert not second.changed and second.receipt == first.receipt
    assert read_run(bench.state) == before


def test_replace_stops_the_old_engine(bench: Bench) -> None:
    bench.apply(bench.bundle(OLD, standin="worker"))
    old = read_run(bench.state)
    applied = bench.apply(bench.bundle(NEW))
    assert old and old.engine and not alive(old.engine) and not alive(old.supervisor)
    assert observe(None, bench.state, bench.root).digest == f"sha256:{NEW}"
    assert [history.receipt(bench.state, e).outcome for e in history.entries(bench.state)] == ["replaced", "serving"]  # type: ignore[union-attr]
    assert live(applied.endpoint)


@pytest.mark.parametrize(
    ("standin", "code", "said"),
    [
        ("crash", "DC640", "Engine core initialization failed"),
        ("oom", "DC651", "Free memory on device"),
        ("no-port", "DC650", "Errno 98"),
        ("wrong-name", "DC628", "another-model"),
        ("refuse-completion", "DC628", "does not exist"),
    ],
)
def test_a_new_engine_that_fails_leaves_the_old_one_serving(bench: Bench, standin: str, code: str, said: str) -> None:
    first = bench.apply(bench.bundle(OLD))
    with pytest.raises(Stop) as stop:
        bench.apply(bench.bundle(NEW, standin=standin))
    assert code in codes(stop.value) and codes(stop.value)[-1] == "DC645"
    assert any(said in d.detail for d in stop.value.report)
    seen = status(bench.state)
    assert (seen.condition, seen.entry) == ("serving", first.receipt.entry)
    assert history.receipt(bench.state, history.entries(bench.state)[-1]).outcome == "failed"  # type: ignore[union-attr]


def test_a_new_engine_that_hangs_is_given_up_in_time(bench: Bench) -> None:
    bench.apply(bench.bundle(OLD))
    with pytest.raises(Stop) as stop:
        bench.apply(bench.bundle(NEW, standin="hang"), health_timeout="1s")
    assert codes(stop.value) == ["DC641", "DC645"]
    assert status(bench.state).condition == "serving"


def test_a_first_engine_that_fails_leaves_nothing(bench: Bench) -> None:
    with pytest.raises(Stop) as stop:
        bench.apply(bench.bundle(standin="crash"))
    assert codes(stop.value) == ["DC640", "DC647"] and stop.value.exit_code == 1
    assert status(bench.state).condition == "nothing"
    assert not list(bench.state.secrets.iterdir())
