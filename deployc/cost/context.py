"""How long a request can be: by the model's positions, and what share of the requests is longer than a limit."""

from __future__ import annotations

from math import exp, log, sqrt
from statistics import NormalDist

from deployc.spec.deploy import Deploy
from deployc.spec.model import Spread
from deployc.types.facts import Facts


def positions(deploy: Deploy, facts: Facts) -> int:
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
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        total = quantile(asked, middle) + quantile(answer, middle)
        low, high = (middle, high) if total <= limit else (low, middle)
    return 1 - low


def quantile(length: int | Spread, share: float) -> float:
    """Tokens below which `share` of the requests lie: log-normal through mean and p95."""
    if not isinstance(length, Spread) or length.p95 == length.mean:
        return float(length.p95 if isinstance(length, Spread) else length)
    # mean = exp(mu + s^2/2), p95 = exp(mu + 1.645 s): the smaller root of s^2/2 - 1.645 s + ln(p95/mean) = 0
    z = NormalDist().inv_cdf(0.95)
    spread = z - sqrt(max(0.0, z * z - 2 * log(length.p95 / length.mean)))
    mu = log(length.mean) - spread * spread / 2
    return exp(mu + spread * NormalDist().inv_cdf(min(max(share, 1e-9), 1 - 1e-9)))
