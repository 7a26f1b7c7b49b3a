"""What takes the KV cache's place, and host cores: each note and warning speaks, and leaves its neighbour alone."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from configured import A100, HOST, QWEN_7B, SMOLLM2, case_of, choices_of, facts_of

from deployc.cost.cuda_graphs import captured, cuda_graphs
from deployc.diagnostics import Diagnostic, Severity
from deployc.facts.calibration import calibration
from deployc.rules import judge
from deployc.types.facts import AdapterFacts, Facts, Flag

LOAD = {"workload": "{input_tokens: 1500, output_tokens: 256, concurrency: 64, max_context: 8192}"}
SERVED = {"adapters": "[{name: a, source: ./a, mode: serve}, {name: b, source: ./b, mode: serve}]"}


def said(facts: Facts, **sections: str) -> dict[str, Diagnostic]:
    """By code."""
    case = case_of(facts, **sections)
    return {d.code: d for d in judge(case.deploy, case.facts, case.choices, case.prediction)}


def args(flags: str, more: str = "") -> dict[str, str]:
    return {"engine": f"{{version: 0.32.0, args: {{{flags}}}{more}}}"}


def counted(count: bool = True) -> Facts:
    """On an RTX 4090; `count` = the graphs are in the budget."""
    return facts_of(graphs_in_budget=count)


def with_adapters(facts: Facts, version: str = "") -> Facts:
    """Two of rank 16, served by a version's rules of memory."""
    adapters = tuple(AdapterFacts(n, f"./{n}", None, {"r": 16}, 16, "org/model", ("q_proj",), (), {}) for n in "ab")
    known = calibration(version) if version else facts.calibration
    return replace(facts, adapters=adapters, calibration=known)


LOWER = {"engine": "{version: 0.32.0, gpu_memory_utilization: 0.8}"}
SPEAKS: list[tuple[str, Facts, dict[str, str], Facts, dict[str, str]]] = [
    ("DC312", counted(), args("max-num-seqs: 512") | LOAD, counted(False), args("max-num-seqs: 512") | LOAD),
    ("DC312", counted(), args("max-num-seqs: 512") | LOAD, counted(), args("max-num-seqs: 32") | LOAD),
    ("DC312", counted(), args("max-num-seqs: 512") | LOAD, counted(),
     args("max-num-seqs: 512, enforce-eager: true") | LOAD),
    ("DC313", with_adapters(counted()), args("max-num-seqs: 256") | LOAD | SERVED,
     with_adapters(counted(), "0.11.0"), args("max-num-seqs: 256") | LOAD | SERVED),
    ("DC313", with_adapters(counted(), "0.11.1"), args("max-num-seqs: 256") | LOAD | SERVED,
     counted(), args("max-num-seqs: 256") | LOAD),
    ("DC314", counted(), args("max-num-batched-tokens: 32768") | LOAD, counted(),
     args("max-num-batched-tokens: 2048") | LOAD),
    ("DC314", counted(), args("max-num-batched-tokens: 32768") | LOAD, facts_of(tokens=32768), LOAD),
    ("DC315", counted(), LOAD | LOWER, counted(),
     LOAD | {"engine": "{version: 0.32.0, gpu_memory_utilization: 0.9}"}),
    ("DC315", counted(), LOAD | LOWER, counted(),
     LOAD | LOWER | {"hardware": "{gpu: rtx-4090, reserved_memory: 4GiB}"}),
    ("DC547", facts_of(), LOAD | {"hardware": "{gpu: rtx-4090, cpus: 2}"}, facts_of(),
     LOAD | {"hardware": "{gpu: rtx-4090, cpus: 3}"}),
    ("DC547", facts_of(), LOAD | {"hardware": "{gpu: rtx-4090, cpus: 2}"}, facts_of(), LOAD),
    ("DC547", facts_of(), LOAD | {"hardware": "{gpu: rtx-4090, cpus: 2}"}, facts_of(SMOLLM2, (HOST,)),
     LOAD | {"hardware": "{gpu: cpu, cpus: 1}"}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "bad", "wrong", "good", "right"), SPEAKS, ids=[f"{row[0]}-{i}" for i, row in enumerate(SPEAKS)]
)
def test_speaks_and_does_not(code: str, bad: Facts, wrong: dict[str, str], good: Facts, right: dict[str, str]) -> None:
    found = said(bad, **wrong)[code]
    assert found.severity is (Severity.WARNING if code == "DC547" else Severity.NOTE)
    assert found.at is not None and found.fix
    assert code not in said(good, **right)


