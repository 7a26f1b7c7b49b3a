"""Figures that cannot be true of this model on this card, by its memory, bandwidth and arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from deployc import units
from deployc.diagnostics import Diagnostic, error, note, warning
from deployc.facts.gpu_profile import names
from deployc.measure.doctor.expected import with_load
from deployc.measure.doctor.patient import Patient

SAME = 0.1
"""Relative difference up to which two sizes are called the same: people round, and mix GB with GiB."""


def card_as_its_profile(patient: Patient) -> Iterator[Diagnostic]:
    """What the card itself shows beats its name."""
    shown, card = patient.said.gpu_memory, patient.case.facts.smallest
    if shown is None or abs(shown - card.memory.value) <= SAME * card.memory.value:
        return
    other = [name for name in names() if name.startswith(f"{card.name}-") and _holds(name, shown)]
    if other:
        fix = f"write gpu: {other[0]} if nvidia-smi shows that much; a seller's page is no evidence"
    else:
        fix = "take name and size from nvidia-smi --query-gpu=name,memory.total --format=csv"
    yield error(
        "DC746",
        "the card has another memory than its name says",
        f"{card.name} has {units.show_bytes(card.memory.value)} as CUDA shows it ({card.memory.source}); "
        f"{units.show_bytes(shown)} are described. Boards with other memory are made by third parties and go by the "
        "same "
        "name; what NVML shows decides. The prediction here is of the profile's card.",
        fix,
        patient.at("gpu_memory"),
    )


def _holds(name: str, shown: float) -> bool:
    from deployc.facts.gpu_profile import load

    return abs(load(name).facts("auto").memory.value - shown) <= SAME * shown


def weights_as_described(patient: Patient) -> Iterator[Diagnostic]:
    """Memory in use is the size of 16-bit weights, where fewer bits are said to be served."""
    used, said = patient.said.memory_used, patient.said
    if used is None or patient.weights > 0.75 * patient.plain_weights:
        return
    if abs(used - patient.plain_weights) > SAME * patient.plain_weights or abs(used - _budget(patient)) <= SAME * used:
        return
    yield warning(
        "DC741",
        "the memory in use is that of weights that are not quantized",
        f"{said.quantization} weights of this model are {units.show_bytes(patient.weights)}, 16-bit ones "
        f"{units.show_bytes(patient.plain_weights)}; {units.show_bytes(used)} are in use. Either they are not "
        "quantized, or "
        f"this is not vLLM: vLLM reserves its whole budget, {units.show_bytes(_budget(patient))} here, whatever the "
        "weights "
        f"(or was given a utilization near {used / patient.case.prediction.memory.total.value:.2f}).",
        'look in the start log for "quantization=" and "Model loading took"; name the format: W8A8 checkpoints are '
        "found "
        "by vLLM itself, bitsandbytes is --quantization bitsandbytes, and int8 is no value of that flag",
        patient.at("memory_used"),
    )


def memory_as_reserved(patient: Patient) -> Iterator[Diagnostic]:
    """Memory in use is what vLLM reserves at the start: it says nothing of the load. Far less is not vLLM's default."""
    used, budget = patient.said.memory_used, _budget(patient)
    if used is None or patient.case.on_cpu or patient.said.engine == "other":
        return
    share = patient.case.choices.gpu_memory_utilization.value
    outside = patient.case.context.high + patient.case.prediction.memory.cuda_graphs.high
    if budget * (1 - SAME / 2) <= used <= budget * (1 + SAME / 2) + outside:
        yield note(
            "DC742",
            "the memory in use is what vLLM reserves",
            f"{share:.0%} of {units.show_bytes(patient.case.prediction.memory.total.value)} are "
            f"{units.show_bytes(budget)}, taken at the start whatever the load: {units.show_bytes(patient.weights)} "
            "of weights, "
            "the rest nearly all KV cache. It says nothing of how busy the card is, nor of its bandwidth.",
            "look at vllm:kv_cache_usage_perc, vllm:num_requests_waiting and vllm:num_preemptions of /metrics instead",
            patient.at("memory_used"),
        )
    elif used < budget * (1 - 2 * SAME) and not any(weights_as_described(patient)):
        total = patient.case.prediction.memory.total.value
        yield warning(
            "DC743",
            "less memory is in use than vLLM reserves",
            f"With a utilization of {share:.0%} vLLM holds {units.show_bytes(budget)} of this card from the start on; "
            f"{units.show_bytes(used)} are in use, which would be a utilization near {used / total:.2f}. It was set "
            "so low, "
            "or another engine serves.",
            "look at the launch line for --gpu-memory-utilization, and at `nvidia-smi` for what process holds the "
            "memory",
            patient.at("memory_used"),
        )


