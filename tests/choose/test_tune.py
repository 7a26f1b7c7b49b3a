"""The search finds what simulating everything would: the same choice and the same front."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from configured import A100, H200, card, case_of, facts_of, yaml_of
from handmade import deploy_of

from deployc.choose.tune import Cards, Tuned, tune
from deployc.choose.tune.front import front, point
from deployc.choose.tune.search import ALIKE
from deployc.choose.tune.space import Candidate, candidates
from deployc.choose.tune.verdict import Run, all_kept, run
from deployc.cost.other_cards import starts
from deployc.spec.deploy import Deploy
from deployc.spec.model import Sla
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
        deploy = self.deploy.model_copy(update={"sla": Sla.model_construct(**limits)})
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
    runs = [run(one) for one in candidates(at.deploy, at.facts, at.cards) if starts(one.facts, one.choices)]
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
