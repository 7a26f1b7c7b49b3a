"""Advice by simulation: what a setting costs, on which load, what speaks for it, and when nothing is said."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from configured import A100, GIB, H200, HOST, QWEN_05B, QWEN_7B, SMOLLM2, card, case_of, facts_of
from runs import counted

from deployc.diagnostics import Diagnostic, Severity
from deployc.facts.calibration import calibration
from deployc.rules import advice, judge
from deployc.rules.advice.effect import effects
from deployc.types.facts import AdapterFacts, Facts, Flag
from deployc.types.figure import Figure
from deployc.types.prediction import Speed

ROWS = Path(__file__).resolve().parents[2] / "profiles" / "calibration" / "rows" / "h200_speed.jsonl"
CODES = ("DC245", "DC533", "DC540", "DC541", "DC542", "DC543", "DC544", "DC545", "DC546")


def load(tokens: int, answer: int, how: str, more: str = "") -> dict[str, str]:
    """A workload whose requests fit into 8,192 tokens."""
    return {"workload": f"{{input_tokens: {tokens}, output_tokens: {answer}, {how}, max_context: 8192{more}}}"}


def args(flags: str) -> dict[str, str]:
    """`engine.args` of the version that was measured."""
    return {"engine": f"{{version: 0.25.1, args: {{{flags}}}}}"}


def on_h200(config: Any = QWEN_7B, tokens: int = 8192) -> Facts:
    """One H200 with the batch defaults of a server, or others."""
    facts = facts_of(config, (H200,), "0.25.1", tokens, 1024)
    flag = Flag("async-scheduling", "bool", aliases=("no-async-scheduling",))
    known = {**facts.engine.flags, flag.name: flag}
    return replace(facts, engine=replace(facts.engine, flags=known))


def with_adapter(facts: Facts) -> Facts:
    return replace(facts, adapters=(AdapterFacts("a", "./a", None, {"r": 16}, 16, "org/model", ("q_proj",), (), {}),))


def said(facts: Facts, **sections: str) -> dict[str, Diagnostic]:
    """Advice by code."""
    case = case_of(facts, **sections)
    found = judge(case.deploy, case.facts, case.choices, case.prediction)
    return {d.code: d for d in found if d.code in CODES}


BUSY, SERVED = load(1500, 256, "concurrency: 256"), "[{name: a, source: ./a, mode: %s}]"
BUSY_ONCE = load(1500, 1, "concurrency: 64")
PREFIX = load(3000, 256, "concurrency: 64", ", shared_prefix_tokens: 2000")
LONG = load(3000, 1500, "concurrency: 128")
SMALL = load(100, 256, "concurrency: 64")
TP4 = {"engine": "{version: 0.25.1, parallel: {tensor: 4}}"}
FOUR = facts_of(cards=(card(),) * 4)
SPEAKS: list[tuple[str, Facts, dict[str, str], Facts, dict[str, str]]] = [
    ("DC540", on_h200(), BUSY | args("max-num-seqs: 64"), on_h200(), BUSY | args("max-num-seqs: 256")),
    ("DC540", on_h200(), BUSY | args("max-num-seqs: 64"), on_h200(), load(1500, 256, "concurrency: 64")
     | args("max-num-seqs: 64")),
    ("DC540", facts_of(), LONG | args("max-num-seqs: 128"), facts_of(), LONG | args("max-num-seqs: 24")),
    ("DC541", on_h200(), BUSY | args("max-num-batched-tokens: 512"), on_h200(),
     BUSY | args("max-num-batched-tokens: 8192")),
    ("DC541", on_h200(tokens=2048), load(4000, 32, "concurrency: 8") | args("max-num-batched-tokens: 32768")
     | {"sla": "{ttft_p95: 750ms}"},
     on_h200(tokens=2048), load(4000, 32, "concurrency: 8") | args("max-num-batched-tokens: 2048")),
    ("DC542", on_h200(), load(1500, 256, "concurrency: 32") | args("enforce-eager: true"),
     on_h200(), load(1500, 256, "concurrency: 32") | args("enforce-eager: false")),
    ("DC543", on_h200(), PREFIX | args("enable-prefix-caching: false"),
     on_h200(), load(3000, 256, "concurrency: 64") | args("enable-prefix-caching: false")),
    ("DC543", on_h200(), PREFIX | args("no-enable-prefix-caching: true"), on_h200(), PREFIX),
    ("DC544", on_h200(), load(1500, 256, "concurrency: 8") | args("no-async-scheduling: true"),
     on_h200(), load(1500, 256, "concurrency: 8") | args("async-scheduling: true")),
    ("DC245", with_adapter(on_h200()), {"adapters": SERVED % "serve"}, with_adapter(on_h200()),
     {"adapters": SERVED % "merge"}),
    ("DC533", FOUR, load(1500, 256, "concurrency: 128") | TP4,
     facts_of(cards=(A100,) * 4), load(1500, 256, "concurrency: 128") | TP4),
    ("DC545", on_h200(QWEN_05B), SMALL | {"hardware": "{gpu: h200-sxm, cpus: 4}"}, on_h200(QWEN_05B), SMALL),
    ("DC546", on_h200(), {"quantization": "{kv_cache: fp8}"}, on_h200(), {}),
    ("DC546", on_h200(), {"quantization": "{kv_cache: fp8}"},  # where more of the load fits by it
     facts_of(), load(6000, 256, "concurrency: 64") | {"quantization": "{kv_cache: fp8}"}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "bad", "wrong", "good", "right"), SPEAKS, ids=[f"{row[0]}-{i}" for i, row in enumerate(SPEAKS)]
)
def test_speaks_and_does_not(code: str, bad: Facts, wrong: dict[str, str], good: Facts, right: dict[str, str]) -> None:
    found = said(bad, **wrong)[code]
    assert found.severity is Severity.WARNING
    assert found.at is not None
    assert found.fix
    assert found.basis in ("measured", "transferred")
    assert code not in said(good, **right)


def test_the_loss_by_too_few_sequences_is_what_was_measured() -> None:
    """vLLM 0.25.1 on an H200 with 256 in flight: 17.2 requests/s with 64 at once, 19.9 with 128."""
    rows = {row["id"]: row for row in map(json.loads, ROWS.read_text().splitlines())}
    few, more = (rows[f"{name}/1500x256/c256"]["req_s"] for name in ("q7-seqs64", "q7-bf16"))
    assert (few, more) == (pytest.approx(17.2, abs=0.05), pytest.approx(19.9, abs=0.05))
    detail = said(on_h200(tokens=2048), **BUSY, **args("max-num-seqs: 64, max-num-batched-tokens: 2048"))[
        "DC540"
    ].detail
    loss = re.search(r"output tokens .*? against .*?, (\d+)% fewer \((\d+)% to (\d+)%\)", detail)
    assert loss is not None
    measured = 100 * (1 - few / more)
    assert abs(int(loss[1]) - measured) <= 5
    assert int(loss[2]) <= measured <= int(loss[3])


def test_what_a_setting_is_good_for_is_said_beside_what_it_costs() -> None:
    found = said(on_h200(), **BUSY, **args("max-num-seqs: 64"))["DC540"]
    against, favour = found.detail.split(" In its favour: ")
    assert "max-num-seqs 64 against 256" in against
    assert "fewer" in against
    assert "time per output token, p95, " in favour
    assert "shorter" in favour
    assert "(measured)" in against
    assert found.at is not None
    assert found.at.excerpt[found.at.column - 1 :].startswith("64")


@pytest.mark.parametrize(("limit", "speaks"), [("tpot_p95: 20ms", False), ("tpot_p95: 10ms", False),
                                               ("ttft_p95: 9s", True), ("requests_per_second: 18", True)])  # fmt: skip
def test_what_the_sla_asks_for_is_not_undone(limit: str, speaks: bool) -> None:
    """Few sequences keep the time per token: where that has a limit, met or missed, more are not advised."""
    found = said(on_h200(), **BUSY, **args("max-num-seqs: 64"), sla=f"{{{limit}}}")
    assert ("DC540" in found) is speaks
    if speaks:
        assert f"sla.{limit.partition(':')[0]} would fare better" in found["DC540"].detail


def test_eager_mode_is_left_alone_where_graphs_do_not_fit() -> None:
    """On a card so full that graphs outside the budget run out of memory, enforce-eager is what helps."""
    narrow, eager = card("odd", 23.5 * GIB, 4.8e12, flops=989e12), load(128, 256, "concurrency: 64")
    full = "{version: 0.25.1, gpu_memory_utilization: 0.97, args: {enforce-eager: true}}"
    roomy = "{version: 0.25.1, gpu_memory_utilization: 0.9, args: {enforce-eager: true}}"
    assert "DC542" in said(facts_of(cards=(narrow,), version="0.25.1"), **eager, engine=roomy)
    assert "DC542" not in said(facts_of(cards=(narrow,), version="0.25.1"), **eager, engine=full)


def test_the_cpu_engine_and_what_does_not_start_get_no_advice() -> None:
    assert said(facts_of(SMOLLM2, (HOST,)), **args("enforce-eager: true, max-num-seqs: 1")) == {}
    tiny = facts_of(cards=(card("rtx-3070", 8 * GIB),))
    assert said(tiny, **args("enforce-eager: true, max-num-seqs: 1")) == {}


def test_replicas_are_advised_with_a_length_that_they_hold() -> None:
    """One card does not hold 131,072 tokens beside the weights, but all that the load sends."""
    long = {
        "workload": "{input_tokens: 11776, output_tokens: 512, concurrency: 128, max_context: 131072}",
        "model": "{source: org/model, context: {rope: yarn, factor: 4}}",
    }
    fix = said(FOUR, **long, **TP4)["DC533"].fix
    length = re.search(r"tensor: 1, replicas: 4\} and workload\.max_context: (\d+)", fix)
    assert length is not None
    assert 12288 <= int(length[1]) < 131072
    followed = {
        "workload": long["workload"].replace("131072", length[1]), "model": long["model"],
        "engine": "{version: 0.25.1, parallel: {tensor: 1, replicas: 4}}",
    }  # fmt: skip
    case = case_of(FOUR, **followed)
    found = judge(case.deploy, case.facts, case.choices, case.prediction)
    assert not [d for d in found if d.severity is Severity.ERROR]
    assert "engine.parallel.tensor" not in " ".join(d.fix for d in found)  # none sends the reader back
    longer = long | {"workload": long["workload"].replace("11776", "120000")}
    assert said(FOUR, **longer, **TP4)["DC533"].fix == "set engine.parallel: {tensor: 2, replicas: 2}"


@pytest.mark.parametrize(("flags", "runs"), [("seed: 1", 0), ("max-num-seqs: 64", 1),
                                             ("max-num-seqs: 64, enforce-eager: true", 2)])  # fmt: skip
def test_a_setting_is_simulated_once_and_only_where_it_is_written(
    flags: str, runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = case_of(on_h200(), **BUSY, **args(flags))
    seen = counted(monkeypatch)
    list(advice.settings(case))
    list(advice.fp8_for_nothing(case))
    list(advice.host_bound(case))
    assert len(seen) == runs


def speed(tokens: float, ttft: float, tpot: float, basis: Any = "measured") -> Speed:
    """Only what effects look at differs."""
    values = {"ttft_p50": ttft, "ttft_p95": ttft, "tpot_p50": tpot, "tpot_p95": tpot, "e2e_p95": ttft}
    rates = {"requests_per_second": tokens / 100, "tokens_per_second": tokens}
    return Speed(**{name: Figure(value, value, value, "", basis) for name, value in (values | rates).items()})


def test_an_effect_is_no_surer_than_the_model() -> None:
    """On the measured card an effect may be off by the model's error; on another it may be larger or smaller too."""
    errors = calibration("0.25.1").speed[0].errors
    measured = effects(speed(80, 1, 0.02), speed(100, 1, 0.02), errors)[0].cost
    carried = effects(speed(80, 1, 0.02, "transferred"), speed(100, 1, 0.02, "transferred"), errors)[0].cost
    assert measured.value == carried.value == pytest.approx(1.25)
    assert measured.high / measured.value == pytest.approx(errors.of("measured", "tokens_per_second"))
    assert carried.low < measured.low < measured.high < carried.high
    none = effects(speed(100, 1, 0.02), speed(100, 1, 0.02), errors)
    assert not any(effect.hurts or effect.helps for effect in none)


