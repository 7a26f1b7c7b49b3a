"""All rules, in the order in which a reader would ask: model, adapters, formats, cards, memory, limits, flags."""

from __future__ import annotations

from deployc.diagnostics import Diagnostic
from deployc.rules import (
    adapters,
    advice,
    cards,
    context,
    cores,
    exposure,
    flags,
    formats,
    ignored,
    memory,
    offload,
    quantized,
    sla,
    start,
    trades,
    unfollowed,
)
from deployc.rules.case import Case, Rule
from deployc.spec.deploy import Deploy
from deployc.types.choices import Choices
from deployc.types.facts import Facts
from deployc.types.prediction import Prediction

RULES: tuple[Rule, ...] = (
    context.beyond_positions,
    context.below_the_load,
    adapters.belongs_to_the_model,
    adapters.can_be_served,
    adapters.one_mode,
    adapters.rank_within_ladder,
    formats.quantized_twice,
    formats.weights_have_a_kernel,
    formats.fp8_is_multiplied,
    ignored.ignore_is_coherent,
    quantized.calibration_is_there,
    quantized.settings_apply,
    quantized.layers_fit,
    quantized.experts_are_apart,
    formats.card_has_the_dtype,
    formats.fp8_kv_has_a_kernel,
    cards.model_divides,
    cards.cards_suffice,
    cards.cards_are_alike,
    cards.kernels_are_built,
    start.start_check,
    start.share_was_lowered,
    memory.layers_fit_together,
    memory.weights_fit,
    memory.room_for_kv_cache,
    memory.longest_request_fits,
    memory.length_was_fitted,
    memory.load_fits,
    start.graphs_outside_the_budget,
    start.images_outside_the_profile,
    memory.host_holds_it,
    trades.graphs_in_the_budget,
    trades.graphs_for_adapters,
    trades.tokens_of_a_step,
    trades.share_below_the_engines_own,
    unfollowed.unfollowed,
    offload.weights_in_host_memory,
    sla.limits,
    flags.known,
    flags.going,
    flags.typed,
    flags.set_twice,
    flags.coherent,
    advice.settings,
    advice.fp8_for_nothing,
    advice.host_bound,
    cores.enough_cores,
    exposure.open_without_key,
)


def judge(deploy: Deploy, facts: Facts, choices: Choices, prediction: Prediction) -> list[Diagnostic]:
    """What every rule has to say of this configuration."""
    case = Case(deploy, facts, choices, prediction)
    return [diagnostic for rule in RULES for diagnostic in rule(case)]
