"""A damaged, foreign or half-written deploy.lock: a word for each, never a traceback, the old file kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from alone import stand_alone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_models import JSON, adapter_files, model_files, put
from test_lock import LOCK, ask, codes, local, locked

from deployc.diagnostics import Stop
from deployc.facts import lock as lockfile
from deployc.facts import resolve, update
from deployc.rules.adapter_shapes import adapter_shapes, cannot_be_served, merged


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_alone(monkeypatch)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with a model and an adapter in it."""
    put(tmp_path / "model", model_files())
    put(tmp_path / "qa", adapter_files())
    return tmp_path


def damaged(change: Callable[[Any], Any]) -> Callable[[str], str]:
    """A hand at the lockfile: `change` edits the values."""

    def edit(text: str) -> str:
        value = json.loads(text)
        change(value)
        return json.dumps(value)

    return edit


@pytest.mark.parametrize(
    ("edit", "code", "says"),
    [
        (lambda text: text[:-30], "DC190", "is not JSON"),
        (lambda _: "", "DC190", "is not JSON"),
        (lambda text: "<<<<<<< HEAD\n" + text, "DC190", "merge conflict"),
        (lambda _: "[1]", "DC190", "no lockfile"),
        (lambda _: "{}", "DC190", "no lockfile"),
        (lambda _: '{"lock_version": 3}', "DC190", "`adapters`: it is missing"),
        (lambda _: '{"lock_version": 4}', "DC191", "lock_version 4"),
        (lambda _: '{"lock_version": "x"}', "DC191", "lock_version 'x'"),
        (lambda _: "[" * 100_000, "DC190", "not JSON"),
        (damaged(lambda v: v["model"].pop("config")), "DC190", "`model.config`: it is missing"),
        (damaged(lambda v: v["model"].update(confg=1)), "DC190", "`model.confg`: there is no such field"),
        (damaged(lambda v: v["model"]["architecture"].update(layers="28")), "DC190",
         "`model.architecture.layers`: int is expected, not '28'"),
        (damaged(lambda v: v["model"]["architecture"].update(layers=True)), "DC190", "int is expected, not True"),
        (damaged(lambda v: v["engine"].update(batch_defaults=[])), "DC190", "no rule holds for every card"),
        (damaged(lambda v: v["engine"].update(batch_defaults=[{"device": "cpu", "tokens": 1, "seqs": 1}])), "DC190",
         "no rule holds for every card"),
        (damaged(lambda v: v["model"]["architecture"].update(attention="odd")), "DC190", "one of mha, gqa, mqa"),
        (damaged(lambda v: v["engine"]["batch_defaults"].insert(0, {})), "DC190", "`engine.batch_defaults.0`: counts"),
        (damaged(lambda v: v["engine"]["batch_defaults"][0].update(tokens="8k")), "DC190", "`engine.batch_defaults.0`"),
        (damaged(lambda v: v["engine"]["batch_defaults"].insert(0, {"tokens": 1, "seqs": 1, "min_memory": ""})),
         "DC190", "bytes of memory"),
        (damaged(lambda v: v["engine"].update(compute_capabilities=["zz"])), "DC190", "compute capabilities"),
        (damaged(lambda v: v["engine"].update(version="zz")), "DC190", "`engine.version`: another version"),
        (damaged(lambda v: v["adapters"][0].update(name="other")), "DC190", "`adapters`: other adapters"),
        (damaged(lambda v: v.update(adapters=[])), "DC190", "`adapters`: other adapters"),
        (damaged(lambda v: v["adapters"][0]["config"].update(r=None)), "DC190", "`adapters.0.config`: `r` is None"),
        (damaged(lambda v: v["adapters"][0]["config"].update(peft_type=1)), "DC190", "`adapters.0.config`: `peft"),
        (damaged(lambda v: v["model"]["tensors"][0].update(count=7)), "DC190", "`model.tensors.0`: "),
        (damaged(lambda v: v["model"]["tensors"][0].update(dtype="Q4")), "DC190", "`model.tensors.0`: no such dtype"),
        (damaged(lambda v: v["model"]["tensors"][0].update(shape=[-1])), "DC190", "`model.tensors.0`: "),
        (damaged(lambda v: v["adapters"][0].update(tensors={})), "DC190", "`adapters.0.tensors`: a list is expected"),
        (damaged(lambda v: v["cards"][0]["gpu"].update(compute_capability=[8])), "DC190", "a list of 2 is expected"),
        (damaged(lambda v: v.update(cards=[])), "DC190", "at least one card"),
        (damaged(lambda v: v["engine"]["flags"]["dtype"].pop("type")), "DC190", "`engine.flags.dtype.type`: it is"),
        (damaged(lambda v: v["engine"].update(model_runners=[{"runner": "V1", "experts": True}])), "DC190",
         "`engine.model_runners`: no rule holds for every model"),
        (damaged(lambda v: v["engine"].update(flags=[1])), "DC190", "`engine.flags`: an object is expected"),
        (damaged(lambda v: v["engine"]["flags"].update(dtype=1)), "DC190", "`engine.flags.dtype`: an object"),
    ],
)  # fmt: skip
def test_a_damaged_lockfile(here: Path, edit: Callable[[str], str], code: str, says: str) -> None:
    file = local(here)
    (here / LOCK).write_text(edit(locked(file, here)))
    facts, report = ask(file, here, offline=True)
    assert facts is None
    assert codes(report) == [code]
    assert says in report.diagnostics[0].detail
    assert locked(file, here)  # `lock` replaces it
    assert ask(file, here, offline=True)[0] is not None


