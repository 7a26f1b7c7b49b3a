"""One measured run: an engine start, the load that it served and what users of it saw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from deployc.measure.calibrate.cells import Cells
from deployc.measure.calibrate.rows import Row, own_start

GIB = 2**30
RATES = {"out_tok_s": "tokens_per_second", "req_s": "requests_per_second"}
TIMES = {"ttft_ms": "ttft", "tpot_ms": "tpot", "e2e_ms": "e2e"}
PERCENTILES = ("p50", "p95")
QUANTITIES = (*RATES.values(), *(f"{name}_{of}" for name in TIMES.values() for of in PERCENTILES))
"""What is scored, by the names of the prediction: seconds and 1/s."""


def unit_of(quantity: str) -> str:
    """ "s" or "1/s", of one of QUANTITIES."""
    return "1/s" if quantity in RATES.values() else "s"


@dataclass(frozen=True, slots=True)
class SpeedRow:
    """What was run and what was seen; the load is as the row has it."""

    start: Row
    config: str  # rows of one configuration share a start
    load: Mapping[str, Any]
    measured: Mapping[str, float]  # by QUANTITIES: s, 1/s
    clean: bool | None  # no prompt met an earlier one's prefix in the cache; None = the row does not say
    cached_share: float | None  # of the prompts' tokens that were in it
    kv_bytes: float | None = None  # of KV cache on a card, where the row or its start says it
    blocks: int | None = None  # of KV cache, where the row says how many the engine had
    served: bool = False  # through the HTTP server, not in the process of the client
    alone: bool = True  # no other engine was on the machine, not even an idle one


def speed_row(values: Mapping[str, Any], file: str, line: int) -> SpeedRow:
    """A row of `h200_speed.jsonl` and its like. `engine_effective` is what the engine ran with, and goes first."""
    cells = Cells(values)
    asked, ran = cells.object("engine_args"), cells.object("engine_effective")
    measured = _measured(cells)
    clean, share = cells.flag("clean"), cells.number("repeated_prompt_cached_share")
    told = {**values, **{key: value for key, value in ran.items() if value is not None}}
    if values.get("tp") is None:
        told["tp"] = asked.get("tensor_parallel_size")
    start = _with_adapter(own_start(told, file, line), cells)
    start = replace(start, measured={}, notes=(*start.notes, *cells.notes))
    config = cells.text("config") or start.id.partition("/")[0]
    of_engine = Cells(ran, cells.notes)
    kv_bytes, blocks = of_engine.number("kv_cache_memory_bytes"), of_engine.whole("num_gpu_blocks")
    served = cells.flag("server") is True
    alone = cells.number("coresident_idle_engines") is None  # 0: the last of several that were started side by side
    return SpeedRow(start, config, cells.object("load"), measured, clean, share, kv_bytes, blocks, served, alone)


def with_memory(runs: Iterable[SpeedRow], starts: Iterable[Row]) -> list[SpeedRow]:
    """Runs with what their engine's start left for the KV cache: the start is named as the runs' configuration."""
    known = {(s.id, s.version): s.measured["kv_cache_gib"] * GIB for s in starts if "kv_cache_gib" in s.measured}
    return [
        run if run.kv_bytes or run.blocks else replace(run, kv_bytes=known.get((run.config, run.start.version)))
        for run in runs
    ]


def _measured(cells: Cells) -> dict[str, float]:
    found = cells.measured(RATES)
    for key, name in TIMES.items():
        of = Cells(cells.object(key), cells.notes).measured({part: f"{name}_{part}" for part in PERCENTILES})
        found |= {quantity: milliseconds / 1000 for quantity, milliseconds in of.items()}
    for name in [name for name, value in found.items() if value <= 0]:
        cells.notes.append(f"{name}: {found.pop(name):g} is no measured figure, left out")
    return {name: found[name] for name in QUANTITIES if name in found}


def _with_adapter(start: Row, cells: Cells) -> Row:
    """The adapter that requests name; the engine's own flags, where the row has them, tell its slots."""
    if not cells.object("lora"):
        return start
    adapter = Cells(cells.object("lora"), cells.notes)
    if adapter.flag("in_every_request") is False:
        cells.notes.append("lora.in_every_request: the prediction has an adapter in every request")
    rank = adapter.whole("rank")
    if start.max_lora_rank is not None or rank is None:
        return start
    return replace(start, max_lora_rank=rank, max_loras=adapter.whole("adapters") or 1)
