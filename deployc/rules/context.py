"""Context: beyond the model's positions, or shorter than the requests that will come."""

from __future__ import annotations

import math
from collections.abc import Iterator

from deployc import units
from deployc.cost.context import capping_window, positions, share_longer
from deployc.diagnostics import Diagnostic, error, warning
from deployc.rules.case import Case


def beyond_positions(case: Case) -> Iterator[Diagnostic]:
    """The engine refuses a max_model_len above the positions (vllm/config/model.py, _get_and_verify_max_len)."""
    length, limit = case.choices.max_model_len.value, positions(case.deploy, case.facts)
    if length <= limit or case.deploy.engine.env.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN") == "1":
        return
    if capping_window(case.deploy, case.facts) == limit:
        yield _beyond_window(case, length, limit)
        return
    factor = math.ceil(length / case.facts.model.architecture.max_position_embeddings)
    yield error(
        "DC520",
        "the context is longer than the model's positions",
        f"{units.show_count(length)} tokens are asked for; the model was made for {units.show_count(limit)}, "
        "and the engine does not start.",
        f"set workload.max_context to {limit}, or scale the positions: model.context: {{rope: yarn, factor: {factor}}} "
        "(short prompts lose a little quality by it)",
        case.at("max-model-len", "workload.max_context"),
    )


def _beyond_window(case: Case, length: int, window: int) -> Diagnostic:
    return error(
        "DC520",
        "the context is longer than the model's positions",
        f"{units.show_count(length)} tokens are asked for; with disable-sliding-window the engine takes no context "
        f"beyond the model's window of {units.show_count(window)}, and does not start.",
        f"remove disable-sliding-window, or set workload.max_context to {window}",
        case.at("disable-sliding-window", "workload.max_context"),
    )


def below_the_load(case: Case) -> Iterator[Diagnostic]:
    """Requests longer than max_model_len are refused one by one, at run time."""
    length = case.choices.max_model_len.value
    refused = share_longer(case.deploy, length)
    if refused < 0.01:
        return
    share = "all" if refused > 0.995 else f"about {refused:.0%}"
    yield warning(
        "DC521",
        "the context is shorter than some requests",
        f"max_model_len is {units.show_count(length)} tokens ({case.choices.max_model_len.reason}); "
        f"{share} of the stated requests, prompt and answer together, are longer and would be refused.",
        "raise workload.max_context, or state the lengths that really come",
        case.deploy.at("workload.max_context"),
    )


def scaled_for_nothing(case: Case) -> Iterator[Diagnostic]:
    """YaRN in vLLM is static: every prompt is scaled by the one factor, short ones too."""
    asked, length = case.deploy.model.context, case.choices.max_model_len.value
    arch = case.facts.model.architecture
    own = int(arch.rope.get("original_max_position_embeddings") or arch.max_position_embeddings)
    if asked is None or length > own:
        return
    yield warning(
        "DC594",
        "positions are scaled that suffice as they are",
        f"model.context scales the model's {units.show_count(own)} positions by {asked.factor:g}, and "
        f"max_model_len is {units.show_count(length)}: the model's own hold that. The factor is the same for every "
        "prompt, and short ones lose quality by it.",
        f"remove model.context, or raise workload.max_context above {own}",
        case.deploy.at("model.context"),
    )
