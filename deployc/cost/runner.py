"""Which of the engine's two model runners serves this configuration, and what that means for CUDA graphs."""

from __future__ import annotations

from deployc.types.choices import Choices
from deployc.types.facts import Facts


def model_runner(facts: Facts, choices: Choices) -> str:
    """ "V1" | "V2": this version's default for the weights that are served."""
    return facts.engine.model_runner(facts.model.architecture, quantized=_serves_quantized(facts, choices))


def counts_graphs(facts: Facts, choices: Choices) -> bool:
    """Whether the engine subtracts its estimate of the CUDA graphs from the budget, or leaves them outside it."""
    return facts.engine.counts_graphs(facts.model.architecture, quantized=_serves_quantized(facts, choices))


def _serves_quantized(facts: Facts, choices: Choices) -> bool:
    """Whether the config.json that the engine reads has a quantization: the checkpoint's, or our own artifact's."""
    return bool(facts.model.quantization) or choices.weights.value not in ("none", "checkpoint")
