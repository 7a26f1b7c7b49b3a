"""Why it is slow or does not start: each with evidence, and with what it would give back (DC750-DC769)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from deployc import units
from deployc.measure.doctor.expected import with_load, with_weights
from deployc.measure.doctor.patient import Patient
from deployc.types.figure import Factor, Figure

SLOWER = 1.3
"""Times slower than predicted from which a cause is looked for."""
ENOUGH = 128
"""Requests in flight that show what a deployment can do: more of them add little and wait longer."""
BITSANDBYTES = ("bitsandbytes", "bitsandbytes-8bit", "bitsandbytes-4bit")


@dataclass(frozen=True, slots=True)
class Cause:
    """`summary` is constant for a code; `gain` in tokens/s or requests/s (its unit says), None where it has none."""

    code: str
    summary: str
    evidence: str
    gain: Figure | None
    unit: str  # "tokens/s" | "requests/s" | ""
    stated: bool  # the description itself says so; else it is a candidate
    check: str  # how to make sure
    fix: str


Effects = Mapping[str, Factor]


def eager(patient: Patient, effects: Effects) -> Iterator[Cause]:
    """No CUDA graphs: the host launches every kernel of every step."""
    args = {name.lstrip("-").replace("_", "-"): value for name, value in patient.said.args.items()}
    written = args.get("enforce-eager") in (True, "true", "True", 1)
    forced = patient.said.quantization in ("bitsandbytes", "bitsandbytes-8bit")
    if not (written or forced) and patient.slow < SLOWER:
        return
    seen, effect = patient.speed, effects["eager"]
    here = patient.predicted.value / patient.eager.value if patient.eager.value else 1.0
    ratios = sorted((here, effect.high))
    longer = f"{here:.3g} times as long" if here >= 1.02 else "no longer"
    why = "--enforce-eager is set" if written else "bitsandbytes in 8 bit forces it" if forced else "not excluded"
    yield Cause(
        "DC750",
        "CUDA graphs are turned off",
        f"{why}. With a fast host a token is predicted to take {longer} without graphs on this card; measured: "
        f"{effect.high:.3g} times as long ({effect.source}).",
        _given_back(patient, seen, ratios[0], (here + effect.high) / 2, ratios[1]),
        "tokens/s",
        written or forced,
        "the start log says enforce_eager=True, or has no line of captured graphs",
        "remove --enforce-eager" if not forced else "serve fp8, int8 or a W8A8 checkpoint instead of bitsandbytes",
    )


def not_vllms_own_kernels(patient: Patient, effects: Effects) -> Iterator[Cause]:  # noqa: ARG001
    """bitsandbytes, or another engine: weights are unpacked at every step."""
    said = patient.said
    quantized = patient.weights < 0.75 * patient.plain_weights
    if said.quantization not in BITSANDBYTES and not (quantized and patient.slow >= 2 and said.engine != "vllm"):
        return
    stated = said.quantization in BITSANDBYTES or said.engine == "other"
    yield Cause(
        "DC751",
        "the weights are not multiplied by vLLM's own kernels",
        f"{said.quantization} in bitsandbytes or another engine unpacks weights at every step. vLLM's own kernels for "
        f"{said.quantization} weights are predicted to give {_rate(patient.predicted)} here.",
        _given_back(patient, patient.speed, 1.0, patient.slow, patient.slow),
        "tokens/s",
        stated,
        'the start log says "quantization="; `ps` says which program serves',
        "build the format with deployc (quantization.weights: fp8 or int8), or take a checkpoint of compressed-tensors",
    )


def unmerged(patient: Patient, effects: Effects) -> Iterator[Cause]:
    """Every linear layer runs the adapter's two products beside its own."""
    if patient.said.adapter not in ("unmerged", "unknown", "lora"):
        return
    effect, stated = effects["unmerged"], patient.said.adapter == "unmerged"
    yield Cause(
        "DC752",
        "the adapter is served unmerged",
        f"{'It is' if stated else 'It is not said whether it is merged'}; measured: {1 - 1 / effect.low:.0%} to "
        f"{1 - 1 / effect.high:.0%} fewer tokens ({effect.source}).",
        _given_back(patient, patient.speed, effect.low, effect.value, effect.high),
        "tokens/s",
        stated,
        "the launch line has --enable-lora",
        "set adapters[].mode: merge, unless adapters come and go at run time",
    )


