"""What is known to fail is said before anything that runs is touched."""

from __future__ import annotations

import os
import shutil
import socket
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import pytest
from apply_bench import Bench, make_engine

from deployc.apply import history
from deployc.apply.execute import execute
from deployc.apply.observe import observe, status
from deployc.apply.progress import Silent
from deployc.apply.state import read_run
from deployc.build import store
from deployc.diagnostics import Stop
from deployc.types.bundle import Bundle, EngineFlag, Recipe
from deployc.types.manifest import Content, Manifest
from deployc.types.plan import Plan, Step

NEW, OLD = "b" * 64, "a" * 64
RECIPE = Recipe("c" * 64, "./model", "huggingface", None, {}, (), {}, "int8", "bfloat16", ("lm_head",))


def refused(bench: Bench, bundle: Bundle) -> Stop:
    """The refusal of a bundle, with proof that what ran before was not touched."""
    before = read_run(bench.state)
    with pytest.raises(Stop) as stop:
        bench.apply(bundle)
    assert read_run(bench.state) == before
    assert before is None or status(bench.state).condition == "serving"
    return stop.value


def test_a_port_held_by_a_stranger_is_named_and_the_old_engine_untouched(bench: Bench) -> None:
    bench.apply(bench.bundle(OLD))
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        other = replace(bench, port=stranger.getsockname()[1])
        (told,) = refused(other, other.bundle(NEW)).report
    assert told.code == "DC636"
    assert f"127.0.0.1:{other.port}: process {os.getpid()} (" in told.detail


def test_an_address_that_is_not_of_this_host(bench: Bench) -> None:
    bundle = bench.bundle()
    (launch,) = bundle.launches
    (told,) = refused(bench, replace(bundle, launches=(replace(launch, bind="192.0.2.1"),))).report
    assert told.code == "DC637"


def test_all_that_is_wrong_is_said_at_once(bench: Bench) -> None:
    bench.apply(bench.bundle(OLD))
    shutil.rmtree(bench.root / "model")
    shutil.rmtree(bench.root / "engine")
    secrets = {"VLLM_API_KEY": "env:MISSING", "HF_TOKEN": "file:nowhere"}
    stop = refused(bench, bench.bundle(NEW, secrets=secrets))
    assert sorted(d.code for d in stop.report) == ["DC620", "DC634", "DC634", "DC635"]
    assert all(d.detail and d.fix for d in stop.report)


def test_another_engine_version(bench: Bench) -> None:
    shutil.rmtree(bench.root / "engine")
    make_engine(bench.root / "engine", "0.25.1")
    (told,) = refused(bench, bench.bundle()).report
    assert (
        told.code == "DC621" and "0.25.1" in told.detail and "deployc engine install --version 0.32.0 --cpu" in told.fix
    )


def test_a_flag_that_the_installed_engine_does_not_know(bench: Bench) -> None:
    flag = EngineFlag("swap-space", "4", "deploy.yaml:31", argv=("--swap-space", "4"))
    (told,) = refused(bench, bench.bundle(flags=(flag,))).report
    assert told.code == "DC633" and "--swap-space (deploy.yaml:31)" in told.detail


def test_a_full_disk(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.apply(bench.bundle(OLD))
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(2**30, 2**30, 2**20))
    (told,) = refused(bench, bench.bundle(NEW)).report
    assert told.code == "DC639" and "1.00 MiB free" in told.detail


def test_a_disk_that_fills_while_the_entry_is_written(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.apply(bench.bundle(OLD))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", str(bench.state.history))

    monkeypatch.setattr(history, "begin", full)
    codes = [d.code for d in refused(bench, bench.bundle(NEW)).report]
    assert codes == ["DC631", "DC645"]


def test_a_disk_that_fills_after_the_old_engine_was_stopped(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    first = bench.apply(bench.bundle(OLD))

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", str(bench.state.history))

    monkeypatch.setattr(history, "settle", full)
    with pytest.raises(Stop) as stop:
        bench.apply(bench.bundle(NEW))
    assert [d.code for d in stop.value.report] == ["DC631", "DC645"]
    assert status(bench.state).entry == first.receipt.entry and status(bench.state).condition == "serving"


def test_several_engines_are_not_supported_yet(bench: Bench) -> None:
    bundle = bench.bundle()
    (told,) = refused(bench, replace(bundle, launches=bundle.launches * 2)).report
    assert told.code == "DC638"


def test_a_missing_artifact_is_built_and_one_that_stays_away_is_an_error(bench: Bench) -> None:
    bench.apply(bench.bundle(OLD))
    bundle = bench.bundle(NEW, recipe=RECIPE)
    built: list[str] = []
    job = replace(bench.job(bundle), build=lambda recipe: built.append(recipe.key))
    before = read_run(bench.state)
    with pytest.raises(Stop) as stop:
        execute(bench.plan(bundle), job, Silent())
    assert built == [RECIPE.key] and [d.code for d in stop.value.report] == ["DC635"]
    assert read_run(bench.state) == before

    def build(recipe: Recipe) -> None:
        folder = bench.root / "store" / recipe.key
        folder.mkdir(parents=True)
        (folder / "config.json").write_text("{}")

    execute(bench.plan(bundle), replace(job, build=build), Silent())
    assert history.start(bench.state, history.entries(bench.state)[-1]).argv[2] == str(
        bench.root / "store" / RECIPE.key
    )


def test_an_artifact_that_lost_a_file_counts_as_missing(bench: Bench) -> None:
    place, into = bench.root / "store", bench.root / "store" / ".building"
    into.mkdir(parents=True)
    made = {"config.json": b"{}", "model.safetensors": b"weights"}
    for name, content in made.items():
        (into / name).write_bytes(content)
    contents = {name: Content(len(content), "0" * 64) for name, content in made.items()}
    manifest = Manifest(store.FORMAT_VERSION, RECIPE.key, {}, {}, contents, "0", "0", 1, "2026-01-01T00:00:00Z", {})
    artifact = store.publish(place, into, manifest)
    bundle = bench.bundle(recipe=RECIPE)
    assert observe(bundle, bench.state, place).artifact is True
    (artifact.path / "model.safetensors").unlink()
    assert observe(bundle, bench.state, place).artifact is False, "so that it is built again, not served and failed"


def test_a_plan_that_keeps_what_no_longer_runs_is_refused(bench: Bench) -> None:
    stale = Plan({}, (Step("engine", "keep", "qa", "it ran when planned"),), changes=False)
    with pytest.raises(Stop) as stop:
        execute(stale, bench.job(bench.bundle()), Silent())
    assert stop.value.exit_code == 5 and [d.code for d in stop.value.report] == ["DC648"]


def test_a_state_folder_that_cannot_be_made(bench: Bench) -> None:
    (bench.root / "state").write_text("a file in the way")
    with pytest.raises(Stop) as stop:
        bench.apply(bench.bundle())
    (told,) = stop.value.report
    assert told.code == "DC631" and str(Path("state")) in told.detail
