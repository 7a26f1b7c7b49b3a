"""How long a request can be: by the model's positions, and what share of the requests is longer than a limit."""

from __future__ import annotations

from math import erfc, exp, log, sqrt

from deployc.cost.written import written_flag
from deployc.spec.deploy import Deploy
from deployc.spec.model import Spread
from deployc.types.facts import Facts

Z95 = 1.6448536269514722
"""Standard deviations under which 95 % of a normal distribution lie."""


def positions(deploy: Deploy, facts: Facts) -> int:
    """The longest context that the engine allows: the model's positions with `model.context` applied, or its window."""
    limit, window = rotary_positions(deploy, facts), capping_window(deploy, facts)
    return limit if window is None else min(limit, window)


def capping_window(deploy: Deploy, facts: Facts) -> int | None:
    """The window that a context must not pass where --disable-sliding-window is set; None = there is none.

    vllm/config/model.py, _get_and_verify_max_len (0.19.0 to 0.33.0).
    """
    found = written_flag(deploy, facts, "disable-sliding-window")
    if found is None or found[0] is not True:
        return None
    return max((c.window for c in facts.model.architecture.caches if c.kind == "sliding"), default=None)


def rotary_positions(deploy: Deploy, facts: Facts) -> int:
    """The longest context that the model's positions allow, with `model.context` applied."""
    own = facts.model.architecture.max_position_embeddings
    overridden = deploy.model.overrides.get("max_position_embeddings")
    if isinstance(overridden, int) and not isinstance(overridden, bool):
        return overridden
    context = deploy.model.context
    if context is None:
        return own
    original = int(facts.model.architecture.rope.get("original_max_position_embeddings") or own)
    return int(original * context.factor)


def share_longer(deploy: Deploy, limit: int) -> float:
    """Share of requests whose prompt and answer together pass `limit`; lengths taken as log-normal.

    Prompt and answer are added at equal quantiles, which overstates the tail a little. Fixed lengths: 0 or 1.
    """
    asked, answer = deploy.workload.input_tokens, deploy.workload.output_tokens
    if not isinstance(asked, Spread) and not isinstance(answer, Spread):
        return float(asked + answer > limit)
    low, high = -6.0, 6.0  # standard deviations
    for _ in range(40):
        middle = (low + high) / 2
        total = length_at(asked, middle) + length_at(answer, middle)
        low, high = (middle, high) if total <= limit else (low, middle)
    return erfc(low / sqrt(2)) / 2


def length_at(length: int | Spread, deviations: float) -> float:
    """Tokens at so many standard deviations of the logarithm: log-normal through mean and p95."""
    if not isinstance(length, Spread) or length.p95 == length.mean:
        return float(length.p95 if isinstance(length, Spread) else length)
    # mean = exp(mu + s^2/2), p95 = exp(mu + Z95 s): the smaller root of s^2/2 - Z95 s + ln(p95/mean) = 0
    spread = Z95 - sqrt(max(0.0, Z95 * Z95 - 2 * log(length.p95 / length.mean)))
    return exp(log(length.mean) - spread * spread / 2 + spread * deviations)
