"""How long `tune` takes over some 2,000 configurations, and how many a second, over a plain loop in the same run.

The loop predicts every configuration, one after the other, as `plan` would; some of them stand for all. Bounds of the
project: 5 s for 2,000 on two cores (printed, as machines differ), and 3 times the loop's configurations a second.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from deployc import pipeline
from deployc.choose import decide
from deployc.choose.tune import Cards, tune
from deployc.choose.tune.space import candidates
from deployc.choose.tune.verdict import predicted, without_limits
from deployc.facts.gpu import profile
from deployc.spec.model import Sla

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "quickstart" / "deploy.yaml"
KINDS, COUNTS = ("rtx-4090", "l40s", "a100-80"), (1, 2, 4, 8)
CONCURRENCY, LIMITS = 64, Sla.model_validate({"ttft_p95": "8s", "tpot_p95": "60ms"})
BOUND, SECONDS, MANY = 3.0, 5.0, 2000
SAMPLE, ROUNDS = 40, 3


def main() -> int:
    analysis = pipeline.resolved(EXAMPLE, offline=True)
    assert analysis.deploy is not None
    assert analysis.facts is not None
    workload = analysis.deploy.workload.model_copy(update={"concurrency": CONCURRENCY})
    deploy, facts = analysis.deploy.model_copy(update={"sla": LIMITS, "workload": workload}), analysis.facts
    cards = [Cards((profile(name),) * count, name) for name in KINDS for count in COUNTS]
    like = decide(without_limits(deploy), facts)[1]
    assert like is not None
    searches, loops = [], []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        found = tune(deploy, facts, like, cards)
        searches.append(time.perf_counter() - began)
        every = list(candidates(deploy, facts, cards))
        some = every[:: max(1, len(every) // SAMPLE)]
        began = time.perf_counter()
        for one in some:
            predicted(one)
        loops.append((time.perf_counter() - began) / len(some))
    search, each = min(searches), min(loops)
    ratio = found.candidates / search * each
    print(
        f"tune: {found.candidates:,} configurations in {search:.2f} s, {found.simulated} of them simulated; "
        f"{MANY:,} in {search / found.candidates * MANY:.2f} s (of {SECONDS:g}); "
        f"{found.candidates / search:,.0f} a second / a loop's {1 / each:.0f} = {ratio:.1f} (bound {BOUND})"
    )
    return 0 if ratio >= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
