"""The order of decisions: formats, then how many cards an engine takes, then sizes within the memory that is left."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import Literal

from deployc.choose import format as form
from deployc.choose import sizes
from deployc.cost import predict
from deployc.cost.kv_cache import keeps_prefixes, layout
from deployc.cost.memory import memory
from deployc.cost.parallel import undivided
from deployc.cost.prediction import kv_room
from deployc.cost.request import mean_request
from deployc.cost.weights.formats import SCHEMES
from deployc.cost.written import written_count, written_switch
from deployc.diagnostics import Report
from deployc.spec.deploy import Deploy
from deployc.types.choices import Choice, Choices
from deployc.types.facts import Facts
from deployc.types.prediction import Prediction


def decide(deploy: Deploy, facts: Facts) -> tuple[Choices | None, Prediction | None, Report]:
    """A full configuration, even where nothing fits: then the rules say why, with figures."""
    choices = _spread(deploy, facts)
    return choices, predict(deploy, facts, choices), Report()


def draft(deploy: Deploy, facts: Facts) -> Choices:
    """The sizes of a file that leaves neither format nor spread open; of one that does, of its first options."""
    return _sized(deploy, facts, form.weights(deploy, facts)[0], _tensor_parallel(deploy, facts)[0])


def _spread(deploy: Deploy, facts: Facts) -> Choices:
    """The plainest weights that hold the load, else the plainest that start; each on the fewest cards that start it.

    Weights that start for certain come before plainer ones that only may.
    More cards an engine would hold more of the load at once, but each step would wait for the links between them;
    what is left of the cards serves as replicas.
    """
    drafts = [_narrowest(deploy, facts, weights) for weights in form.weights(deploy, facts)]
    certain = [draft for draft in drafts if _starts(facts, draft, "low")]
    starting = certain or [draft for draft in drafts if _starts(facts, draft, "value")]
    return next((d for d in starting if _holds_the_load(deploy, facts, d)), (starting or drafts[-1:])[0])


def _narrowest(deploy: Deploy, facts: Facts, weights: Choice[str]) -> Choices:
    """The fewest cards that start for certain, else that may start, else as many as there are."""
    drafts = [_sized(deploy, facts, weights, size) for size in _tensor_parallel(deploy, facts)]
    certain = (draft for draft in drafts if _starts(facts, draft, "low"))
    likely = (draft for draft in drafts if _starts(facts, draft, "value"))
    return next(certain, None) or next(likely, drafts[-1])


def _tensor_parallel(deploy: Deploy, facts: Facts) -> list[Choice[int]]:
    asked = deploy.engine.parallel.tensor
    if asked != "auto":
        return [Choice(asked, deploy.because("engine.parallel.tensor"), "as written")]
    written = written_count(deploy, facts, "tensor-parallel-size")
    if written is not None:
        return [written]
    count = len(facts.devices)
    asked_replicas = deploy.engine.parallel.replicas
    cards = count // asked_replicas if asked_replicas != "auto" else count
    sizes_ = takewhile(lambda size: size <= max(1, cards), (2**n for n in range(12)))
    return [
        Choice(size, "search", "one card holds the model" if size == 1 else f"fewer than {size} cards do not hold it")
        for size in sizes_
        if not undivided(facts.model.architecture, size)
    ]


def _sized(deploy: Deploy, facts: Facts, weights: Choice[str], tensor_parallel: Choice[int]) -> Choices:
    replicas = _replicas(deploy, facts, tensor_parallel.value)
    serves = form.adapter_mode(deploy).value == "serve" and facts.adapters
    draft = Choices(
        weights=weights,
        ignore=tuple(deploy.quantization.ignore),
        dtype=form.dtype(deploy, facts),
        adapter_mode=form.adapter_mode(deploy),
        kv_cache_dtype=form.kv_cache_dtype(deploy, facts),
        tensor_parallel_size=tensor_parallel,
        replicas=replicas,
        max_model_len=sizes.wanted_length(deploy, facts),
        max_num_seqs=sizes.max_num_seqs(deploy, facts, replicas.value),
        max_num_batched_tokens=sizes.max_num_batched_tokens(deploy, facts),
        gpu_memory_utilization=sizes.gpu_memory_utilization(deploy, facts, tensor_parallel.value),
        enforce_eager=written_switch(deploy, facts, "enforce-eager", False, "graphs make decode faster"),
        enable_prefix_caching=_prefix_caching(deploy, facts),
        async_scheduling=written_switch(deploy, facts, "async-scheduling", True, "two steps in flight"),
        cpu_offload_bytes=sizes.cpu_offload(deploy, facts),
        max_lora_rank=form.max_lora_rank(deploy, facts) if serves else None,
        max_loras=form.max_loras(deploy, facts) if serves else None,
    )
    if (taken := SCHEMES.get(weights.value)) is not None and taken.group:
        draft = replace(draft, group_size=form.group_size(deploy, facts, draft))
    draft = replace(draft, cpu_kv_cache_bytes=sizes.cpu_kv_cache(deploy, facts, draft))
    draft = replace(draft, max_num_seqs=sizes.max_num_seqs(deploy, facts, replicas.value, draft))
    draft = replace(draft, max_model_len=sizes.fitted_length(deploy, facts, draft))
    return _coherent(draft)


def _prefix_caching(deploy: Deploy, facts: Facts) -> Choice[bool]:
    """The engine's default written out; of layers with a state it would keep copies all along a prompt."""
    keeps = keeps_prefixes(facts)
    reason = "equal prefixes are kept" if keeps else "this version does not by default in layers with a state"
    return written_switch(deploy, facts, "enable-prefix-caching", keeps, reason)


def _coherent(draft: Choices) -> Choices:
    """The engine refuses fewer tokens than sequences in a step."""
    tokens, seqs = draft.max_num_batched_tokens, draft.max_num_seqs
    if tokens.value >= seqs.value or tokens.because != "default":
        return draft
    return replace(
        draft, max_num_batched_tokens=Choice(seqs.value, seqs.because, "at least a token for each sequence of a step")
    )


def _replicas(deploy: Deploy, facts: Facts, tensor_parallel_size: int) -> Choice[int]:
    asked = deploy.engine.parallel.replicas
    if asked != "auto":
        return Choice(asked, deploy.because("engine.parallel.replicas"), "as written")
    count = max(1, len(facts.devices) // tensor_parallel_size)
    reason = f"{len(facts.devices)} cards, {tensor_parallel_size} an engine"
    return Choice(count, "default", reason)


def _starts(facts: Facts, choices: Choices, side: Literal["value", "low"]) -> bool:
    """Whether the engine holds one request of max_model_len, without which it refuses to start."""
    usable = memory(facts, choices)[1].usable
    return (usable.low if side == "low" else usable.value) >= choices.max_model_len.value


def _holds_the_load(deploy: Deploy, facts: Facts, choices: Choices) -> bool:
    """Whether all requests in flight on one engine, at their mean length, have room in its KV cache."""
    flight = min(deploy.workload.concurrency or 1, choices.max_num_seqs.value)
    left = memory(facts, choices)[0].kv_cache.value
    return kv_room(layout(facts, choices), left, mean_request(deploy)) >= flight
