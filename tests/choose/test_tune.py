"""The search finds what simulating everything would: the same choice and the same front."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import pytest
from configured import A100, H200, card, case_of, facts_of, yaml_of
from handmade import deploy_of
from hypothesis import given, settings
from hypothesis import strategies as st

from deployc.choose import decide
from deployc.choose.tune import Cards, Tuned, changes, spelled, tune
from deployc.choose.tune.change import applied
from deployc.choose.tune.findings import findings
from deployc.choose.tune.front import front, point
from deployc.choose.tune.search import ALIKE
from deployc.choose.tune.space import Candidate, accepted, candidates, fixed
from deployc.choose.tune.verdict import Run, all_kept, predicted
from deployc.cost import predict
from deployc.cost.memory import memory
from deployc.cost.other_cards import starts
from deployc.diagnostics import Severity
from deployc.rules import judge, sla
from deployc.spec.deploy import Deploy
from deployc.spec.model import Sla
from deployc.spec.unsupported import NOT_YET
from deployc.types.facts import Facts, GpuFacts
from deployc.types.prediction import Prediction

RTX = card("rtx-4090d", 23.5 * 2**30)


@dataclass(frozen=True)
class Space:
    """A file, its facts, and the cards to look at."""

    deploy: Deploy
    facts: Facts
    cards: tuple[Cards, ...]
    like: Prediction

    def tuned(self, *, most: int = 1000, sure: bool = True, free: tuple[str, ...] = ()) -> Tuned:
        return tune(self.deploy, self.facts, self.like, self.cards, most=most, sure=sure, free=free)

    def with_sla(self, **limits: float) -> Space:
        values: dict[str, Any] = dict(limits)
        deploy = self.deploy.model_copy(update={"sla": Sla.model_construct(None, **values)})
        return Space(deploy, self.facts, self.cards, self.like)


def space(gpu: GpuFacts, counts: tuple[int, ...] = (1,), **sections: str) -> Space:
    """As many cards of one kind as each of `counts` says; the file names the last of them."""
    sections = {"hardware": f"{{gpu: {gpu.name}, count: {counts[-1]}}}", **sections}
    facts = facts_of(cards=(gpu,) * counts[-1])
    like = case_of(facts, **{name: text for name, text in sections.items() if name != "sla"}).prediction
    return Space(deploy_of(yaml_of(**sections)), facts, tuple(Cards((gpu,) * n) for n in counts), like)


ON_H200 = space(
    H200, workload="{input_tokens: 1500, output_tokens: 256, concurrency: 128, max_context: 8192}",
    quantization="{weights: none}",
)  # fmt: skip
ON_4090D = space(
    RTX, (1, 2, 4), workload="{input_tokens: 4000, output_tokens: 300, concurrency: 24, max_context: 8192}",
    quantization="{kv_cache: fp8, weights: none}", engine="{version: 0.32.0, args: {max-num-batched-tokens: 4096}}",
)  # fmt: skip
ON_A100 = space(
    A100, workload="{input_tokens: {mean: 1200, p95: 3000}, output_tokens: {mean: 200, p95: 500}, request_rate: 3}",
    engine="{version: 0.32.0, args: {max-num-batched-tokens: 2048}}",
)  # fmt: skip


def by_force(at: Space, *, sure: bool = True) -> tuple[int | None, list[int]]:
    """Numbers of the choice and of the front, from simulating every configuration that surely starts."""
    runs = [predicted(one) for one in candidates(at.deploy, at.facts, at.cards) if starts(one.facts, one.choices)]
    runs = [ran for ran in runs if not ran.errors and not ran.prediction.over_capacity]
    runs = list({_engine(ran.candidate): ran for ran in reversed(runs)}.values())  # of equal engines the longest
    met = [ran for ran in runs if all_kept(ran.lines, sure=sure)]
    points = [
        point(speed.tokens_per_second.value / of.cards.count, speed.tpot_p95.value, (*of.loss, of.apart, of.number))
        for ran in runs
        if all_kept(ran.lines, sure=sure, but=["tpot_p95"])
        and (speed := ran.prediction.speed)
        and (of := ran.candidate)
    ]
    return _best(met), [int(one.rank[-1]) for one in front(points)]


def _best(met: list[Run]) -> int | None:
    if not met:
        return None
    least = min((ran.candidate.cards.count, ran.candidate.loss) for ran in met)
    level = [ran for ran in met if (ran.candidate.cards.count, ran.candidate.loss) == least]
    if level[0].candidate.deploy.workload.request_rate is not None:
        return min(level, key=lambda ran: (ran.candidate.apart, *_worth(ran)[1:])).candidate.number
    best = min(level, key=_worth)
    tokens, whole = -_worth(best)[0] * (1 - ALIKE), _worth(best)[1] * (1 + ALIKE)
    alike = [ran for ran in level if -_worth(ran)[0] >= tokens and _worth(ran)[1] <= whole]
    return min(alike, key=lambda ran: (ran.candidate.apart, *_worth(ran))).candidate.number


def _worth(ran: Run) -> tuple[float, ...]:
    """The less the better: tokens/s, time of an answer, flags, length, number."""
    speed, of = ran.prediction.speed, ran.candidate
    return (
        -speed.tokens_per_second.value, speed.e2e_p95.value, of.apart, -of.choices.max_model_len.value, of.number
    )  # fmt: skip


def _engine(of: Candidate) -> tuple[object, ...]:
    choices = of.choices
    return (of.cards.count, *(getattr(choices, name).value for name in (
        "weights", "kv_cache_dtype", "tensor_parallel_size", "replicas", "max_num_seqs", "max_num_batched_tokens"
    )))  # fmt: skip


@pytest.mark.parametrize(
    ("at", "limits"),
    [
        (ON_H200, {}),
        (ON_H200, {"ttft_p95": 12.0, "tpot_p95": 0.03}),
        (ON_H200, {"tpot_p95": 0.015}),
        (ON_H200, {"e2e_p95": 6.0, "tokens_per_second": 4000.0}),
        (ON_H200, {"tpot_p95": 0.001}),
        (ON_4090D, {"tpot_p95": 0.08}),
        (ON_4090D, {"ttft_p95": 30.0, "tpot_p95": 0.05}),
        (ON_4090D, {"ttft_p95": 8.0}),
        (ON_4090D, {"tokens_per_second": 400.0}),
        (ON_A100, {"ttft_p95": 2.0, "tpot_p95": 0.05}),
        (ON_A100, {"tpot_p95": 0.03}),
        (ON_A100, {"e2e_p95": 9.0}),
        (ON_A100, {"requests_per_second": 2.2, "tokens_per_second": 400.0}),
    ],
    ids=lambda of: ",".join(f"{name} {limit}" for name, limit in of.items()) if isinstance(of, dict) else None,
)
def test_the_search_finds_what_simulating_everything_finds(at: Space, limits: dict[str, float]) -> None:
    at = at.with_sla(**limits)
    found = at.tuned()
    assert 20 <= found.candidates <= 150
    chosen, on_front = by_force(at)
    assert (found.chosen.candidate.number if found.chosen else None) == chosen
    assert [ran.candidate.number for ran in found.front] == on_front
    assert found.left == 0


LIMITS = st.fixed_dictionaries(
    {},
    optional={
        "ttft_p95": st.floats(0.3, 40.0),
        "tpot_p95": st.floats(0.008, 0.15),
        "e2e_p95": st.floats(2.0, 80.0),
        "tokens_per_second": st.floats(50.0, 2000.0),
    },
)


@settings(max_examples=8, deadline=None)
@given(limits=LIMITS, tighter=st.floats(1.0, 3.0), sure=st.booleans())
def test_a_tighter_sla_is_never_cheaper(limits: dict[str, float], tighter: float, sure: bool) -> None:
    tight = {name: limit * tighter if name in sla.LOWER else limit / tighter for name, limit in limits.items()}
    loose, after = (ON_4090D.with_sla(**of).tuned(sure=sure).chosen for of in (limits, tight))
    if after is not None:
        assert loose is not None, "what meets the tighter limits meets the looser ones"
        assert loose.candidate.cards.count <= after.candidate.cards.count


@settings(max_examples=8, deadline=None)
@given(at=st.sampled_from((ON_H200, ON_4090D, ON_A100)), limits=LIMITS)
def test_the_choice_passes_prediction_and_rules(at: Space, limits: dict[str, float]) -> None:
    at = at.with_sla(**limits)
    chosen = at.tuned().chosen
    if chosen is None:
        return
    of = chosen.candidate
    prediction = predict(of.deploy, of.facts, of.choices)
    assert prediction.speed == chosen.prediction.speed
    assert {line.verdict for line in sla.lines(at.deploy, prediction)} <= {"meets"}
    assert not [d for d in judge(of.deploy, of.facts, of.choices, prediction) if d.severity is Severity.ERROR]


@pytest.mark.parametrize("at", [ON_H200, ON_4090D, ON_A100])
@pytest.mark.parametrize("limits", [{}, {"tpot_p95": 0.03}, {"ttft_p95": 10.0, "tpot_p95": 0.06}])
def test_with_the_changes_in_the_file_plan_chooses_the_same(at: Space, limits: dict[str, float]) -> None:
    at = at.with_sla(**limits)
    chosen = at.tuned().chosen
    assert chosen is not None
    written, of = at.deploy, chosen.candidate
    for change in changes(at.deploy, at.facts, of):
        written = applied(written, change)
    choices = decide(written, of.facts)[0]
    assert choices is not None
    names = ("weights", "kv_cache_dtype", "tensor_parallel_size", "replicas", "max_model_len", "max_num_seqs",
             "max_num_batched_tokens")  # fmt: skip
    for name in names:
        assert getattr(choices, name).value == getattr(of.choices, name).value, name


def test_nothing_is_written_that_follows_from_the_rest() -> None:
    of = ON_4090D.with_sla(ttft_p95=30.0, tpot_p95=0.05).tuned().chosen
    assert of is not None
    made = {change.name for change in changes(ON_4090D.deploy, ON_4090D.facts, of.candidate)}
    assert "max_num_batched_tokens" not in made, "it is in the file"
    assert "max_model_len" not in made, "workload.max_context says it"
    assert ("hardware.count" in made) == (of.candidate.cards.count != 4)


def test_what_the_file_fixes_stays_unless_it_is_freed() -> None:
    held = fixed(ON_4090D.deploy, ON_4090D.facts)
    assert held == {
        "weights": "deploy.yaml:7", "kv_cache": "deploy.yaml:7", "max_num_batched_tokens": "deploy.yaml:6",
        "max_model_len": "deploy.yaml:5",
    }  # fmt: skip
    assert fixed(ON_H200.deploy, ON_H200.facts).keys() == {"weights", "max_model_len"}

    def seen(name: str, *free: str) -> set[object]:
        every = candidates(ON_4090D.deploy, ON_4090D.facts, ON_4090D.cards, free)
        return {getattr(one.choices, name).value for one in every}

    assert seen("kv_cache_dtype") == {"fp8"}
    assert seen("kv_cache_dtype", "kv_cache") == {"auto", "fp8"}
    assert seen("max_num_batched_tokens") == {4096}
    assert seen("max_num_batched_tokens", "max_num_batched_tokens") == {1024, 2048, 4096, 8192, 16384}
    assert seen("weights") == {"none"}
    assert seen("weights", "weights") == {"none", "fp8", "int8"}


def test_auto_and_what_is_left_out_are_open() -> None:
    at = space(H200, workload="{input_tokens: 100, output_tokens: 100, concurrency: 4}",
               quantization="{weights: auto, kv_cache: auto}")  # fmt: skip
    assert fixed(at.deploy, at.facts) == {}
    every = list(candidates(at.deploy, at.facts, at.cards))
    assert {one.choices.weights.value for one in every} == {"none", "fp8", "int8"}, "4 bits are for people to choose"
    assert {one.choices.max_model_len.value for one in every} == {256 * 2**n for n in range(8)}
    assert min(one.choices.max_model_len.value for one in every) >= 200, "all requests have room"


def test_a_format_that_is_not_supported_yet_is_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["none", "fp8", "int8"]
    assert accepted("quantization.weights", names) == names
    monkeypatch.setitem(NOT_YET, "quantization.weights", (("none", "int8"), ""))
    assert accepted("quantization.weights", names) == ["none", "int8"]


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("engine.args.max-num-seqs", "max_num_seqs"), ("max_num_seqs", "max_num_seqs"), ("weights", "weights"),
        ("quantization.kv_cache", "kv_cache"), ("kv_cache_dtype", "kv_cache"), ("--kv-cache-dtype", "kv_cache"),
        ("engine.parallel.tensor", "tensor"), ("tensor-parallel-size", "tensor"), ("hardware.gpu", None), ("", None),
    ],
)  # fmt: skip
def test_keys_and_flags_are_one_name(written: str, name: str | None) -> None:
    assert spelled(written) == name


@pytest.mark.parametrize("limits", [{}, {"tpot_p95": 0.02}, {"tpot_p95": 0.001}])
def test_no_more_are_simulated_than_allowed_and_the_rest_is_counted(limits: dict[str, float]) -> None:
    found = ON_H200.with_sla(**limits).tuned(most=5)
    assert found.simulated == 5
    assert found.bounded >= 0
    assert found.left > 0
    assert found.candidates == found.not_starting + found.bounded + found.simulated + found.left


def test_the_nearest_is_shown_where_nothing_meets_it() -> None:
    found = ON_4090D.with_sla(tpot_p95=0.001).tuned()
    assert found.chosen is None
    assert found.nearest is not None
    assert found.nearest.lines[0].verdict == "misses"
    assert found.front, "the front leaves out the limit on the time per token"


@pytest.mark.parametrize("limit", [0.001, 1e-9])
def test_how_far_the_nearest_is_from_its_limit_is_a_number_for_people(limit: float) -> None:
    at = ON_4090D.with_sla(tpot_p95=limit)
    now = decide(at.deploy, at.facts)[0]
    assert now is not None
    detail = next(d.detail for d in findings(at.deploy, at.facts, now, at.tuned(), at.cards) if d.code == "DC440")
    assert re.search(r"tpot_p95 [0-9.,]+ times its limit", detail)


def test_where_nothing_starts_there_is_no_nearest() -> None:
    at = space(card("tiny", 6 * 2**30), workload="{input_tokens: 100, output_tokens: 100, concurrency: 4}")
    found = at.tuned()
    assert (found.chosen, found.nearest, found.front, found.simulated) == (None, None, [], 0)
    assert found.not_starting == found.candidates > 0


def test_what_a_rule_refuses_for_all_is_said_and_not_simulated_over_and_over() -> None:
    at = space(H200, workload="{input_tokens: 100, output_tokens: 100, concurrency: 64, max_context: 65536}")
    found = at.tuned()
    assert found.chosen is None
    assert {diagnostic.code for diagnostic in found.refused} == {"DC520"}
    assert found.simulated == 6, "one for each format"


def test_money_decides_where_every_kind_has_a_price() -> None:
    """Two cheap cards or one that costs as much as five of them."""
    load = "{input_tokens: 500, output_tokens: 200, concurrency: 8, max_context: 4096}"
    at = space(RTX, (1, 2), workload=load, sla="{tpot_p95: 60ms}")
    dear = tuple(Cards((A100,), "a100-80", price) for price in (5.0, None))
    cheap = tuple(Cards(one.devices, None, 1.0) for one in at.cards)
    by_money = tune(at.deploy, at.facts, at.like, [dear[0], *cheap])
    assert by_money.money
    assert by_money.chosen is not None
    assert by_money.chosen.candidate.cards.name == "rtx-4090d"
    by_cards = tune(at.deploy, at.facts, at.like, [dear[1], *cheap])
    assert not by_cards.money
    assert by_cards.chosen is not None
    assert by_cards.chosen.candidate.cards.count == 1


def test_memory_follows_from_the_length_only_where_the_search_says_so() -> None:
    """What `starting` shares between lengths."""
    choices = case_of(facts_of(cards=(H200,))).choices
    longer = replace(choices, max_model_len=replace(choices.max_model_len, value=32768))
    assert memory(ON_H200.facts, choices)[0] == memory(ON_H200.facts, longer)[0]


def test_points_of_the_front() -> None:
    few, many, slow, equal = (
        point(100.0, 0.01, (0,)), point(200.0, 0.02, (1,)), point(199.0, 0.03, (2,)), point(200.5, 0.0201, (3,))
    )  # fmt: skip
    assert front([slow, equal, few, many]) == [many, few]
    assert many.beats(slow)
    assert many.beats(equal)
    assert not many.beats(few)
