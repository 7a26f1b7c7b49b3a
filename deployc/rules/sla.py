"""The limits of `sla:` beside the prediction: meets, tight (inside the band), misses; and what would meet them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite

from deployc import units
from deployc.cost.arithmetic import prompt_arithmetic
from deployc.cost.other_cards import starts
from deployc.cost.prediction import answers
from deployc.diagnostics import Diagnostic, Severity, error, warning
from deployc.rules.case import Case
from deployc.rules.changes.option import Option
from deployc.rules.changes.search import Limits, Tried, promising, search
from deployc.spec.deploy import Deploy
from deployc.types.figure import Figure, exact
from deployc.types.prediction import Prediction, SlaLine, Verdict

UPPER = ("ttft_p95", "tpot_p95", "e2e_p95")
LOWER = ("requests_per_second", "tokens_per_second")
CODES = {
    "ttft_p95": ("DC401", "the time to first token may pass its limit"),
    "tpot_p95": ("DC402", "the time per output token may pass its limit"),
    "e2e_p95": ("DC403", "the whole request may take longer than its limit"),
    "requests_per_second": ("DC404", "the throughput may stay under its limit"),
    "tokens_per_second": ("DC405", "the token throughput may stay under its limit"),
}
SURE = 2
"""Changes that surely meet a limit, after which no dearer one is named."""

NEARER = 1.03
"""Times from which a change brings a figure nearer to a limit that it does not meet."""


def lines(deploy: Deploy, prediction: Prediction) -> tuple[SlaLine, ...]:
    """One line a limit that the file states, in the file's own names."""
    found = []
    for name in (*UPPER, *LOWER, "full_length_requests"):
        limit = getattr(deploy.sla, name)
        if limit is None:
            continue
        predicted = prediction.max_concurrency if name == "full_length_requests" else getattr(prediction.speed, name)
        at = deploy.at(f"sla.{name}")
        bound = exact(float(limit), predicted.unit)
        found.append(SlaLine(name, bound, predicted, _verdict(name, limit, predicted), str(at or "")))
    return tuple(found)


def limits(case: Case) -> Iterator[Diagnostic]:
    """An error where the whole band lies on the wrong side, a warning where the limit lies inside it; all that is
    missed, and a load that cannot be carried, share one search for what would help."""
    missed = [line for line in lines(case.deploy, case.prediction) if line.verdict != "meets" and line.name in CODES]
    over = case.prediction.over_capacity
    if not missed and not over:
        return
    asked, names = _asked(case), {line.name for line in missed} | ({LOWER[0]} if over else set())
    if not starts(case.facts, case.choices):  # said with the memory, and comes first
        tried, carrying = [], []
    elif missed:
        tried = search(case, asked, names)
        carrying = [one.option for one in tried]
    else:
        tried, carrying = [], promising(case, asked, names)
    yield from (_limit(case, line, tried) for line in missed)
    if over:
        yield _over_capacity(case, carrying)


def _asked(case: Case) -> Limits:
    """All limits that the file states; an open load that cannot be carried is to be answered too."""
    stated, rate = case.deploy.sla, case.deploy.workload.request_rate
    found = {name: (limit, name in UPPER) for name in CODES if (limit := getattr(stated, name)) is not None}
    if case.prediction.over_capacity and rate is not None:
        found[LOWER[0]] = (max(rate, stated.requests_per_second or 0.0), False)
    return found


def _limit(case: Case, line: SlaLine, tried: Sequence[Tried]) -> Diagnostic:
    predicted, limit = line.predicted, _shown(line.name, line.limit.value)
    detail = (
        f"{line.name} is predicted at {_with_band(line.name, predicted, f', {predicted.basis}')}; the limit is {limit}."
    )
    if not isfinite(predicted.low):
        detail = f"{line.name} has no bound, as the load is above capacity; the limit is {limit}."
    detail += _forbidden(case, line)
    severity = Severity.ERROR if line.verdict == "misses" else Severity.WARNING
    code, summary = CODES[line.name]
    at = case.deploy.at(f"sla.{line.name}")
    return Diagnostic(code, severity, summary, detail, _fix(case, line, tried), at, predicted.basis)


def _forbidden(case: Case, line: SlaLine) -> str:
    """What the card itself forbids: weights and KV to be read for a token, products of a prompt before the first."""
    if line.name == "tpot_p95":
        least = 1 / case.prediction.single_stream.physical_limit.high
        what = "Reading weights and KV for one token takes"
        way = "bandwidth. Only fewer bytes or more bandwidth change that."
    elif line.name == "ttft_p95":
        of = prompt_arithmetic(case.deploy, case.facts, case.choices, case.prediction)
        least = 2 * of.weights * of.tokens / of.peak / case.choices.tensor_parallel_size.value if of else 0.0
        what = "The products of the mean prompt take"
        way = "rate. Only fewer tokens or a faster card change that."
    else:
        return ""
    if line.limit.value >= least:
        return ""
    return f" {what} {_shown(line.name, least)} at the card's full {way}"


