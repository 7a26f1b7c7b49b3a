"""The linear layers that our quantizer takes, as large as they are on one rank."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from deployc.cost.weights.formats import taken
from deployc.cost.weights.names import read
from deployc.cost.weights.shard import Ranks, shape_on_rank
from deployc.types.choices import Choices
from deployc.types.facts import Facts

GROUP_SIZES = (128, 64, 32)
"""Those of Marlin, Machete and the CPU's kernel (vLLM 0.32, quantization/utils/marlin_utils.py)."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Layers that are alike: outputs and inputs of one, on a rank. `joined` names the matrix that the engine holds it
    in, together with others (q, k and v)."""

    pattern: str  # of the module
    outputs: int
    inputs: int
    joined: str
    routed: bool  # experts


def cuts(facts: Facts, choices: Choices) -> Iterator[Cut]:
    """Every quantized layer of the checkpoint; row-parallel layers are cut along their inputs."""
    ranks, architecture = Ranks.of(facts, choices), facts.model.architecture
    for group in facts.model.tensors:
        if not taken(group, choices.ignore):
            continue
        name = read(group.pattern)
        outputs, inputs = shape_on_rank(group, name, architecture, facts.model.language_config, ranks)
        yield Cut(group.pattern.removesuffix(".weight"), outputs, inputs, name.of, name.routed)


def largest_group(layers: Iterable[Cut]) -> int | None:
    """The most inputs that may share a scale so that no group lies on two ranks; None where no size divides."""
    inputs = {layer.inputs for layer in layers}
    return next((size for size in GROUP_SIZES if not any(n % size for n in inputs)), None)


def indivisible(layers: Iterable[Cut], size: int) -> list[Cut]:
    """Layers whose inputs on a rank are no multiple."""
    return [layer for layer in layers if layer.inputs % size]


def rows(layers: Sequence[Cut]) -> dict[str, int]:
    """Outputs on a rank of each matrix that the engine holds, those joined in it added up."""
    joined: dict[str, dict[str, int]] = {}
    for layer in layers:
        joined.setdefault(layer.joined, {})[layer.pattern.rpartition(".")[2]] = layer.outputs
    return {name: sum(parts.values()) for name, parts in joined.items()}
