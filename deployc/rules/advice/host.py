"""Host cores that the GPU waits for, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

from deployc import units
from deployc.cost.engine import engine
from deployc.cost.explain import in_flight
from deployc.cost.other_cards import starts
from deployc.cost.prediction import setting, speed
from deployc.cost.request import mean_request
from deployc.cost.speed_basis import speed_basis
from deployc.cost.step import Work
from deployc.diagnostics import Diagnostic, warning
from deployc.rules.advice.effect import effects
from deployc.rules.case import Case
from deployc.types.facts import Facts
from deployc.types.speed import Constants


def host_bound(case: Case) -> Iterator[Diagnostic]:
    """Said where the file states the host's cores: of those that are not known there is nothing to judge."""
    cpus = case.deploy.hardware.cpus
    if cpus is None or case.on_cpu or case.prediction.bound_by != "cpu" or not starts(case.facts, case.choices):
        return
    free = speed(setting(case.deploy, _without_host(case.facts), case.choices))
    errors = speed_basis(case.facts, case.choices).errors
    lost = [effect for effect in effects(case.prediction.speed, free, errors) if effect.hurts]
    if not lost:
        return
    host, gpu, running = decode_step(case)
    yield warning(
        "DC545",
        "the GPU waits for the host",
        f"A step of {units.show_count(running)} requests takes the {units.show_count(cpus)} host cores "
        f"{units.show_seconds(host)} and the GPU {units.show_seconds(gpu)}. Against a host that takes no time: "
        f"{'; '.join(map(str, lost))} ({free.tokens_per_second.basis}).",
        "give it more or faster cores, or serve fewer engines on this host",
        case.deploy.at("hardware.cpus"),
        free.tokens_per_second.basis,
    )


def decode_step(case: Case) -> tuple[float, float, int]:
    """Seconds of the host and of the GPU for a step that decodes what is in flight, and how many that are."""
    request = mean_request(case.deploy, prefix_caching=case.choices.enable_prefix_caching.value)
    running = max(1, round(in_flight(case.deploy, case.choices, case.prediction).value))
    basis, longest = speed_basis(case.facts, case.choices), round(request.long_input + request.long_output)
    one = engine(case.facts, case.choices, basis, case.prediction.memory.kv_cache.value, longest)
    time = one.step.time(Work(running, running * request.context))
    return time.host, time.gpu, running


def _without_host(facts: Facts) -> Facts:
    """The same cards beside a host that takes no time."""
    speed = tuple(replace(p, constants=_idle(p.constants)) for p in facts.calibration.speed)
    return replace(facts, calibration=replace(facts.calibration, speed=speed))


def _idle(constants: Constants) -> Constants:
    none = {f.name: 0.0 for f in fields(constants) if f.name.startswith("host_")}
    kernels = {name: replace(kernel, host_layer=0.0) for name, kernel in constants.kernels.items()}
    return replace(constants, kernels=kernels, **none)
