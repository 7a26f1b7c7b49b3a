"""A row -> the engine start that the cost model is asked about: facts, choices, and what had to be assumed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, TypeVar

from deployc.cost.batch import batch_defaults
from deployc.cost.kv_cache import keeps_prefixes
from deployc.cost.kv_cache.element import ELEMENT_BYTES
from deployc.facts import engine
from deployc.facts.calibration import calibration
from deployc.facts.catalogue.history import release
from deployc.facts.faults import Fault
from deployc.facts.model import from_config
from deployc.measure.calibrate.card import Card, card
from deployc.measure.calibrate.config import KINDS, Unknown, config_json, released
from deployc.measure.calibrate.quantized import quantization_config
from deployc.measure.calibrate.rows import Row
from deployc.types.choices import Choice, Choices
from deployc.types.facts import EngineFacts, Facts, ModelFacts

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Start:
    """What is predicted, and how sure its inputs are.

    `assumed` are inputs that the row does not give and that a default stands in for; `missing` are inputs for which
    nothing can stand in, with the reason: what rests on them is not predicted. `notes` say all of it in words.
    """

    facts: Facts
    choices: Choices
    card: str  # family of the card: "H100"; "" where the row names none
    assumed: frozenset[str]
    missing: Mapping[str, str]
    notes: tuple[str, ...]
    warm: bool = False  # the compile cache was filled before


@dataclass(slots=True)
class _Told:
    """Collects what was put in for what the row leaves open."""

    assumed: set[str] = field(default_factory=set)
    missing: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def default(self, key: str, given: T | None, value: T, why: str, needs: str = "") -> Choice[T]:
        """The row's own value, else `value` with a note; unknown where it follows from an unknown input."""
        if given is not None:
            return Choice(given, "row")
        if needs in self.missing:
            self.missing[key] = f"{key}: not in the row, and its default follows from {self.missing[needs]}"
        self.assumed.add(key)
        self.notes.append(f"{key} {value}: {why}")
        return Choice(value, "default", why)


def start(row: Row) -> Start:
    """The start that the row describes. Raises Unknown: nothing of it can be predicted, and why."""
    told = _Told(notes=list(row.notes))
    model = _model(row, told)
    known, version = _engine(row, told)
    of_card = card(row)
    told.notes += of_card.notes
    if of_card.assumed:
        told.assumed.add("card")
    if of_card.missing:
        told.missing["card"] = of_card.missing
    choices = _choices(row, model, known, version, of_card, told)
    cards = choices.tensor_parallel_size.value * choices.pipeline_parallel_size.value
    facts = Facts(model, (), (of_card.facts,) * cards, known, locked=True, calibration=calibration(version))
    if row.warm:
        told.notes.append("the compile cache was warm: beside the model's figure for a warm one")
    if choices.pipeline_parallel_size.value > 1:
        told.notes.append("of a pipeline the first stage is logged: beside the model's figures for that stage")
    return Start(facts, choices, of_card.family, frozenset(told.assumed), told.missing, tuple(told.notes), row.warm)


def _model(row: Row, told: _Told) -> ModelFacts:
    config = config_json(row)
    quantization, notes, assumed = quantization_config(row, config)
    told.notes += [*config.notes, *notes]
    told.assumed |= config.assumed | ({"quantization"} if assumed else set())
    values = dict(config.values) | ({"quantization_config": quantization} if quantization else {})
    try:
        return from_config(
            values, source=row.model or "org/model", hub="huggingface", provenance=row.id, chat_template=False
        )
    except Fault as wrong:
        raise Unknown(f"model_config: {wrong.diagnostic.summary}: {wrong.diagnostic.detail}") from None


def _engine(row: Row, told: _Told) -> tuple[EngineFacts, str]:
    """The catalogue of the row's version, else of the nearest; and the version whose use of memory is asked for.

    What changed in memory is known from version to version, so that the row's own is asked for where it names one.
    Another patch of the same minor version is no assumption.
    """
    said = row.version or next(iter(re.findall(r"v?0\.\d+\.\d+", row.said)), None) or _of_thread(row.source)
    version = _nearest(said, engine.versions())
    if version != row.version:
        of = f"vLLM {said}" if said else "an unknown version"
        memory = ", in memory as itself" if said and release(said) else ""
        told.notes.append(
            f"{of}, of the row's words or time" if said == version else f"{of} taken as {version}{memory}"
        )
    if row.version is None or release(row.version)[:2] != release(version)[:2]:
        told.assumed.add("version")
    facts = _loaded(version)
    own = said if said and release(said) else version
    return facts if row.block_size is None else replace(facts, block_size=row.block_size), own


