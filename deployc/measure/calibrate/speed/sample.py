"""A speed row -> a sample: what is predicted, the load, and what was measured of it. Fit and score begin here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from deployc.cost.engine import engine
from deployc.cost.kv_cache import layout
from deployc.cost.memory import memory
from deployc.cost.simulate import Load, Outcome
from deployc.cost.speed_basis import SpeedBasis, kinds
from deployc.cost.step import kernel
from deployc.measure.calibrate.config import Unknown
from deployc.measure.calibrate.score import NotScored
from deployc.measure.calibrate.speed.load import load
from deployc.measure.calibrate.speed.row import SpeedRow
from deployc.measure.calibrate.start import Start, start
from deployc.types.choices import Choices
from deployc.types.facts import Facts
from deployc.types.figure import Figure, exact

CLEAN = 0.02
"""Share of the prompts' tokens up to which the prefix cache is no part of a figure: less than the noise of TTFT."""
MOST_STEPS = 500_000
"""Steps that the prompts alone would take; a simulation of more is not waited for."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One run that can be predicted. Plain values: it can be pickled."""

    id: str
    file: str
    line: int
    config: str  # rows of one configuration share an engine start
    model: str
    card: str  # family: "H200"
    version: str
    facts: Facts
    choices: Choices
    available: Figure  # bytes of KV cache on a card, as the row has them or as predicted
    load: Load
    measured: Mapping[str, float]  # s, 1/s
    kinds: frozenset[str]  # what a fit must have seen to know it
    served: bool  # through the HTTP server
    alone: bool  # no other engine was on the machine
    notes: tuple[str, ...] = ()

    @property
    def longest(self) -> int:
        """Tokens of the longest request, prompt and answer."""
        return max(map(sum, zip(self.load.inputs, self.load.outputs, strict=True)))

    @property
    def one_stream(self) -> bool:
        """Whether one request was in flight at a time."""
        return self.load.concurrency == 1

    @property
    def group(self) -> str:
        """ "H200, vLLM 0.25.1, bf16, experts": the kernel of its products first."""
        first = kernel(self.facts, self.choices)
        return ", ".join([self.card or "unnamed card", f"vLLM {self.version}", first, *sorted(self.kinds - {first})])


def samples(rows: Iterable[SpeedRow]) -> tuple[list[Sample], list[NotScored]]:
    """Every row in one list or the other; none stops the others."""
    made: list[Sample] = []
    left: list[NotScored] = []
    for row in rows:
        try:
            made.append(sample(row))
            continue
        except Unknown as unknown:
            reason = str(unknown)
        except Exception as wrong:  # a fault of ours on one row is listed with it; the others are scored
            reason = f"deployc failed on this row: {type(wrong).__name__}: {wrong}"
        left.append(NotScored(row.start.id, row.start.file, row.start.line, tuple(row.measured), reason))
    return made, left


def sample(row: SpeedRow) -> Sample:
    """Raises Unknown: it cannot be predicted, and why."""
    if not row.measured:
        raise Unknown("nothing that is predicted was measured")
    shared = row.load.get("shared_prefix")
    if row.clean is False and not row.cached_share and row.start.said:
        raise Unknown(f"clean: {row.start.said}")
    if row.clean is False or (not shared and (row.cached_share or 0) > CLEAN):
        share = "some" if row.cached_share is None else f"{row.cached_share:.1%}"
        raise Unknown(f"clean: {share} of the prompt tokens were in the prefix cache, from earlier runs")
    begun = start(row.start)
    if begun.missing:
        raise Unknown(next(iter(begun.missing.values())))
    notes = list(begun.notes)
    asked = load(row.load, notes)
    _check(asked, begun.choices)
    available = _available(row, begun)
    if available.value <= 0:
        notes.append("the memory model leaves no KV cache: simulated with one request at a time")
    if row.start.said:
        notes.append(f"the row: {row.start.said}")
    return Sample(
        id=row.start.id,
        file=row.start.file,
        line=row.start.line,
        config=row.config,
        model=row.start.model,
        card=begun.card,
        version=row.start.version or begun.facts.engine.version,
        facts=begun.facts,
        choices=begun.choices,
        available=available,
        load=asked,
        measured=row.measured,
        kinds=frozenset(kinds(begun.facts, begun.choices)),
        served=row.served,
        alone=row.alone,
        notes=tuple(notes),
    )


def _available(row: SpeedRow, begun: Start) -> Figure:
    """Bytes of KV cache on a card: as the engine had them where it is known, else as the memory model has them."""
    if row.blocks:
        return exact(float(row.blocks * layout(begun.facts, begun.choices).block_bytes), "B")
    if row.kv_bytes:
        return exact(row.kv_bytes, "B")
    return memory(begun.facts, begun.choices)[0].kv_cache


def _check(asked: Load, choices: Choices) -> None:
    """What an engine with these limits can have served, and what is simulated in a moment."""
    longest = max(map(sum, zip(asked.inputs, asked.outputs, strict=True)))
    if longest > choices.max_model_len.value:
        raise Unknown(f"load: a request of {longest:,} tokens, and max_model_len is {choices.max_model_len.value:,}")
    steps = sum(asked.inputs) / choices.max_num_batched_tokens.value
    if steps > MOST_STEPS:
        raise Unknown(f"load: its prompts take {steps:,.0f} steps, and at most {MOST_STEPS:,} are simulated")


def serve(of: Sample, basis: SpeedBasis, available: float | None = None) -> Outcome:
    """What the model says of a run under these constants; `available` in place of the predicted bytes of KV cache."""
    room = of.available.value if available is None else available
    return engine(of.facts, of.choices, basis, room, of.longest, served=of.served).serve(of.load)
