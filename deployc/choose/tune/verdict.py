"""Whether a configuration is what the file asks for: it surely starts, no rule refuses it, each limit is kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from deployc.choose.tune.space import Candidate
from deployc.cost import predict
from deployc.cost.prediction import Setting, setting, speed
from deployc.diagnostics import Diagnostic, Report
from deployc.rules import accept, advice, judge, sla
from deployc.rules.case import Case, Rule
from deployc.rules.registry import RULES
from deployc.spec.deploy import Deploy
from deployc.spec.model import Sla
from deployc.types.figure import Figure
from deployc.types.prediction import Prediction, SlaLine, Speed

Lines = tuple[SlaLine, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """One configuration, simulated. `errors`: what rules refuse beside the SLA's limits.

    `whole`: predicted as `plan` would, with all that widens the band; else by one run, which settled it.
    """

    candidate: Candidate
    prediction: Prediction
    lines: Lines
    errors: tuple[Diagnostic, ...]
    whole: bool = True


def predicted(candidate: Candidate) -> Run:
    """As `plan` would, but for its search of the capacity, and judged."""
    deploy = without_limits(candidate.deploy)
    return _judged(candidate, predict(deploy, candidate.facts, candidate.choices), whole=True)


def run(candidate: Candidate, like: Prediction, *, sure: bool) -> Run:
    """The same with less work where one run settles it: its band is the narrower one, so what it misses is missed.

    `like`: any prediction of this load; `sure`: whether limits hold for the band.
    """
    at = setting(without_limits(candidate.deploy), candidate.facts, candidate.choices)
    seen = speed(at)
    found = _judged(candidate, _like(like, at, seen), whole=False)
    banded = [line for line in found.lines if line.name != "full_length_requests"]
    if sure and banded and all_kept(found.lines, sure=sure, but=["tpot_p95"]):
        return predicted(candidate)
    return found


def _like(like: Prediction, at: Setting, seen: Speed) -> Prediction:
    """What limits and rules of memory look at is this configuration's; the rest is not."""
    return replace(
        like,
        memory=at.bill,
        kv_cache_tokens=at.cache.tokens,
        usable_kv_cache_tokens=at.cache.usable,
        max_concurrency=at.cache.concurrency,
        kv_bytes_per_token=at.cache.bytes_per_token,
        speed=seen,
        over_capacity=math.isinf(seen.ttft_p95.value),
    )


def _judged(candidate: Candidate, prediction: Prediction, *, whole: bool) -> Run:
    deploy = candidate.deploy
    case = Case(without_limits(deploy), candidate.facts, candidate.choices, prediction)
    found = accept(deploy, Report([diagnostic for rule in _refusing() for diagnostic in rule(case)]))
    return Run(candidate, prediction, sla.lines(deploy, prediction), tuple(found.errors), whole)


def without_limits(deploy: Deploy) -> Deploy:
    """The same load without limits: there is no capacity inside them to look for."""
    return deploy.model_copy(update={"sla": Sla(full_length_requests=deploy.sla.full_length_requests)})


def judged(deploy: Deploy, like: Prediction, speed: Speed, concurrency: Figure) -> Lines:
    """The limits beside a speed that was not simulated."""
    return sla.lines(deploy, replace(like, speed=speed, max_concurrency=concurrency))


def kept(line: SlaLine, *, sure: bool) -> bool:
    """Whether a limit is kept: by all of the band, or by the value alone."""
    return line.verdict == "meets" if sure else excess(line, sure=False) <= 1


def all_kept(lines: Sequence[SlaLine], *, sure: bool, but: Sequence[str] = ()) -> bool:
    """Whether every limit is, those of these names left out."""
    return all(kept(line, sure=sure) for line in lines if line.name not in but)


def excess(line: SlaLine, *, sure: bool) -> float:
    """How many times what is predicted lies beyond the limit; up to 1 where it is kept."""
    limit, predicted = line.limit.value, line.predicted
    if line.name in sla.UPPER:
        return (predicted.high if sure else predicted.value) / limit
    least = predicted.low if sure else predicted.value
    return limit / least if least > 0 else math.inf


def missed(lines: Lines, *, sure: bool) -> float:
    """How far from all limits together: the sum of the logarithms by which they are passed; 0 where all are kept."""
    return sum(max(0.0, math.log(max(1.0, excess(line, sure=sure)))) for line in lines)


def _refusing() -> list[Rule]:
    """Rules that may refuse a configuration: those of speed only advise, and simulate others to do it."""
    return [rule for rule in RULES if not rule.__module__.startswith((sla.__name__, advice.__name__))]


def said(candidate: Candidate) -> list[Diagnostic]:
    """What every rule has to say of a configuration, as `plan` would."""
    prediction = predict(candidate.deploy, candidate.facts, candidate.choices)
    found = judge(candidate.deploy, candidate.facts, candidate.choices, prediction)
    return list(accept(candidate.deploy, Report(found)))