def _of_thread(source: str) -> str | None:
    """The release before an issue or pull request of vLLM itself was opened, by its number.

    Numbers of threads at releases are in profiles/calibration/families.json.
    """
    number = re.search(r"github\.com/vllm-project/vllm/(?:pull|issues)/(\d{1,9})", source)
    if number is None:
        return None
    return max(last for last in released()["threads"] if last[0] <= int(number[1]))[1]  # type: ignore[no-any-return]


def _nearest(said: str | None, known: tuple[str, ...]) -> str:
    """The nearest by minor version, then by patch; the newest where the row names none."""
    wanted = release(said) if said else ()
    if not wanted:
        return known[-1]
    return min(known, key=lambda version: [abs(a - b) for a, b in zip(release(version), wanted, strict=False)])


@cache
def _loaded(version: str) -> EngineFacts:
    return engine.load(version)


def _choices(row: Row, model: ModelFacts, known: EngineFacts, version: str, of_card: Card, told: _Told) -> Choices:
    asked = Facts(model, (), (of_card.facts,), known, locked=True, calibration=calibration(version))
    positions = model.architecture.max_position_embeddings
    length = told.default("max_model_len", row.max_model_len, positions, "the model's positions")
    old = release(version) < release(released()["before_v1"]["until"])
    tokens, seqs = _before_v1(length.value) if old else batch_defaults(_one_card(model, of_card, known))
    why, needs = ("the default before V1", "") if old else (f"vLLM {known.version}'s default on this card", "card")
    tp = told.default("tensor_parallel_size", row.tensor_parallel_size, row.cards or 1, "as many as cards are named")
    many = told.default("max_num_seqs", row.max_num_seqs, min(seqs, row.max_num_batched_tokens or seqs), why, needs)
    batch = told.default(
        "max_num_batched_tokens", row.max_num_batched_tokens, min(tokens, many.value * length.value), why, needs
    )
    share = told.default(
        "gpu_memory_utilization", row.gpu_memory_utilization, known.gpu_memory_utilization,
        f"vLLM {known.version}'s default")  # fmt: skip
    slots = row.max_loras is not None and row.max_lora_rank is not None
    dtype = KINDS.get(row.dtype or "", model.architecture.dtype)
    return Choices(
        weights=Choice("checkpoint" if model.config.get("quantization_config") else "none", "row"),
        dtype=Choice(dtype, "row" if row.dtype else "default"),
        adapter_mode=Choice("serve" if slots else "none", "row"),
        kv_cache_dtype=_kv_cache_dtype(row, dtype, told),
        tensor_parallel_size=tp,
        replicas=Choice(1, "default"),
        max_model_len=length,
        max_num_seqs=many,
        max_num_batched_tokens=batch,
        gpu_memory_utilization=share,
        enforce_eager=Choice(bool(row.enforce_eager), "row" if row.enforce_eager is not None else "default"),
        enable_prefix_caching=Choice(keeps_prefixes(asked), "default")
        if row.enable_prefix_caching is None
        else Choice(row.enable_prefix_caching, "row"),
        pipeline_parallel_size=Choice(row.pipeline_parallel_size or 1, "row"),
        data_parallel_size=Choice(row.data_parallel_size or 1, "row"),
        expert_parallel=Choice(row.expert_parallel, "row"),
        max_lora_rank=_optional(row.max_lora_rank),
        max_loras=_optional(row.max_loras),
    )


def _one_card(model: ModelFacts, of_card: Card, known: EngineFacts) -> Facts:
    return Facts(model, (), (of_card.facts,), known, locked=True)


def _before_v1(length: int) -> tuple[int, int]:
    """Tokens and sequences of a step: whole prompts, and chunks where a prompt may be long (vLLM before 0.8)."""
    old = released()["before_v1"]
    chunk: int = old["least_tokens"]
    return max(chunk, length) if length <= old["longest_whole"] else chunk, old["max_num_seqs"]


def _kv_cache_dtype(row: Row, dtype: str, told: _Told) -> Choice[str]:
    """ "auto" also where the row names the model's own type, and where its word is none that is known."""
    said = row.kv_cache_dtype
    if said is not None and said != "auto" and KINDS.get(said, said) not in ELEMENT_BYTES:
        told.missing["kv_cache_dtype"] = f"kv_cache_dtype: {said} is not known"
        return Choice("auto", "default")
    return Choice("auto" if said is None or KINDS.get(said, said) == dtype else said, "row" if said else "default")


def _optional(value: Any) -> Choice[Any] | None:
    return None if value is None else Choice(value, "row")
