"""Which cards run what: the intervals of the engine's version (`types/engine_kernels.py`) against their capability.

What is not known of a card is not held against it. Each takes the card of the facts with least memory, or another.
"""

from __future__ import annotations

from deployc.types.choices import Choices
from deployc.types.engine_kernels import Capability, Runs
from deployc.types.facts import Facts, GpuFacts


def runs(facts: Facts, what: str, card: GpuFacts | None = None) -> Runs | None:
    """How a card runs a format, by its name in `EngineKernels.runs`; None where it does not, or is no card."""
    capability = (card or facts.smallest).compute_capability
    if capability is None:
        return None
    return next((one for one in facts.calibration.kernels.runs[what] if one.covers(capability)), None)


def multiplies(facts: Facts, what: str, card: GpuFacts | None = None) -> bool:
    """Whether a card multiplies a format in its own type, as one of unknown capability is taken to."""
    found = runs(facts, what, card)
    return (card or facts.smallest).compute_capability is None or (found is not None and found.how == "native")


def interval(facts: Facts, what: str) -> tuple[Capability, Capability | None] | None:
    """From which capability on this version runs a format, and before which; None where no card does."""
    known = facts.calibration.kernels.runs[what]
    return (known[0].since, known[-1].before) if known else None


def format_of(weights: str) -> str:
    """The name in `EngineKernels.runs` of weights of a format of ours: the calibrated and the plain int4 are one."""
    return "int4" if weights.startswith("int4-") else weights


def eight_bit(facts: Facts, card: GpuFacts | None = None) -> str | None:
    """The 8-bit weights that a card multiplies in their own type: "fp8" where it can, as it rounds outliers less; else
    "int8"; None where neither. Of a card whose capability is not known, as of the CPU, "int8"."""
    if (card or facts.smallest).compute_capability is None:
        return "int8"
    return next((weights for weights in ("fp8", "int8") if multiplies(facts, weights, card)), None)


def has_kernels(facts: Facts, card: GpuFacts, choices: Choices) -> bool:
    """Whether a card runs these weights in this dtype at all."""
    if not has_weight_kernels(facts, choices.weights.value, card) or not is_built(facts, card):
        return False
    plain = card.compute_capability is None or choices.dtype.value != "bfloat16"
    return plain or runs(facts, "bfloat16", card) is not None


def has_weight_kernels(facts: Facts, weights: str, card: GpuFacts | None = None) -> bool:
    """Whether a card multiplies by weights of a format of ours."""
    card = card or facts.smallest
    if card.compute_capability is None:
        return not (card.name == "cpu" and weights in facts.calibration.kernels.without_cpu)
    return weights in ("none", "checkpoint") or runs(facts, format_of(weights), card) is not None


def is_built(facts: Facts, card: GpuFacts, *, image: bool = True) -> bool:
    """Whether this version's kernels and torch's, as the image or the wheel has them, are built for a card."""
    kernels = facts.calibration.kernels
    lists = [kernels.torch_image if image else kernels.torch_wheel, built(facts)]
    return card.compute_capability is None or all(not one or covered(one, card.compute_capability) for one in lists)


def built(facts: Facts) -> tuple[Capability, ...]:
    """What the engine's own kernels are built for, in image and wheel alike; empty where that is not known."""
    read = (word.partition(".") for word in facts.engine.compute_capabilities)
    return tuple((int(major), int(minor)) for major, _, minor in read)


def covered(listed: tuple[Capability, ...], capability: Capability) -> bool:
    """Code for 8.0 runs on 8.6 too: within a major version on every later minor one (CUDA's programming guide, "Binary
    Compatibility"); of what is compiled on the card when it is first used (PTX), vLLM has parts and torch next to none.
    """
    return any(major == capability[0] and minor <= capability[1] for major, minor in listed)


def reads_fp8_kv(facts: Facts) -> bool:
    """Whether this version has a kernel of its own for an fp8 KV cache of this model on this card; none is needed where
    nothing but states is kept."""
    kept, capability = facts.model.architecture.caches, facts.smallest.compute_capability
    if facts.smallest.name == "cpu" or all(cache.kind == "state" for cache in kept):
        return False
    if capability is None:
        return True
    latent = any(cache.kind == "mla" for cache in kept)
    if latent and not facts.calibration.memory.kv.latent_fp8_triton:
        return capability[0] in (9, 10)
    return runs(facts, "fp8-kv") is not None


def words(capability: Capability) -> str:
    """(8, 9) as "8.9"."""
    return f"{capability[0]}.{capability[1]}"
