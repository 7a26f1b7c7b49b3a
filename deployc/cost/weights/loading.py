"""What the engine's line "Model loading took … GiB" counts beside the parameters, by name.

The line is torch's allocated bytes after loading less those before (vllm/utils/mem_utils.py, DeviceMemoryProfiler;
vllm/platforms/cuda.py, get_current_memory_usage, 0.25.1): buffers count, and so does what the allocator gives away
with a block.
"""

from __future__ import annotations

from dataclasses import dataclass

from deployc.cost.latent import expanded_width
from deployc.cost.parallel import round_up, stage_layers, stages
from deployc.cost.weights.held import held
from deployc.cost.weights.rotary import rotary_tables
from deployc.types.choices import Choices
from deployc.types.facts import Facts

MIB = 2**20
SMALL, BLOCK, LARGE, SEGMENT = MIB, 512, 10 * MIB, 2 * MIB
"""c10/cuda/CUDACachingAllocator.cpp of PyTorch 2.x: kSmallSize, kMinBlockSize, kMinLargeAlloc, kRoundLarge."""
ATTENTION_SCALARS = 7
"""_q_scale, _k_scale, _v_scale, _prob_scale and three ranges of each layer (vllm/model_executor/layers/attention/)."""
WORKSPACE = 1024
"""An int32 a multiprocessor for each Marlin layer (…/quantization/utils/marlin_utils.py, marlin_make_workspace_new)."""
MARLIN = ("qweight", "weight_packed")


@dataclass(frozen=True, slots=True)
class Part:
    """Something beside the parameters, with its bytes on the rank."""

    name: str
    bytes: int


@dataclass(frozen=True, slots=True)
class _Lost:
    """As `Placed`: what blocks have beyond their tensors."""

    bytes: int
    count: int
    layers: tuple[int, ...]
    place: str


def loading_gap(facts: Facts, choices: Choices, stage: int | None = None) -> tuple[Part, ...]:
    """The parts by which the logged figure exceeds the parameters of a pipeline stage, without one the fullest.

    None on the CPU engine, which logs no such line.
    """
    if facts.smallest.name == "cpu":
        return ()
    parts = held(facts, choices)
    pipeline, arch = choices.pipeline_parallel_size.value, facts.model.architecture
    by_stage = stages(parts, arch.layers, pipeline)
    at = by_stage.index(max(by_stage)) if stage is None else stage
    unsplit = facts.calibration.memory.load_unsplit_from
    lost = [_Lost(allocated(p.bytes, unsplit) - p.bytes, p.count, p.layers, p.place) for p in parts]
    tables = [allocated(size, unsplit) for size in rotary_tables(facts, choices)]
    layers = stage_layers(arch.layers, pipeline)[at]
    attending = sum(len(c.layers) for c in arch.caches if c.kind != "state") * layers // arch.layers
    marlin = sum(p.count for p in parts if p.name.endswith(MARLIN)) * layers // arch.layers
    named = [
        Part("rotary tables", sum(tables)),
        Part("allocator segments", stages(lost, arch.layers, pipeline)[at]),
        Part("absorbed projections", absorbed(facts, choices) * layers // arch.layers),
        Part("attention scales", ATTENTION_SCALARS * BLOCK * attending),
        Part("kernel workspaces", WORKSPACE * marlin),
    ]
    return tuple(part for part in named if part.bytes)


def allocated(size: int, unsplit: int = 0) -> int:
    """Bytes of the block that a tensor gets.

    Blocks are multiples of 512 B. From 10 MiB on a tensor has a segment of its own, a multiple of 2 MiB: what is left
    of it stays with the block where it is no more than 1 MiB, or where the engine forbids to split blocks of that size
    while it loads (`unsplit`, bytes; 0 = it does not).
    """
    block = round_up(size, BLOCK)
    if size < LARGE:
        return block
    segment = round_up(size, SEGMENT)
    whole = segment - block <= SMALL or (0 < unsplit <= size)
    return segment if whole else block


def absorbed(facts: Facts, choices: Choices) -> int:
    """MLA: kv_b_proj once more in 16 bit, as W_UK_T and W_UV (vllm/model_executor/layers/attention/mla_attention.py,
    process_weights_after_loading). Of a 16-bit layer the sources show views, and only older versions log copies."""
    arch, text = facts.model.architecture, facts.model.language_config
    copied = facts.calibration.memory.latent_copies or bool(facts.model.quantization)
    if not copied or all(cache.kind != "mla" for cache in arch.caches):
        return 0
    each = expanded_width(facts, choices) * text["kv_lora_rank"]
    return int(each * 2 * sum(len(c.layers) for c in arch.caches if c.kind == "mla"))
