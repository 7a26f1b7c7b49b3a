"""CUDA graphs that are turned off where a fast host hides it."""

from __future__ import annotations

from collections.abc import Iterator

from deployc import units
from deployc.cost.other_cards import starts
from deployc.diagnostics import Diagnostic, note, warning
from deployc.rules import start
from deployc.rules.advice.host import decode_step
from deployc.rules.advice.judge import judged, under
from deployc.rules.advice.table import SETTINGS
from deployc.rules.case import Case

SLOWEST = 4
"""Times that hosts are slower than the one that was measured: eager mode cost others 4.1 times the time on an ARM host
(github.com/Project-MONAI/VLM-Surgical-Agent-Framework, issue 5)."""

EAGER = next(setting for setting in SETTINGS if setting.code == "DC542")


def graphs_are_off(case: Case) -> Iterator[Diagnostic]:
    """Where DC542 is not said, since the GPU takes longer than the measured host takes to launch its kernels."""
    if case.on_cpu or not case.choices.enforce_eager.value or not starts(case.facts, case.choices):
        return
    without = EAGER.without(case)
    if without is None or not starts(case.facts, without.choices):
        return  # without it nothing would start
    host, gpu, running = decode_step(case)
    if host * SLOWEST <= gpu or any(start.graphs_outside_the_budget(under(case, without.choices))):
        return
    if any(judged(case, EAGER)):
        return
    sla = case.deploy.sla
    limits = (sla.ttft_p95, sla.tpot_p95, sla.e2e_p95, sla.requests_per_second, sla.tokens_per_second)
    say = warning if any(limit is not None for limit in limits) else note
    yield say(
        "DC528",
        "CUDA graphs are off, which a slower host would feel",
        f"With {units.show_count(running)} in flight a step takes the GPU {units.show_seconds(gpu)}, and the host "
        f"{units.show_seconds(host)} to launch its kernels one by one: hidden on a host as fast as the measured one, "
        f"and not on one {gpu / host:.1f} times slower. On an ARM host others measured 11 tokens/s against 46.",
        "remove it; to save memory, lower engine.args.max-cudagraph-capture-size first",
        case.at("enforce-eager", "engine.args"),
    )