@pytest.mark.parametrize(("version", "graphs"), [("0.11.0", 1), ("0.11.1", 2), ("0.33.0", 2)])
def test_graphs_of_served_adapters_are_twice_as_many_from_the_version_on_that_has_both(
    version: str, graphs: int
) -> None:
    """19 sizes for 128 sequences; merged adapters never have a second graph."""
    facts = replace(facts_of(), calibration=calibration(version))
    served, merged = (choices_of(adapter_mode=mode) for mode in ("serve", "merge"))
    assert captured(facts, served) == graphs * 19
    assert captured(facts, merged) == 19
    assert (cuda_graphs(facts, served, 28).value > cuda_graphs(facts, merged, 28).value) is (graphs == 2)


def test_what_is_left_by_a_lower_share_is_what_the_bill_says() -> None:
    """23.5 GiB x 0.80 and x 0.92: the difference is the KV cache's loss, to the rounding of three figures."""
    found = said(counted(), **LOAD, **LOWER)["DC315"].detail
    left, other = (float(size) for size in re.findall(r"([0-9.]+) GiB \(", found))
    assert other - left == pytest.approx(23.5 * 0.12, abs=0.06)
    assert "80% of the card is 18.8 GiB" in found


@pytest.mark.parametrize(
    ("hardware", "engine", "api", "needed"),
    [
        ("{gpu: rtx-4090, cpus: 1}", "{version: 0.32.0}", "{}", 3),
        ("{gpu: a100-80, count: 4, cpus: 1}", "{version: 0.32.0, parallel: {tensor: 4}}", "{}", 6),
        ("{gpu: a100-80, count: 4, cpus: 1}", "{version: 0.32.0, parallel: {tensor: 2, replicas: 2}}", "{}", 8),
        ("{gpu: rtx-4090, cpus: 1}", "{version: 0.32.0}", "{servers: 4}", 6),
        ("{gpu: rtx-4090, cpus: 1}", "{version: 0.32.0, args: {api-server-count: 2}}", "{}", 4),
    ],
)
def test_cores_are_counted_by_process(hardware: str, engine: str, api: str, needed: int) -> None:
    """An API server or more, an engine core, a worker a card; of every engine on the host."""
    facts = facts_of(QWEN_7B, (A100,) * 4) if "count" in hardware else facts_of()
    flag = Flag("api-server-count", "int")
    facts = replace(facts, engine=replace(facts.engine, flags={**facts.engine.flags, flag.name: flag}))
    found = said(facts, hardware=hardware, engine=engine, api=api)["DC547"]
    assert f"{needed} in all" in found.detail
    assert f"{needed} physical cores" in found.fix


def test_thread_variables_are_named_where_they_are_set() -> None:
    bad: dict[str, Any] = {"hardware": "{gpu: rtx-4090, cpus: 2}"}
    plain = said(facts_of(), **bad)["DC547"].detail
    tried = said(facts_of(), **bad, engine='{version: 0.32.0, env: {OMP_NUM_THREADS: "8"}}')["DC547"].detail
    assert "OMP_NUM_THREADS" not in plain
    assert "OMP_NUM_THREADS does not help" in tried


@pytest.mark.parametrize("length", [4096, 8192, 32768])
def test_the_longest_request_that_is_let_in_changes_no_speed(length: int) -> None:
    """max_model_len decides what fits; the lengths of the load decide how fast it is."""
    load = "{input_tokens: 1500, output_tokens: 256, concurrency: 8, max_context: %d}"
    here, usual = (case_of(workload=load % tokens).prediction for tokens in (length, 2048))
    assert here.speed == usual.speed
    assert here.single_stream == usual.single_stream