@pytest.mark.parametrize("value", [0, -1, 10**40, float("nan"), float("inf")])
@pytest.mark.parametrize(
    "where",
    [
        *(f"model.architecture.{key}" for key in
          ["layers", "hidden_size", "heads", "kv_heads", "head_dim", "vocab_size", "max_position_embeddings"]),
        *(f"cards.0.gpu.{key}.value" for key in ("memory", "bandwidth", "flops.bf16")),
        "cards.0.count", "engine.gpu_memory_utilization",
    ],
)  # fmt: skip
def test_a_number_that_cannot_be(here: Path, where: str, value: float) -> None:
    *path, last = where.split(".")

    def change(tree: Any) -> None:
        tree["cards"][0]["gpu"]["flops"] = {"bf16": {"value": 1e12, "source": "data sheet", "basis": "vendor"}}
        for key in path:
            tree = tree[int(key) if key.isdigit() else key]
        assert last in tree
        tree[last] = value

    file = local(here)
    (here / LOCK).write_text(damaged(change)(locked(file, here)))
    facts, report = ask(file, here, offline=True)
    assert facts is None
    assert codes(report) == ["DC190"]
    assert ("cards" if last == "count" else where.removesuffix(".value")) in report.diagnostics[0].detail


def test_a_lockfile_that_is_not_text(here: Path) -> None:
    (here / LOCK).write_bytes(b"\xff\xfe\x00")
    assert codes(ask(local(here), here)[1]) == ["DC190"]


def test_nothing_is_written_without_facts_or_room(here: Path) -> None:
    text = locked(local(here), here)
    put(here / "qa", {"adapter_config.json": b"{"})
    assert codes(update(local(here), here / LOCK, upgrade=False, env={})) == ["DC203"]
    assert (here / LOCK).read_text() == text
    with pytest.raises(Stop, match="DC196"):
        lockfile.write(here / "none" / LOCK, text)


def test_a_crash_while_writing_leaves_the_old_file(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = locked(local(here), here)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(Stop, match="DC196"):
        lockfile.write(here / LOCK, "new")
    assert (here / LOCK).read_text() == text
    assert sorted(p.name for p in here.iterdir()) == [LOCK, "model", "qa"]


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every path into a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for key, item in items for place in places(item, (*at, key)))]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200, deadline=None)
@given(st.data())
def test_a_lockfile_with_any_value_anywhere_is_read_or_told_of(here: Path, data: st.DataObject) -> None:
    file = local(here)
    value = json.loads(locked(file, here) if not (here / "good").exists() else (here / "good").read_text())
    (here / "good").write_text(json.dumps(value))
    *path, last = data.draw(st.sampled_from(places(value)[1:]))
    inner = value
    for key in path:
        inner = inner[key]
    inner[last] = data.draw(JSON)
    (here / LOCK).write_text(json.dumps(value))
    facts, report = ask(file, here, offline=True)
    assert (facts is None) == bool(report.errors)
    assert all(d.code in ("DC190", "DC191", "DC192") for d in report.errors)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.dictionaries(st.sampled_from(
    ["peft_type", "r", "lora_alpha", "rank_pattern", "alpha_pattern", "target_modules", "base_model_name_or_path",
     "modules_to_save", "target_parameters", "trainable_token_indices", "bias", "use_dora", "init_lora_weights",
     "fan_in_fan_out", "use_rslora"]
), JSON, min_size=1, max_size=2))  # fmt: skip
def test_an_odd_adapter_config_is_told_of(here: Path, change: dict[str, Any]) -> None:
    put(here / "qa", adapter_files(**change) if "r" not in change else adapter_files())
    if "r" in change:
        config = json.loads(adapter_files()["adapter_config.json"]) | change
        (here / "qa" / "adapter_config.json").write_text(json.dumps(config))
    facts, report = resolve(local(here), lock_path=None, offline=True, env={})
    assert facts is not None or set(codes(report)) <= {"DC230", "DC231"}
    if facts is not None:
        (adapter,) = facts.adapters
        adapter_shapes(facts.model, adapter, None)
        merged(facts.model, facts.adapters)
        cannot_be_served(adapter, None)
