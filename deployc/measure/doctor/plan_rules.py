"""What a plan would say of the same configuration: whether it starts at all, on these cards, with these lengths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from deployc.diagnostics import Diagnostic, Severity
from deployc.measure.doctor.patient import Patient
from deployc.rules import cards, context, flags, formats, memory, offload, start
from deployc.rules.case import Rule

RULES: tuple[tuple[Rule, str], ...] = (
    (context.beyond_positions, "args"),
    (context.below_the_load, "input_tokens"),
    (formats.weights_have_a_kernel, "quantization"),
    (formats.card_has_the_dtype, "args"),
    (cards.model_divides, "args"),
    (cards.cards_suffice, "count"),
    (start.start_check, "args"),
    (memory.weights_fit, "model"),
    (memory.room_for_kv_cache, "model"),
    (memory.longest_request_fits, "args"),
    (start.graphs_outside_the_budget, "args"),
    (offload.weights_in_host_memory, "args"),
)
"""Each with the key of the description that it is about."""
OTHERS = ("bitsandbytes", "bitsandbytes-8bit", "bitsandbytes-4bit")
"""Formats that stand for as many bytes here, and have kernels of their own."""


def as_a_plan_would(patient: Patient) -> Iterator[Diagnostic]:
    """Errors and warnings. Values of flags are judged where the version is known."""
    typed: tuple[tuple[Rule, str], ...] = ((flags.typed, "args"),) if patient.said.version else ()
    for rule, key in (*RULES, *typed):
        if rule is formats.weights_have_a_kernel and patient.said.quantization in OTHERS:
            continue
        for found in rule(patient.case):
            if found.severity is not Severity.NOTE:
                yield replace(found, at=patient.at(key))
