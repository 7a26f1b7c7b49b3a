"""Which constants the speed of a configuration rests on, how sure they are, and what the card itself can do."""

from __future__ import annotations

from dataclasses import dataclass, replace

from deployc.cost.step import Peaks, kernel
from deployc.types.choices import Choices
from deployc.types.facts import Facts, GpuFacts
from deployc.types.figure import Basis
from deployc.types.speed import Constants, Errors, SpeedProfile

GDDR_LIMIT = 1.9e12
"""Bandwidth in bytes/s under which a card has GDDR memory: the fastest such card (RTX 5090) has 1.79e12."""


@dataclass(frozen=True, slots=True)
class SpeedBasis:
    """The constants that were chosen, and why a figure from them is trusted as much as it is."""

    basis: Basis
    said: str  # where they were measured; "" = nowhere
    constants: Constants
    errors: Errors
    peaks: Peaks
    carried: float = 1.0  # by how much more it may be off on another card or version than the rows were read on

    def error(self, quantity: str) -> float:
        """The factor each way that holds nine of ten."""
        return self.errors.of(self.basis, quantity) * self.carried


def speed_basis(facts: Facts, choices: Choices) -> SpeedBasis:
    """The fit of this card and version; else of the nearest card; without the card's own figures, specifications."""
    card = facts.smallest
    profile = _nearest(facts)
    constants = profile.constants
    if card.name != "cpu" and card.bandwidth and card.bandwidth.value < GDDR_LIMIT and _fast(profile):
        constants = _on_gddr(facts, constants)
    if choices.tensor_parallel_size.value > 1 and card.interconnect != "nvlink":
        constants = replace(constants, reduce_latency=facts.calibration["allreduce_latency"].value)
    carried = 1.0 if _same(facts, profile) or not profile.rows else facts.calibration["speed_carried_over"].value
    basis = _basis(facts, choices, profile)
    return SpeedBasis(basis, profile.said, constants, profile.errors, _peaks(facts), carried)


def _nearest(facts: Facts) -> SpeedProfile:
    """By card, then by how near the compute capability and the version are. There is always one for cards, one for
    the CPU: an installation without is broken (LookupError)."""
    card = facts.smallest
    fitting = [p for p in facts.calibration.speed if (p.gpu == "cpu") == (card.name == "cpu")]
    if not fitting:
        raise LookupError(f"no speed profile for {card.name}")
    return min(fitting, key=lambda p: (p.gpu != card.name, _apart(p, card), _behind(p, facts.engine.version)))


def _apart(profile: SpeedProfile, card: GpuFacts) -> int:
    of, to = profile.compute_capability, card.compute_capability or (0, 0)
    return abs((of[0] - to[0]) * 10 + of[1] - to[1])


def _behind(profile: SpeedProfile, version: str) -> int:
    return abs(_minor(profile.engine_version) - _minor(version))


def _minor(version: str) -> int:
    return int(version.split(".")[1])


def _basis(facts: Facts, choices: Choices, profile: SpeedProfile) -> Basis:
    """`measured`: this card, this minor version, and every kind of work of this configuration among the rows."""
    card = facts.smallest
    if not profile.rows or card.bandwidth is None or not card.flops:
        return "modelled"
    seen = kinds(facts, choices) <= set(profile.measured)
    return "measured" if _same(facts, profile) and seen else "transferred"


def _same(facts: Facts, profile: SpeedProfile) -> bool:
    """Whether the rows are of this card and this minor version."""
    return facts.smallest.name == profile.gpu and _minor(profile.engine_version) == _minor(facts.engine.version)


def kinds(facts: Facts, choices: Choices) -> set[str]:
    """What a fit must have seen to know this configuration, beside the card and the version."""
    found = {kernel(facts, choices)}
    found |= {"experts"} if facts.model.architecture.experts else set()
    found |= {"latent attention"} if facts.model.architecture.attention == "mla" else set()
    found |= {"states"} if any(c.kind == "state" for c in facts.model.architecture.caches) else set()
    found |= {"adapter"} if choices.max_lora_rank is not None else set()
    found |= {"tensor-parallel"} if choices.tensor_parallel_size.value > 1 else set()
    found |= set() if choices.async_scheduling.value else {"one step at a time"}
    return found | ({"eager"} if choices.enforce_eager.value else set())


def _fast(profile: SpeedProfile) -> bool:
    """Whether the constants were read on HBM."""
    return profile.gpu.startswith(("h1", "h2", "a100", "b2", "gh"))


def _on_gddr(facts: Facts, constants: Constants) -> Constants:
    """GDDR gives a larger share of its bandwidth than HBM does: all streams grow by the ratio of the two."""
    factors = facts.calibration
    ratio = factors["weight_stream_gddr"].value / factors["weight_stream_hbm"].value
    kernels = {n: replace(k, stream=min(1.0, k.stream * ratio)) for n, k in constants.kernels.items()}
    return replace(
        constants,
        kernels=kernels,
        kv_stream=min(1.0, constants.kv_stream * ratio),
        kv_stream_mixed=min(1.0, constants.kv_stream_mixed * ratio),
        expert_stream=min(1.0, constants.expert_stream * ratio),
    )


def _peaks(facts: Facts) -> Peaks:
    """The card's figures; a recalled ratio or host stands in where one is not known (then the basis is `modelled`)."""
    card, factors = facts.smallest, facts.calibration
    bandwidth = card.bandwidth.value if card.bandwidth else factors["cpu_bandwidth"].value
    plain = next((card.flops[n].value for n in ("bf16", "fp16") if n in card.flops), None)
    if plain is None:
        on_cpu = card.name == "cpu"
        plain = factors["cpu_flops"].value if on_cpu else factors["flops_unknown_per_bandwidth"].value * bandwidth
    eight = {name: card.flops[name].value if name in card.flops else plain for name in ("fp8", "int8")}
    return Peaks(bandwidth, plain, eight["fp8"], eight["int8"], _link(facts))


def _link(facts: Facts) -> float:
    """Bytes/s between cards, one direction: the profile's for NVLink; PCIe never reaches its own in an all-reduce."""
    card, factors = facts.smallest, facts.calibration
    if card.interconnect != "nvlink":
        return factors["pcie_bandwidth"].value
    known = card.interconnect_bandwidth
    return known.value if known is not None else factors["nvlink_bandwidth"].value
