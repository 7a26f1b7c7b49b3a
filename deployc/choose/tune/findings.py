"""What the search has to say beside its result: nothing will do, the search was cut short, money is not known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deployc.choose.tune.search import Tuned
from deployc.choose.tune.space import Cards
from deployc.choose.tune.verdict import Run, excess, kept
from deployc.cost.memory import memory
from deployc.diagnostics import Diagnostic, error, note, warning
from deployc.spec.deploy import Deploy
from deployc.types.choices import Choices
from deployc.types.facts import Facts
from deployc.units import show_bytes, show_count


def findings(deploy: Deploy, facts: Facts, now: Choices, tuned: Tuned, cards: Sequence[Cards]) -> Iterator[Diagnostic]:
    """DC440 to DC443. What refuses the nearest configuration is said as `plan` says it."""
    if tuned.chosen is None and tuned.refused:
        yield from tuned.refused
    elif tuned.chosen is None and tuned.nearest is None:
        yield _nothing_starts(deploy, facts, now, tuned)
    elif tuned.chosen is None and tuned.nearest is not None:
        yield _nothing_meets(deploy, tuned, tuned.nearest)
    if tuned.left:
        yield warning(
            "DC442",
            "not all promising configurations were simulated",
            f"{show_count(tuned.simulated)} were; {show_count(tuned.left)} might be cheaper, better or on the front.",
            "leave less open: fewer --gpu and --count, or fixed values in the file",
        )
    priced = [one.name for one in cards if one.price is not None]
    if priced and not tuned.money:
        others = sorted({one.name for one in cards if one.price is None})
        yield note(
            "DC443",
            "costs are compared by the number of cards",
            f"No price is known of {', '.join(others)}.",
            " ".join(f"--price {name}=…" for name in others),
            deploy.at("hardware.price") if deploy.hardware.price is not None else None,
        )


def _nothing_meets(deploy: Deploy, tuned: Tuned, nearest: Run) -> Diagnostic:
    missed = [line for line in nearest.lines if not kept(line, sure=tuned.sure)]
    missed.sort(key=lambda line: -excess(line, sure=tuned.sure))
    said = [f"{line.name} {_times(excess(line, sure=tuned.sure))} its limit" for line in missed]
    if nearest.prediction.over_capacity:
        said = ["the load is above what it can answer"]
    tight = tuned.sure and all(kept(line, sure=False) for line in missed) and not nearest.prediction.over_capacity
    end = " by the upper end of its band" if tuned.sure else ""
    fix = "allow more or other cards (--count, --gpu), free what the file fixes (--free), or loosen the SLA"
    at = deploy.at(f"sla.{missed[0].name}" if missed else "workload.request_rate")
    return error(
        "DC440",
        "no configuration meets the SLA",
        f"Of {show_count(tuned.candidates)} configurations none does. The nearest: {', '.join(said)}{end}.",
        ("take predicted values alone, without their bands: --likely; or " if tight else "") + fix,
        at,
        nearest.prediction.speed.tpot_p95.basis,
    )


def _times(excess: float) -> str:
    return f"{excess:,.0f} times" if excess >= 100 else f"{excess:.2g} times"


def _nothing_starts(deploy: Deploy, facts: Facts, now: Choices, tuned: Tuned) -> Diagnostic:
    left = memory(facts, now)[0].kv_cache
    detail = f"None of {show_count(tuned.candidates)} configurations surely holds one request of full length. "
    detail += f"As the file is, {show_bytes(left.value)} are left for the KV cache of a card."
    fix = "allow more or larger cards (--count, --gpu), or free what the file fixes (--free)"
    return error("DC441", "no configuration starts", detail, fix, deploy.at("hardware"), left.basis)