def _budget(patient: Patient) -> float:
    return patient.case.prediction.memory.budget.value


def arithmetic_as_the_card_can(patient: Patient) -> Iterator[Diagnostic]:
    """Operations of the prompts cannot take less time than the card at its peak; nor more of it than it was busy."""
    found, said = patient.arithmetic, patient.said
    if found is None:
        return
    needed, peak = found
    busy = said.gpu_utilization if said.gpu_utilization is not None and said.gpu_utilization <= 1 else 1.0
    if needed <= peak * busy:
        return
    hits = 1 - busy * peak / needed
    at_work = f", and it was busy {busy:.0%} of the time" if busy < 1 else ""
    yield error(
        "DC744",
        "the prompts take more arithmetic than the card had time for",
        f"{said.requests_per_second:g} requests/s of {units.show_count(said.input_tokens or 0)} prompt tokens take "
        f"{needed / 1e12:.0f} TFLOP/s of each card, {needed / peak:.0%} of its peak of {peak / 1e12:.0f}{at_work}. "
        "Both cannot "
        f"be true, unless at least {hits:.0%} of the prompt tokens come from the prefix cache, or prompts are shorter.",
        "count both in /metrics over a minute: vllm:prompt_tokens, vllm:prefix_cache_hits and vllm:request_success",
        patient.at("gpu_utilization" if busy < 1 else "requests_per_second"),
    )


def stream_as_the_bandwidth_allows(patient: Patient) -> Iterator[Diagnostic]:
    """Each token of a stream reads the weights once, from the memory of all cards of its engine."""
    limit = patient.case.prediction.single_stream.physical_limit
    if patient.stream is None or patient.stream <= limit.high:
        return
    said = patient.said
    how = (
        f"{units.show_count(said.output_tokens or 0)} tokens in {units.show_seconds(said.latency)}"
        if said.latency is not None
        else f"{said.tokens_per_second:g} tokens/s over {patient.in_flight}"
    )
    yield error(
        "DC745",
        "a stream is faster than the memory's bandwidth allows",
        f"{how} are {units.show_count(patient.stream)} tokens/s of one request. Each reads the weights once: at the "
        "full "
        f"bandwidth at most {units.show_count(limit.value)} tokens/s are possible. Answers were shorter than said, "
        "the time "
        "is another's, or several tokens come from a draft model at once.",
        "measure the length of the answers that were timed, and the time of each of them",
        patient.at("latency" if said.latency is not None else "tokens_per_second"),
    )


def batches_give_more(patient: Patient) -> Iterator[Diagnostic]:
    """A step of four sequences reads the weights once for all of them: it takes hardly longer than one of one."""
    alone = patient.speed if patient.in_flight else None
    for index, batch in enumerate(patient.said.batches):
        if alone is None or batch.concurrency <= (patient.in_flight or 1) or batch.tokens_per_second > alone.value:
            continue
        there = with_load(patient.case, {"concurrency": batch.concurrency}).prediction.speed.tokens_per_second
        yield warning(
            "DC749",
            "a larger batch is slower than a smaller one",
            f"{batch.tokens_per_second:g} tokens/s with {batch.concurrency} in flight, {alone.value:g} with "
            f"{patient.in_flight}. A step reads the weights once for its whole batch, so that a batch of "
            f"{batch.concurrency} is predicted to give {there.value:.3g} ({there.basis}). The requests are not "
            "batched, or "
            "what is slow is no step of the GPU. Blocks are not swapped: four such requests hold a small part of the "
            "KV cache.",
            "send them at once, from several connections; look at vllm:num_requests_running while they run",
            patient.described.at("batches", index, "tokens_per_second"),
        )


def flags_are_known(patient: Patient) -> Iterator[Diagnostic]:
    """A flag that this version does not have was not heeded by the prediction either."""
    engine = patient.case.facts.engine
    for name in patient.said.args:
        if (
            engine.canonical(name) not in engine.flags
            and engine.canonical(name).removeprefix("no-") not in engine.flags
        ):
            assumed = "" if patient.said.version else ", which is assumed"
            yield warning(
                "DC759",
                "a flag that is described is not known",
                f"vLLM {engine.version}{assumed} has no --{name.lstrip('-')}: nothing was made of it here.",
                "correct it, or say which version runs (version: 0.11.0)",
                patient.described.at("args", name),
            )


CHECKS: tuple[Callable[[Patient], Iterator[Diagnostic]], ...] = (
    card_as_its_profile,
    weights_as_described,
    memory_as_reserved,
    arithmetic_as_the_card_can,
    stream_as_the_bandwidth_allows,
    batches_give_more,
    flags_are_known,
)