def busy_host(patient: Patient, effects: Effects) -> Iterator[Cause]:  # noqa: ARG001
    """The GPU is idle between steps while cores are at work."""
    said = patient.said
    idle = said.gpu_utilization is not None and said.gpu_utilization <= 0.6
    busy = said.cpu_utilization is not None and said.cpu_utilization >= 0.6
    tensor = patient.case.choices.tensor_parallel_size.value
    needed = (2 + tensor) * patient.case.choices.replicas.value
    few = said.cpus is not None and said.cpus < needed
    if not few and not (idle and busy):
        return
    seen = f"GPU {said.gpu_utilization:.0%} and CPU {said.cpu_utilization:.0%} busy" if idle and busy else ""
    cores = f"{said.cpus} cores for {needed} processes that each keep one busy" if few else ""
    yield Cause(
        "DC753",
        "the GPU waits for the host",
        f"{', '.join(part for part in (seen, cores) if part)}. Eager mode gives the same picture: then the engine's "
        "own "
        "loop is what is busy, not the tokenizer.",
        _given_back(patient, patient.speed, 1.0, min(patient.slow, _idle(patient)), patient.slow),
        "tokens/s",
        few,
        "`top -H`: one process at 100% of a core; another load on the host",
        f"{needed} physical cores or more for the engine alone, fast ones; thread variables do not help",
    )


def too_few_in_flight(patient: Patient, effects: Effects) -> Iterator[Cause]:  # noqa: ARG001
    """A closed client gets no more than requests at once / seconds of each, however fast the card is."""
    said, rate = patient.said, patient.said.requests_per_second
    limited = said.concurrency is not None and said.latency is not None
    if rate is None or (said.gpu_utilization or 0.0) > 0.8:
        return
    most = with_load(patient.case, {"concurrency": ENOUGH}).prediction.speed.requests_per_second
    if most.value <= rate * SLOWER:
        return
    if limited:
        allowed = said.concurrency / said.latency  # type: ignore[operator]  # both are there, just seen
        if rate < 0.8 * allowed:
            return
        evidence = (
            f"{said.concurrency} in flight / {units.show_seconds(said.latency or 0)} each = {allowed:.3g} requests/s "
            "at "
            f"most, and {rate:.3g} are seen"
        )
    else:
        evidence = f"{rate:.3g} requests/s are seen, and how many are in flight is not said"
    yield Cause(
        "DC754",
        "too few requests are in flight",
        f"{evidence}. With {ENOUGH} of them {most.value:.3g} requests/s are predicted ({most.basis}).",
        Figure(most.value - rate, max(0.0, most.low - rate), most.high - rate, "1/s", most.basis),
        "requests/s",
        limited,
        "vllm:num_requests_running of /metrics: far below max_num_seqs while nothing waits",
        "send more at once, from several processes; measure with a fixed rate, not with a loop that waits",
    )


def few_sequences(patient: Patient, effects: Effects) -> Iterator[Cause]:
    """max_num_seqs below what is in flight: the rest wait, though the KV cache has room."""
    most, flight = patient.case.choices.max_num_seqs.value, patient.in_flight
    written = any(name.lstrip("-").replace("_", "-") == "max-num-seqs" for name in patient.said.args)
    if not written or flight is None or most >= flight / patient.case.choices.replicas.value:
        return
    there = with_load(patient.case, {"concurrency": flight})
    effect = effects["few_sequences"]
    yield Cause(
        "DC755",
        "fewer sequences run at once than are sent",
        f"max_num_seqs {most}, {flight} in flight; the KV cache holds "
        f"{units.show_count(there.prediction.max_concurrency.low)} "
        f"of full length. Measured: {effect.value:.2g} times as many requests with more ({effect.source}).",
        _given_back(patient, patient.speed, effect.low, effect.value, effect.high),
        "tokens/s",
        True,
        "vllm:num_requests_waiting of /metrics is above 0",
        f"raise max_num_seqs to {flight}",
    )


