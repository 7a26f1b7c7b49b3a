"""How long it takes to find what would meet missed limits, and what gives more, over predicting the file once.

Both in one process and in turn, the least of each: what else runs on the machine can only add. The bound is on the
worst of the cases: six simulations, and the arithmetic of some thirty changes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from configured import case_of, facts_of

from deployc.cost import predict
from deployc.facts.gpu_profile import cards
from deployc.rules import sla
from deployc.rules.changes.growth import growth

LOAD = "{input_tokens: 1500, output_tokens: 256, %s, max_context: 8192}"
SPREAD = "{input_tokens: {mean: 1500, p95: 4000}, output_tokens: {mean: 256, p95: 600}, %s, max_context: 8192}"
CASES = (
    ("rtx-4090", LOAD % "concurrency: 32", "{ttft_p95: 800ms, tpot_p95: 30ms}"),
    ("a100-80", LOAD % "request_rate: 10", "{ttft_p95: 800ms, tpot_p95: 40ms}"),
    ("h200-sxm", SPREAD % "concurrency: 256", "{ttft_p95: 2s, tpot_p95: 30ms, e2e_p95: 20s}"),
)
BOUND = 25.0
ROUNDS = 5


def seconds(run: Callable[[], object]) -> float:
    """Wall seconds of one call."""
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def main() -> int:
    known, worst = {card.name: card for card in cards()}, 0.0
    for name, load, limits in CASES:
        facts = replace(facts_of(cards=(known[name],)), known_cards=cards())
        case = case_of(facts, hardware=f"{{gpu: {name}}}", workload=load, sla=limits)
        pairs = [
            (
                seconds(lambda case=case: predict(case.deploy, case.facts, case.choices)),  # type: ignore[misc]
                seconds(lambda case=case: (list(sla.limits(case)), growth(case))),  # type: ignore[misc]
            )
            for _ in range(ROUNDS)
        ]
        one, search = (min(column) for column in zip(*pairs, strict=True))
        worst = max(worst, search / one)
        print(
            f"{name}: search {search * 1000:.0f} ms / predict {one * 1000:.1f} ms = {search / one:.1f} (bound {BOUND})"
        )
    return 0 if worst <= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