def test_a_queue_without_end_is_no_shorter_than_another() -> None:
    errors = calibration("0.25.1").speed[0].errors
    both = effects(speed(80, math.inf, 0.02), speed(100, math.inf, 0.02), errors)
    assert [effect.name for effect in both] == ["tokens_per_second", "tpot_p95"]
    one = effects(speed(80, math.inf, 0.02), speed(100, 1.0, 0.02), errors)[1]
    assert one.hurts
    assert str(one) == "time to first token, p95, unbounded against 1.00 s"


@pytest.mark.parametrize("setting", ["max-num-seqs: 2", "max-num-batched-tokens: 512", "enforce-eager: true"])
def test_answers_of_one_token_have_no_time_per_output_token_to_compare(setting: str) -> None:
    assert not any("per output token" in d.detail for d in said(on_h200(), **BUSY_ONCE, **args(setting)).values())


@pytest.mark.parametrize(("ours", "theirs"), [(0.0, 0.0), (0.02, 0.0), (0.0, 0.02)])
def test_a_token_that_comes_with_the_one_before_is_compared_with_nothing(ours: float, theirs: float) -> None:
    errors = calibration("0.25.1").speed[0].errors
    found = effects(speed(80, 1, ours), speed(100, 1, theirs), errors)
    assert [effect.name for effect in found] == ["tokens_per_second", "ttft_p95"]