def prompts_weigh_most(patient: Patient, effects: Effects) -> Iterator[Cause]:  # noqa: ARG001
    """Prompts computed again and again, where answers are short: what the prefix cache is for."""
    said, found = patient.said, patient.arithmetic
    if found is None or said.prefix_cache_hits or found[0] < 0.3 * found[1]:
        return
    yield Cause(
        "DC756",
        "computing prompts takes most of the card's time",
        f"{found[0] / found[1]:.0%} of the peak go into prompts of {units.show_count(said.input_tokens or 0)} tokens. "
        "It is the "
        "part that is bound by arithmetic: more of it raises the GPU's use, not less.",
        None,
        "",
        False,
        "vllm:prefix_cache_hits / vllm:prefix_cache_queries of /metrics",
        "put what prompts share at their beginning, the same to the byte, and keep prefix caching on; or shorten them",
    )


def ran_out_of_memory(patient: Patient, effects: Effects) -> Iterator[Cause]:  # noqa: ARG001
    """It does not start with weights that are predicted to fit: others hold memory, or it is counted otherwise."""
    weights = patient.said.out_of_memory
    if weights is None:
        return
    from deployc.measure.doctor.description import FORMATS

    there = with_weights(patient.said, patient.case, FORMATS[weights]).prediction
    bill = there.memory
    sizes = f"{units.show_bytes(bill.weights.value)} of weights in a budget of {units.show_bytes(bill.budget.value)}"
    if bill.kv_cache.low <= 0:
        yield Cause(
            "DC757", "the weights that ran out of memory do not fit",
            f"{sizes}: {units.show_bytes(bill.kv_cache.value)} would be left for the KV cache.", None, "", True,
            "the start log ends while weights load, or at the check after it",
            "fewer bits a weight, more cards, or a larger one: `deployc plan` of a deploy.yaml says which",
        )  # fmt: skip
        return
    yield Cause(
        "DC758",
        "what fits ran out of memory",
        f"{sizes} leave {units.show_bytes(bill.kv_cache.value)}, {units.show_count(there.kv_cache_tokens.value)} KV "
        "tokens. "
        "What runs out, then: another process or a screen on the card; an old engine that profiles 32,768 tokens at "
        "once; "
        "CUDA graphs, which older versions capture outside the budget; a utilization near 1.",
        None,
        "",
        False,
        "`nvidia-smi` before the start: what is used then; the last lines of the start log",
        "free the card, or set hardware.reserved_memory to what others hold; a newer engine; max_model_len of the load",
    )


CAUSES: tuple[Callable[[Patient, Effects], Iterator[Cause]], ...] = (
    eager,
    not_vllms_own_kernels,
    unmerged,
    busy_host,
    too_few_in_flight,
    few_sequences,
    prompts_weigh_most,
    ran_out_of_memory,
)


def ranked(found: list[Cause]) -> list[Cause]:
    """What is stated before what may be; in each by what it gives back, what has no figure last."""
    return sorted(found, key=lambda cause: (not cause.stated, -(cause.gain.value if cause.gain else -1.0)))


def _idle(patient: Patient) -> float:
    """How many times as fast it would be if the GPU were never idle."""
    used = patient.said.gpu_utilization
    return 1 / used if used else 1.0


def _given_back(patient: Patient, seen: Figure | None, low: float, value: float, high: float) -> Figure | None:
    """Tokens/s that a setting costs, never more than what lacks to the prediction; None where no speed was seen."""
    if seen is None:
        return None
    most = max(0.0, patient.predicted.high - seen.value)
    gains = sorted(min(most, max(0.0, seen.value * (ratio - 1))) for ratio in (low, value, high))
    return Figure(gains[1], gains[0], gains[2], "1/s", "transferred")


def _rate(figure: Figure) -> str:
    return f"{units.show_count(float(f'{figure.value:.3g}'))} tokens/s ({figure.basis})"
