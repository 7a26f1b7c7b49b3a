"""The diagnosis: pure, from a description and what is expected; and its JSON document."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from deployc.diagnostics import Diagnostic, Report, note
from deployc.measure.doctor.causes import CAUSES, SLOWER, Cause, Effects, ranked
from deployc.measure.doctor.expected import with_load
from deployc.measure.doctor.figures import CHECKS
from deployc.measure.doctor.patient import Patient
from deployc.measure.doctor.plan_rules import as_a_plan_would
from deployc.measure.doctor.sums import SUMS
from deployc.rules.remedies import with_value
from deployc.types.figure import Figure

FORMAT = "1.0"
FEWER = 64
"""The max_num_seqs that is advised most often against a low use of the card."""
SEEN = (
    "tokens_per_second", "requests_per_second", "latency", "concurrency", "memory_used", "gpu_memory",
    "gpu_utilization", "cpu_utilization", "prefix_cache_hits",
)  # fmt: skip
"""Figures that a diagnosis looks at."""
UNSEEN = {
    "tokens_per_second": "the speed", "gpu_utilization": "the GPU's use", "cpu_utilization": "the host's use",
    "memory_used": "the memory in use", "concurrency": "how many requests are in flight", "latency": "the latency",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Ranked causes, contradictions and notes, and what to look at next."""

    patient: Patient
    causes: tuple[Cause, ...]
    diagnostics: tuple[Diagnostic, ...]


def judge(patient: Patient, effects: Effects) -> Diagnosis:
    """Every check, then every cause; `effects` are measured ratios by name."""
    found = [d for add in SUMS for d in add(patient.described)]
    found += [d for check in CHECKS for d in check(patient)]
    found += as_a_plan_would(patient)
    causes = ranked([cause for find in CAUSES for cause in find(patient, effects)])
    found += [*_fewer_is_slower(patient, effects), *_as_predicted(patient, causes)]
    return Diagnosis(patient, tuple(causes), tuple(found))


def _fewer_is_slower(patient: Patient, effects: Effects) -> Iterator[Diagnostic]:
    """Where many sequences may run and the card is said to be idle, fewer of them are what people advise."""
    said, most = patient.said, patient.case.choices.max_num_seqs.value
    written = any(name.lstrip("-").replace("_", "-") == "max-num-seqs" for name in said.args)
    if not written or most <= FEWER or (said.gpu_utilization or 1.0) > 0.6 or patient.case.on_cpu:
        return
    full = with_load(patient.case, {"concurrency": most * patient.case.choices.replicas.value})
    from deployc.cost import predict

    few = predict(full.deploy, full.facts, with_value(full.choices, max_num_seqs=FEWER))
    many = predict(full.deploy, full.facts, with_value(full.choices, max_num_seqs=most)).speed.requests_per_second
    less, effect = few.speed.requests_per_second, effects["few_sequences"]
    if less.value >= many.value:
        return
    yield note(
        "DC760",
        "fewer sequences at once would not help",
        f"With {most} in flight, max_num_seqs {FEWER} is predicted to answer {less.value:.3g} requests/s, {most} to "
        "answer "
        f"{many.value:.3g} ({many.basis}). Measured: {effect.source}. It helps only where vllm:num_preemptions grows.",
        f"leave max_num_seqs at {most}",
        patient.at("args"),
    )


def _as_predicted(patient: Patient, causes: list[Cause]) -> Iterator[Diagnostic]:
    speed, figure = patient.speed, patient.predicted
    if speed is None or patient.slow >= SLOWER or speed.value > figure.high or any(cause.stated for cause in causes):
        return
    yield note(
        "DC761",
        "it is as fast as it can be expected to be",
        f"{speed.value:.3g} tokens/s are seen, {figure.value:.3g} ({figure.low:.3g} to {figure.high:.3g}, "
        f"{figure.basis}) "
        "are predicted for this load.",
        "`deployc tune` with a deploy.yaml looks for a configuration that gives more",
        patient.at("tokens_per_second"),
    )


def document(diagnosis: Diagnosis, report: Report) -> dict[str, Any]:
    """The JSON form: what was observed, what is predicted, ranked causes, diagnostics, what was not seen, what next."""
    from deployc.plan.document import diagnostics

    patient = diagnosis.patient
    return {
        "format_version": FORMAT,
        "observed": _observed(patient),
        "predicted": _predicted(patient),
        "causes": [_cause(cause) for cause in diagnosis.causes],
        "diagnostics": diagnostics(report),
        "not_seen": [*patient.expected.assumed, *(what for key, what in UNSEEN.items() if _missing(patient, key))],
        "next": list(dict.fromkeys(cause.check for cause in diagnosis.causes)),
    }


def _missing(patient: Patient, key: str) -> bool:
    """Not said, and neither follows from what is said nor stands among what is assumed."""
    known = key == "tokens_per_second" and patient.speed is not None
    assumed = key == "concurrency" and patient.said.requests_per_second is None
    return not known and not assumed and getattr(patient.said, key) is None


def _observed(patient: Patient) -> dict[str, Any]:
    said = {name: getattr(patient.said, name) for name in SEEN}
    known = {name: value for name, value in said.items() if value is not None}
    more = {"batches": [batch.model_dump() for batch in patient.said.batches], "notes": patient.said.notes}
    return known | {name: value for name, value in more.items() if value}


def _predicted(patient: Patient) -> dict[str, Any]:
    prediction = patient.case.prediction
    bill = prediction.memory
    return {
        "fits": bill.kv_cache.low > 0,
        "memory": {name: _figure(getattr(bill, name)) for name in bill.__dataclass_fields__},
        "weights_16_bit": patient.plain_weights,
        "kv_cache_tokens": _figure(prediction.kv_cache_tokens),
        "single_stream": _figure(prediction.single_stream.tokens_per_second),
        "physical_limit": _figure(prediction.single_stream.physical_limit),
        "tokens_per_second": _figure(prediction.speed.tokens_per_second),
        "requests_per_second": _figure(prediction.speed.requests_per_second),
        "capacity": _figure(prediction.capacity),
        "bound_by": prediction.bound_by,
        "alone": patient.alone,
    }


def _figure(figure: Figure) -> dict[str, Any]:
    ends = {"value": figure.value, "low": figure.low, "high": figure.high}
    return {name: end if math.isfinite(end) else None for name, end in ends.items()} | {"basis": figure.basis}


def _cause(cause: Cause) -> dict[str, Any]:
    gain = None if cause.gain is None else _figure(cause.gain) | {"unit": cause.unit}
    return {
        "code": cause.code, "summary": cause.summary, "evidence": cause.evidence, "gain": gain, "stated": cause.stated,
        "check": cause.check, "fix": cause.fix,
    }  # fmt: skip
