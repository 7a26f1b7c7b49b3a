"""A cache in 8 bits that gains nothing: every token is rounded for it."""

from __future__ import annotations

from collections.abc import Iterator

from deployc import units
from deployc.cost.other_cards import starts
from deployc.cost.speed_basis import speed_basis
from deployc.diagnostics import Diagnostic, warning
from deployc.rules.advice.effect import LEAST, effects
from deployc.rules.advice.judge import under, verdicts
from deployc.rules.advice.table import holds
from deployc.rules.case import Case
from deployc.rules.remedies import with_value


def fp8_for_nothing(case: Case) -> Iterator[Diagnostic]:
    """No faster, no limit met by it, no request that would wait or be too long without it."""
    if case.on_cpu or not case.choices.kv_cache_dtype.value.startswith("fp8"):
        return
    choices = with_value(case.choices, kv_cache_dtype="auto")
    if not (starts(case.facts, case.choices) and starts(case.facts, choices)):
        return
    other = under(case, choices)
    found = effects(case.prediction.speed, other.prediction.speed, speed_basis(case.facts, case.choices).errors)
    gained, room = any(effect.cost.value <= 1 - LEAST for effect in found), holds(other)
    if gained or verdicts(case, other)[1] or room < case.choices.max_num_seqs.value:
        return
    yield warning(
        "DC546",
        "an fp8 KV cache gains nothing here",
        f"Tokens/s, TTFT and TPOT get better by less than {LEAST:.0%}, and "
        f"{units.show_count(room)} requests of mean length fit without it where "
        f"{case.choices.max_num_seqs.value} run at most. Keys and values are rounded to 8 bits for that.",
        "remove it",
        case.at("kv-cache-dtype", "quantization.kv_cache"),
        case.prediction.speed.tokens_per_second.basis,
    )
