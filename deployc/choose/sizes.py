"""How much at once: context, sequences, tokens of a batch, share of the card."""

from __future__ import annotations

import math
from dataclasses import replace

from deployc import units
from deployc.cost.batch import batch_defaults
from deployc.cost.context import positions
from deployc.cost.kv_cache import layout
from deployc.cost.memory import memory
from deployc.cost.prediction import kv_room
from deployc.cost.request import mean_request
from deployc.cost.start_check import held_by_others, highest_utilization
from deployc.cost.written import written_count, written_flag
from deployc.spec.deploy import Deploy
from deployc.types.choices import Choice, Choices
from deployc.types.facts import Facts

GIB = 2**30
_MOST_GIB = 10**12  # of one host: more than any has, and still a count of bytes


def wanted_length(deploy: Deploy, facts: Facts) -> Choice[int]:
    """max_model_len before memory is looked at."""
    written = written_count(deploy, facts, "max-model-len")
    if written is not None:
        return written
    if deploy.workload.max_context is not None:
        return Choice(deploy.workload.max_context, deploy.because("workload.max_context"), "as written")
    return Choice(positions(deploy, facts), "default", "the model's own limit")


def fitted_length(deploy: Deploy, facts: Facts, choices: Choices) -> Choice[int]:
    """max_model_len, lowered to the longest of which `sla.full_length_requests` fit, where the file leaves it open."""
    choice = choices.max_model_len
    if choice.because != "default":
        return choice
    requests = deploy.sla.full_length_requests or 1
    left = memory(facts, choices)[0].kv_cache
    pages = layout(facts, choices)
    fits = next((n for n in (pages.longest(b, requests) for b in (left.low, left.value)) if n), 0)
    if fits == 0 or fits >= choice.value:
        return choice
    many = f"{requests} requests fit" if requests > 1 else "one request fits"
    reason = f"the longest of which {many}; the model's own limit is {units.show_count(choice.value)}"
    return Choice(fits, "DC302", reason)


def max_num_batched_tokens(deploy: Deploy, facts: Facts) -> Choice[int]:
    """Tokens of one step: the engine's own default for this card, written out."""
    written = written_count(deploy, facts, "max-num-batched-tokens")
    if written is not None:
        return written
    tokens, _ = batch_defaults(facts)
    return Choice(tokens, "default", "the engine's default for this card")


def max_num_seqs(deploy: Deploy, facts: Facts, replicas: int, choices: Choices | None = None) -> Choice[int]:
    """Sequences at once: as many as the load has in flight; under an open loop what the KV cache holds."""
    written = written_count(deploy, facts, "max-num-seqs")
    if written is not None:
        return written
    if deploy.workload.concurrency is not None:
        share = math.ceil(deploy.workload.concurrency / replicas)
        return Choice(share, deploy.because("workload.concurrency"), "as many as are in flight on one engine")
    _, seqs = batch_defaults(facts)
    if choices is None:
        return Choice(seqs, "default", "the engine's default for this card")
    request = mean_request(deploy)
    fit = max(1.0, kv_room(layout(facts, choices), memory(facts, choices)[0].kv_cache.value, request))
    if fit >= seqs:
        return Choice(seqs, "default", "the engine's default for this card")
    return Choice(int(fit), "search", "more mean requests than these do not fit into the KV cache")


def gpu_memory_utilization(deploy: Deploy, facts: Facts, ranks: int = 1) -> Choice[float]:
    """The engine's default, lowered where others hold memory: its start check wants free >= ceil(total x share)."""
    asked = deploy.engine.gpu_memory_utilization
    if asked != "auto":
        return Choice(asked, deploy.because("engine.gpu_memory_utilization"), "as written")
    found = written_flag(deploy, facts, "gpu-memory-utilization")
    if found is not None and isinstance(found[0], int | float) and 0 < found[0] <= 1 and found[0] is not True:
        return Choice(float(found[0]), found[1], "engine.args")  # anything else is refused (DC501)
    default = facts.engine.gpu_memory_utilization
    tightest = min(facts.devices, key=lambda device: highest_utilization(deploy, facts, device, ranks))
    highest = highest_utilization(deploy, facts, tightest, ranks)
    if facts.smallest.name == "cpu" or highest >= default:
        return Choice(default, "default", "the engine's default")
    held = held_by_others(deploy, tightest)
    reason = f"others hold {units.show_bytes(held)} of the card" if held else "the engine's context takes the rest"
    return Choice(max(highest, 0.01), "DC303", reason)


def cpu_offload(deploy: Deploy, facts: Facts) -> Choice[int]:
    """Bytes of a card's weights that the file keeps in host memory; the flag counts in GiB."""
    found = written_flag(deploy, facts, "cpu-offload-gb")
    if found is None or isinstance(found[0], bool) or not isinstance(found[0], int | float) or found[0] <= 0:
        return Choice(0, "default", "weights are on the card")
    return Choice(int(min(found[0], _MOST_GIB) * GIB), found[1], "engine.args")


def cpu_kv_cache(deploy: Deploy, facts: Facts, choices: Choices) -> Choice[int] | None:
    """The CPU engine's pool in bytes, whole GiB: what the load needs, within what the host leaves."""
    if facts.smallest.name != "cpu":
        return None
    written = deploy.engine.env.get("VLLM_CPU_KVCACHE_SPACE")
    if written is not None and written.strip().isdecimal():
        at = deploy.because("engine.env.VLLM_CPU_KVCACHE_SPACE")
        return Choice(int(written) * GIB, at, "as written")
    request, pages = mean_request(deploy), layout(facts, choices)
    flight = deploy.workload.concurrency or choices.max_num_seqs.value
    long, full = request.long_input + request.long_output, choices.max_model_len.value
    whole = deploy.sla.full_length_requests or 1
    tokens = max(flight * long, full * whole)
    size = max(flight * pages.request_bytes(math.ceil(long)), whole * pages.request_blocks(full) * pages.block_bytes)
    bill = memory(facts, replace(choices, cpu_kv_cache_bytes=Choice(0, "default")))[0]
    left = bill.total.value - bill.weights.value - bill.activations.value - bill.non_torch.value
    needed = math.ceil((size + pages.block_bytes) / GIB)
    space = max(1, min(needed, int(left // GIB)))
    return Choice(space * GIB, "search", f"{space} GiB hold the {units.show_count(tokens)} tokens of the load")
