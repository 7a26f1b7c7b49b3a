"""Input and output embeddings that are one tensor: whether a merge keeps them so, and what each becomes.

transformers and peft have one parameter for both while an adapter is trained; what the adapter does to one module
(LoRA, a trained copy) it does to that alone. So they stay one tensor only where both become the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from deployc.cost.weights.names import EMBEDDINGS, OUTPUTS
from deployc.rules.adapter_shapes.names import named
from deployc.types.architecture import Architecture
from deployc.types.merging import Part

ALWAYS_TIED = ("cohere", "cohere2", "gemma2", "gemma3n", "gemma3n_text", "lfm2", "lfm2_moe", "zamba2")
"""Model types of which the engine takes the embedding as output whatever config.json says (vllm/model_executor/models/
commandr.py, gemma2.py, gemma3n.py, lfm2.py, lfm2_moe.py, zamba2.py, 0.32.0)."""

Shapes = Mapping[str, tuple[int, ...]]
Same = Callable[[Part, Part], bool]
"""Whether a part of the input embedding and one of the output's do the same."""


@dataclass(frozen=True, slots=True)
class Tie:
    """The checkpoint's names of both; `tied`: they are one parameter. `stored`: it has a tensor for the output too."""

    embedding: str
    output: str
    tied: bool
    stored: bool


def tie(base: Shapes, architecture: Architecture) -> Tie | None:
    """The language model's embeddings; None where the checkpoint names none of that size."""
    rows = architecture.vocab_size
    both = {ends: _named(base, ends, rows) for ends in (EMBEDDINGS, OUTPUTS)}
    embedding, output = both[EMBEDDINGS], both[OUTPUTS]
    if embedding is None:
        return None
    tied = architecture.tie_word_embeddings
    if output is None and not tied:
        return None
    return Tie(embedding, output or _output(embedding), tied, output is not None)


def _named(base: Shapes, ends: Sequence[str], rows: int) -> str | None:
    found = [n for n in base if n.removesuffix(".weight").rpartition(".")[2] in ends and n.endswith(".weight")]
    sized = [n for n in found if base[n][:1] == (rows,) and ".mtp" not in f".{n}"]
    return min(sized or found, key=lambda n: (n.count("."), n), default=None)


def _output(embedding: str) -> str:
    """How transformers names the output that a checkpoint of tied embeddings leaves out."""
    if embedding.rpartition(".weight")[0].endswith("embed_in"):
        return "embed_out.weight"
    return "language_model.lm_head.weight" if embedding.startswith("language_model.") else "lm_head.weight"


def by_construction(config: Mapping[str, Any]) -> Same:
    """What headers tell: peft saves a tied pair twice, and keeps both alike where it was told to."""
    saved = config.get("modules_to_save") or ()

    def same(one: Part, other: Part) -> bool:
        if config.get("ensure_weight_tying") or one.kind == "base" == other.kind or one.kind == "rows":
            return True
        modules = [p.tensor.removesuffix(".weight") for p in (one, other)]
        return one.kind == "whole" and not any(named(saved, module) for module in modules)

    return same


def stays_tied(pair: Tie, parts: Sequence[Part], same: Same) -> bool:
    """Whether one adapter leaves both alike. New values of tokens are of both, as peft keeps them so in training."""
    of_embedding = [part for part in parts if part.tensor == pair.embedding]
    of_output = [part for part in parts if part.tensor == pair.output]
    if not of_output:
        return all(part.kind == "rows" for part in of_embedding)
    alike = len(of_embedding) == len(of_output) and all(
        one.kind == other.kind and one.index == other.index and one.factor == other.factor
        for one, other in zip(of_embedding, of_output, strict=True)
    )
    return alike and all(same(one, other) for one, other in zip(of_embedding, of_output, strict=True))


def settled(pair: Tie, parts: Sequence[Part], kept: bool) -> list[Part]:
    """The parts of one adapter, where both stay one tensor or become two.

    Kept: what is done to the embedding is done to a stored copy too. Not kept: an embedding that the adapter was
    trained on in place of the model's was that of both.
    """
    others = [part for part in parts if part.tensor not in (pair.embedding, pair.output)]
    of_embedding = [part for part in parts if part.tensor == pair.embedding]
    of_output = [part for part in parts if part.tensor == pair.output]
    if kept:
        copied = [replace(part, tensor=pair.output) for part in of_embedding] if pair.stored else []
        return [*others, *of_embedding, *copied]
    based = [part for part in (*of_embedding, *of_output) if part.kind == "base"][:1]
    for own, tensor in ((of_embedding, pair.embedding), (of_output, pair.output)):
        if based and not any(part.kind in ("base", "whole") for part in own):
            own[:0] = [replace(based[0], tensor=tensor)]
    return [*others, *of_embedding, *of_output]
