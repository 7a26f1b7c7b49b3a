"""Adapters: do they belong to the model, and can the engine serve them."""

from __future__ import annotations

from collections.abc import Iterator

from deployc.cost.lora_slots import LORA_RANKS
from deployc.cost.weights.names import EMBEDDINGS, OUTPUTS
from deployc.cost.written import written_count
from deployc.diagnostics import Diagnostic, Severity, Span, error
from deployc.rules.adapter_shapes import adapter_shapes, cannot_be_served, merged
from deployc.rules.adapter_shapes.in_memory import by_peft
from deployc.rules.adapter_shapes.names import read
from deployc.rules.case import Case
from deployc.types.facts import AdapterFacts
from deployc.types.groups import expand


def belongs_to_the_model(case: Case) -> Iterator[Diagnostic]:
    """Every adapter against the base tensors that it changes; served ones with what only a merge can do left out."""
    serves = case.choices.adapter_mode.value == "serve"
    wrong = False
    for index, adapter in enumerate(case.facts.adapters):
        for found in adapter_shapes(case.facts.unmerged, adapter, case.deploy.at(f"adapters.{index}.source")):
            wrong = wrong or found.severity is Severity.ERROR
            if not (serves and found.code == "DC238"):
                yield found
    if not serves and not wrong:
        at = case.deploy.at("adapters.0.source" if len(case.facts.adapters) == 1 else "adapters")
        yield from merged(case.facts.unmerged, case.facts.adapters, at).diagnostics
        yield from by_peft(case.facts.unmerged, case.facts.adapters, [a.weight for a in case.deploy.adapters], at)


def can_be_served(case: Case) -> Iterator[Diagnostic]:
    """What the engine has no layer for is an error where the adapter is served unmerged."""
    if case.choices.adapter_mode.value == "serve":
        for index, adapter in enumerate(case.facts.adapters):
            at = case.deploy.at(f"adapters.{index}")
            refused = cannot_be_served(adapter, at)
            yield from refused or _on_embeddings(case, adapter, at)


def _on_embeddings(case: Case, adapter: AdapterFacts, at: Span | None) -> Iterator[Diagnostic]:
    """A pair on embed_tokens or lm_head, where the model's class has no LoRA layer for them: "expected target modules
    in … but received …" (vllm/lora/lora_model.py, 0.32.0). Of models with towers the classes were not read."""
    arch, known = case.facts.model.architecture, case.facts.lore.formats.adapted_embeddings
    if not known or arch.name in known or arch.towers:
        return
    items = (read(name) for group in adapter.tensors for name in expand(group))
    pairs = {item.module.rpartition(".")[2] for item in items if item and item.role in ("A", "embedding_A")}
    if found := sorted(pairs & {*EMBEDDINGS, *OUTPUTS}):
        yield error(
            "DC242",
            "the engine cannot serve this adapter unmerged",
            f"{adapter.name}: it changes {' and '.join(found)}, and vLLM {case.facts.engine.version} has no LoRA layer "
            f"for them in {arch.name}.",
            "Set mode: merge for it.",
            at,
        )


def one_mode(case: Case) -> Iterator[Diagnostic]:
    """Merged and served adapters cannot be mixed: which base would the served ones stand on?"""
    modes = {a.mode for a in case.deploy.adapters if a.mode is not None}
    if len(modes) > 1:
        yield error(
            "DC247",
            "some adapters are merged and some are served",
            "Served adapters were trained on the base model, not on a merged one.",
            "give every adapter the same mode",
            case.deploy.at("adapters"),
        )


def rank_within_ladder(case: Case) -> Iterator[Diagnostic]:
    """vllm/config/lora.py accepts a ladder of ranks only, and an adapter of no higher rank than the one it was told."""
    ladder, limit = case.facts.engine.lora_ranks or LORA_RANKS, case.choices.max_lora_rank
    if case.choices.adapter_mode.value != "serve":
        return
    low = []
    for index, adapter in enumerate(case.facts.adapters):
        if adapter.rank > ladder[-1]:
            yield error(
                "DC246",
                "the adapter's rank is above what the engine serves",
                f"{adapter.name} has rank {adapter.rank}; the engine's largest max_lora_rank is {ladder[-1]}.",
                "set mode: merge",
                case.deploy.at(f"adapters.{index}"),
            )
        elif limit is not None and adapter.rank > limit.value:
            low.append(adapter)
    if low and limit is not None:
        highest = max(low, key=lambda adapter: adapter.rank)
        step = next(step for step in ladder if step >= highest.rank)
        yield error(
            "DC595",
            "max_lora_rank is below an adapter's rank",
            f"{highest.name} has rank {highest.rank} (the largest of any module, rank_pattern among them); with "
            f"max_lora_rank {limit.value} the engine does not load it.",
            f"remove engine.args.max-lora-rank: {step} is chosen then",
            case.at("max-lora-rank", "adapters"),
        )


def slots_fit_beside_the_host(case: Case) -> Iterator[Diagnostic]:
    """vllm/config/lora.py: "max_cpu_loras (2) must be >= max_loras (3)", 0.8.0 to 0.33.0."""
    host, slots = written_count(case.deploy, case.facts, "max-cpu-loras"), case.choices.max_loras
    if case.choices.adapter_mode.value != "serve" or host is None or slots is None or host.value >= slots.value:
        return
    yield error(
        "DC512",
        "two settings contradict each other",
        f"max_cpu_loras {host.value} is less than max_loras {slots.value}; the host keeps each adapter that the cards "
        "hold, and the engine does not start.",
        f"set engine.args.max-cpu-loras: {slots.value} or more, or remove it",
        case.at("max-cpu-loras", "adapters"),
    )
