"""Figures of a log beside what a plan predicts of the same engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from deployc.measure.doctor.log.facts import Fact
from deployc.rules.case import Case
from deployc.types.figure import Figure

GIB = 2**30
SETTINGS = (
    "max_model_len", "max_num_seqs", "max_num_batched_tokens", "gpu_memory_utilization", "tensor_parallel_size",
    "pipeline_parallel_size", "data_parallel_size", "kv_cache_dtype", "dtype", "enforce_eager",
    "enable_prefix_caching", "max_lora_rank", "max_loras",
)  # fmt: skip
"""Choices of a plan that go by the engine's own name."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One figure of the log, and the plan's. `inside` says whether it lies within the plan's band."""

    name: str
    read: Fact
    predicted: Figure

    @property
    def inside(self) -> bool:
        """The log rounds: a hundredth of GiB, a token's page."""
        near = 0.01 * abs(self.predicted.value)
        return self.predicted.low - near <= self.read.value <= self.predicted.high + near  # type: ignore[operator]


@dataclass(frozen=True, slots=True)
class Unlike:
    """A setting that the engine of the log had, and the file has another."""

    name: str
    read: Fact
    written: str


def compared(facts: Mapping[str, Fact], case: Case) -> Iterator[Compared]:
    """Those figures that the log has and the plan predicts of the same thing, in the log's units."""
    prediction, cards = case.prediction, case.choices.tensor_parallel_size.value
    cards *= case.choices.pipeline_parallel_size.value
    bill, length = prediction.memory, facts.get("max_model_len")
    known = {
        "total_gib": _gib(bill.total),
        "weights_gib": _gib(bill.weights),
        "graphs_gib": _gib(bill.cuda_graphs),
        "kv_cache_gib": _gib(bill.kv_cache),
        "kv_cache_tokens": prediction.kv_cache_tokens,
        "longest_context": prediction.usable_kv_cache_tokens,
    }
    if length is not None and isinstance(length.value, float):
        known["kv_needed_gib"] = _scaled(prediction.kv_bytes_per_token, length.value / cards / GIB, "GiB")
        if length.value == case.choices.max_model_len.value:
            known["max_concurrency"] = prediction.max_concurrency
    for name, figure in known.items():
        if (fact := facts.get(name)) is not None and isinstance(fact.value, float):
            yield Compared(name, fact, figure)


def unlike(facts: Mapping[str, Fact], case: Case) -> Iterator[Unlike]:
    """Flags that the log names, and the version, where they are others than the file's."""
    version = facts.get("version")
    if version is not None and version.value != case.facts.engine.version:
        yield Unlike("engine.version", version, case.facts.engine.version)
    for name in SETTINGS:
        said = facts.get(f"args.{name}") or facts.get(name)
        choice = getattr(case.choices, name)
        if said is None or choice is None:
            continue
        if _plain(said.value) != _plain(choice.value):
            yield Unlike(name, said, str(choice.value))


def _plain(value: object) -> object:
    """1, 1.0, "1" and True are told apart from other values only."""
    try:
        return float(str(value))
    except ValueError:
        return str(value).lower().replace("half", "float16")


def _gib(figure: Figure) -> Figure:
    return _scaled(figure, 1 / GIB, "GiB")


def _scaled(figure: Figure, by: float, unit: str) -> Figure:
    return Figure(figure.value * by, figure.low * by, figure.high * by, unit, figure.basis)
