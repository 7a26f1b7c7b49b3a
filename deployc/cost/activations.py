"""The peak that the engine profiles at its start: the largest of moments that do not exist at once.

vllm/v1/worker/gpu_worker.py, determine_available_memory: the most that torch holds while a dummy batch of
max_num_batched_tokens runs through the model (attention skipped) and logits of max_num_seqs rows through the sampler,
less what it held before. What counts at each moment is read in the sources named; what is not found there is measured
(profiles/engines/memory.json, fitted by `python -m deployc.measure.calibrate.memory_fit`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from deployc.cost.latent import expanded_context
from deployc.cost.parallel import padded_vocabulary
from deployc.cost.runner import model_runner
from deployc.cost.state_layers import state_width
from deployc.cost.towers import LARGEST, kept_embeddings, size_is_known, tower_peak
from deployc.types.architecture import Architecture
from deployc.types.choices import Choices
from deployc.types.facts import SERVED_BYTES, Facts
from deployc.types.figure import Figure

SPREAD = 1.05
"""Between starts that are alike."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Bytes that torch holds at one moment of the profiling run."""

    name: str
    bytes: float


def activations(facts: Facts, choices: Choices, stage: int = 0) -> Figure:
    """The peak on one rank of a pipeline stage. `low` is that of a warm compile cache, `high` with the spread seen."""
    fixed, tables = facts.calibration.memory.activation_fixed, facts.calibration.memory.compile_tables
    found = {moment.name: moment.bytes for moment in moments(facts, choices, stage)}
    compiling, kept = found.pop("compile", 0.0), _sampler_state(facts, choices, stage)
    warm = max(found.values())
    value = max(warm, compiling * tables.value)
    high = max(warm, compiling * tables.high, _with_largest_image(facts, choices, stage)) * SPREAD
    return Figure(
        value + kept + fixed.value, warm / SPREAD + kept + fixed.low, high + kept + fixed.high, "B", "transferred"
    )


def moments(facts: Facts, choices: Choices, stage: int = 0) -> Iterator[Moment]:
    """Every moment that may be the peak, in the order in which they come; "compile" with one whole table."""
    model, element = facts.model.architecture, SERVED_BYTES[choices.dtype.value]
    tokens = choices.max_num_batched_tokens.value
    batch = tokens * model.hidden_size * element
    images = stage == 0 and model.towers and profiles_images(facts, choices)
    beside = kept_embeddings(model, tokens, element) if images else 0.0
    if images:
        yield Moment("tower", encoder_bytes(facts, choices))
    kept = _expert_workspace(model, choices) * element
    if stage == 0 and not choices.enforce_eager.value:
        yield Moment("compile", _table(model, choices) * element)
    yield Moment("batch", tokens * layer_width(model, choices) * element + kept + beside)
    if states := state_width(facts, choices.tensor_parallel_size.value):
        yield Moment("state", tokens * states * element + kept + beside)
    if context := expanded_context(facts, choices):
        yield Moment("context", context * element + 4 * batch + kept + beside)
    if _is_last(choices, stage):
        rows = 2 * choices.max_num_seqs.value * model.hidden_size * element  # the last tokens' states, and random ones
        yield Moment("sampler", _sampler(facts, choices) + batch + rows + kept + beside)


def _with_largest_image(facts: Facts, choices: Choices, stage: int) -> float:
    """Bytes of the encoder's moment where no file says how large an image may be, for the largest one; else 0."""
    towers = facts.model.architecture.towers
    if stage or not towers or size_is_known(towers[0]) or not profiles_images(facts, choices):
        return 0.0
    return encoder_bytes(facts, choices, LARGEST)


def encoder_bytes(facts: Facts, choices: Choices, largest: int = 0) -> float:
    """Bytes of the encoder's moment, profiled or not; `largest`: tokens of an item whose size no file says."""
    model, tokens = facts.model.architecture, choices.max_num_batched_tokens.value
    if not model.towers:
        return 0.0
    element, tp = SERVED_BYTES[choices.dtype.value], choices.tensor_parallel_size.value
    return tower_peak(model, tokens, element, tp, largest) + kept_embeddings(model, tokens, element, largest)


def _is_last(choices: Choices, stage: int) -> bool:
    return stage == choices.pipeline_parallel_size.value - 1


def profiles_images(facts: Facts, choices: Choices) -> bool:
    """Whether this version's runner for the model runs its encoder when it profiles its memory."""
    return model_runner(facts, choices) == "V1" or facts.calibration.memory.encoder_profiled_v2


def _table(model: Architecture, choices: Choices) -> float:
    """Elements of the embedding table: a cold compile cache is filled with its largest kernel argument held twice."""
    return padded_vocabulary(model.vocab_size) * model.hidden_size / choices.tensor_parallel_size.value


def layer_width(model: Architecture, choices: Choices) -> float:
    """Elements a token at the widest point of a layer: gate and up, their product, and four of hidden size.

    The four: what attention gave, the residual, and input and output of the norm between them, which the pieces of
    the compiled graph hand each other. Experts work in the workspace, a shared one beside it.
    """
    inner = model.shared_expert_size if model.experts else model.intermediate_size
    return 3 * inner / choices.tensor_parallel_size.value + 4 * model.hidden_size


def _expert_workspace(model: Architecture, choices: Choices) -> float:
    """Elements that the fused experts keep from their first batch on, for the largest one.

    vllm/model_executor/layers/fused_moe, TritonExperts.workspace_shapes: [tokens, top k, max(inner, hidden)] and
    [tokens, top k, max(2 inner, hidden)]; vllm/v1/worker/workspace.py keeps them. The mxfp4 kernels need none of it.
    """
    if not model.experts or model.model_type == "gpt_oss":
        return 0.0
    spread = 1 if choices.expert_parallel.value else choices.tensor_parallel_size.value
    inner, hidden = model.moe_intermediate_size / spread, model.hidden_size
    rows = choices.max_num_batched_tokens.value * model.experts_per_token
    return rows * (max(inner, hidden) + max(2 * inner, hidden))


def _sampler(facts: Facts, choices: Choices) -> float:
    """Bytes of logits in the model's dtype and of their float32 copies, all of the vocabulary on every rank."""
    model, behaviour, seqs = facts.model.architecture, facts.calibration.memory, choices.max_num_seqs.value
    first = model_runner(facts, choices) == "V1"
    copies = (behaviour.sampler_copies_v1 if first else behaviour.sampler_copies_v2).value
    kept = min(behaviour.sampler_buffer_v1.value, seqs) * 4 if first else 0.0
    return model.vocab_size * (seqs * (copies * 4 + SERVED_BYTES[choices.dtype.value]) + kept)


def _sampler_state(facts: Facts, choices: Choices, stage: int) -> float:
    """Bytes of what the second runner's sampler keeps of every sequence, from the version on that counts it."""
    if model_runner(facts, choices) == "V1" or not _is_last(choices, stage):
        return 0.0
    elements = choices.max_num_seqs.value * facts.model.architecture.vocab_size
    return facts.calibration.memory.sampler_state_v2.value * elements