def _over_capacity(case: Case, carrying: Sequence[Option]) -> Diagnostic:
    """An open load above what the engines can do has no latency: the queue grows for ever."""
    rate, answered = case.deploy.workload.request_rate or 0.0, case.prediction.speed.requests_per_second
    detail = (
        f"{rate:g} requests/s are sent; {_few(answered.value)} ({_few(answered.low)} to {_few(answered.high)}, "
        f"{answered.basis}) can be answered. The queue grows without bound: no time to first token can be named."
    )
    found = [(option.words, most, _verdict(LOWER[0], rate, most)) for option in carrying
             if (most := answers(option.setting)).value >= rate]  # fmt: skip
    named = [
        f"{'' if verdict == 'meets' else 'perhaps '}{words} "
        f"(answers {_few(most.value)} requests/s, {_few(most.low)} to {_few(most.high)})"
        for words, most, verdict in found
    ]
    least = min(answered.low, case.prediction.capacity.value or answered.low)
    fix = "; or ".join([*_enough(named), f"send at most {_few(least)} requests/s"])
    said, at = (error if answered.high < rate else warning), case.deploy.at("workload.request_rate")
    return said("DC410", "the load is above capacity", detail, fix, at, answered.basis)


def _fix(case: Case, line: SlaLine, tried: Sequence[Tried]) -> str:
    """Changes that meet the limit, from the cheapest, then the load that would; else what comes nearest."""
    name, limit = line.name, line.limit.value
    judged = [(one, getattr(one.speed, name)) for one in tried]
    verdicts = [(one, _verdict(name, limit, figure), _verdict(name, limit, exact(figure.value, figure.unit)))
                for one, figure in judged]  # fmt: skip
    named = [
        f"{'' if verdict == 'meets' else 'perhaps '}{change(case, name, one)}"
        for one, verdict, likely in verdicts
        if verdict == "meets" or (likely == "meets" and line.verdict == "misses")
    ]
    found, less = _enough(named), _less(case, name)
    if found or not tried:
        return "; or ".join([*found, *less]) or "fewer requests in flight, more cards, or a faster one"
    one, figure = (min if name in UPPER else max)(judged, key=lambda pair: pair[1].value)
    if not _nearer(name, figure.value, line.predicted.value):
        return "; or ".join(["no single change meets it, or brings it nearer", *less])
    off = f", {_shown(name, abs(figure.value - limit))} from it" if isfinite(figure.value) else ""
    return "; or ".join([f"no single change surely meets it; nearest comes: {change(case, name, one, off)}", *less])


def _nearer(name: str, then: float, now: float) -> bool:
    """Whether a change is worth a word though it does not meet the limit."""
    return then * NEARER < now if name in UPPER else then > now * NEARER


def _enough(named: Sequence[str]) -> list[str]:
    """Up to the second that is sure."""
    sure = [index for index, text in enumerate(named) if not text.startswith("perhaps ")]
    return list(named[: sure[SURE - 1] + 1] if len(sure) >= SURE else named)


def change(case: Case, name: str, one: Tried, more: str = "") -> str:
    """ "set quantization.weights: int8 (tpot_p95 13.1 ms, 12.1 ms to 14.2 ms)", and what would be missed by it."""
    now = {line.name for line in lines(case.deploy, case.prediction) if line.verdict == "meets"}
    worse = [
        other
        for other in CODES
        if other in now and _verdict(other, getattr(case.deploy.sla, other), getattr(one.speed, other)) == "misses"
    ]
    but = f"; but {' and '.join(worse)} would miss" if worse else ""
    figure = getattr(one.speed, name)
    between = f"{_shown(name, figure.low)} to {_shown(name, figure.high)}"
    return f"{one.option.words} ({name} {_shown(name, figure.value)}, {between}{more}{but})"


def _less(case: Case, name: str) -> list[str]:
    """The most that stays inside all limits on latency, as the load to send."""
    most, flight, workload = case.prediction.capacity, case.prediction.capacity_in_flight, case.deploy.workload
    if name not in UPPER or most.value <= 0:
        return []
    if flight is None:
        fewer, words = most.value < (workload.request_rate or 0.0), f"{_few(most.value)} requests/s"
    else:
        fewer, words = flight.value < (workload.concurrency or 1), f"{units.show_count(flight.value)} at once"
    return [f"send at most {words} (predicted to meet all limits on latency)"] if fewer else []


def _verdict(name: str, limit: float, predicted: Figure) -> Verdict:
    if name in UPPER:
        return "meets" if predicted.high <= limit else "misses" if predicted.low > limit else "tight"
    return "meets" if predicted.low >= limit else "misses" if predicted.high < limit else "tight"


def _with_band(name: str, figure: Figure, more: str) -> str:
    return f"{_shown(name, figure.value)} ({_shown(name, figure.low)} to {_shown(name, figure.high)}{more})"


def _shown(name: str, value: float) -> str:
    if not isfinite(value):
        return "unbounded"
    return units.show_seconds(value) if name in UPPER else f"{units.show_count(value)}/s"


def _few(rate: float) -> str:
    """A rate to three significant digits."""
    rounded = float(f"{rate:.3g}")
    return f"{rounded:,.0f}" if rounded >= 1000 else f"{rounded:g}"
