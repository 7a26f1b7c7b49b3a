"""One measured start, the two formats of rows brought to the same names.

A value of the wrong type is left out and noted: a row is never refused for one bad cell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from deployc.measure.calibrate.cells import Cells
from deployc.types.facts import MOST_CARDS

Kind = Literal["own starts", "full logs", "tables", "threads"]
"""How much can be trusted: the engine's own breakdown, a whole log, a table in a document, figures quoted somewhere."""

PUBLISHED = (
    "weights_gib", "activation_peak_gib", "non_torch_gib", "total_non_kv_gib", "cudagraph_gib",
    "cudagraph_estimated_gib", "kv_cache_gib", "kv_cache_tokens", "num_gpu_blocks", "max_concurrency",
)  # fmt: skip
"""Quantities by their names in the rows of others, which are the names of the score."""
OWN = {
    "weights_gib": "weights_gib", "activation_peak_gib": "activation_peak_gib", "non_torch_gib": "non_torch_gib",
    "non_kv_gib": "total_non_kv_gib", "cudagraph_actual_gib": "cudagraph_gib",
    "cudagraph_estimated_gib": "cudagraph_estimated_gib", "available_kv_gib": "kv_cache_gib",
    "kv_tokens": "kv_cache_tokens", "max_concurrency_at_max_len": "max_concurrency", "requested_gib": "budget_gib",
}  # fmt: skip
"""Names in the rows of own starts -> those of the score."""
ALSO = {"usable_gib": "budget_gib", "consumed_weights_plus_non_torch_gib": "weights_and_non_torch_gib"}
"""What some rows of others have besides."""
PREDICTED = frozenset(
    {"enable_lora", "max_loras", "max_lora_rank", "max_num_seqs", "max_num_batched_tokens", "max_model_len",
     "gpu_memory_utilization", "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size",
     "enable_expert_parallel", "enforce_eager", "kv_cache_dtype", "quantization", "dtype", "block_size"}
)  # fmt: skip
"""Arguments of the engine that the prediction follows; others of an own start are noted."""


@dataclass(frozen=True, slots=True)
class Row:
    """What was started and what was seen; None = the row does not say. Sizes in GiB, lengths in tokens."""

    id: str
    file: str
    line: int
    kind: Kind
    model: str
    family: str
    config: Mapping[str, Any] | None  # config.json, or the shape out of it
    recalled: bool  # the config is from memory, not from a file
    quantization: str | None
    version: str | None
    gpu: str | None  # as written, the count taken off
    cards: int | None
    total_gib: float | None
    tensor_parallel_size: int | None
    pipeline_parallel_size: int | None
    data_parallel_size: int | None
    expert_parallel: bool
    gpu_memory_utilization: float | None
    max_model_len: int | None
    max_num_seqs: int | None
    max_num_batched_tokens: int | None
    enforce_eager: bool | None
    dtype: str | None
    kv_cache_dtype: str | None
    block_size: int | None
    max_loras: int | None
    max_lora_rank: int | None
    warm: bool  # the compile cache was filled by an earlier start
    measured: Mapping[str, float]
    enable_prefix_caching: bool | None = None
    notes: tuple[str, ...] = ()
    said: str = ""  # the row's own note
    source: str = ""  # its address


def own_start(values: Mapping[str, Any], file: str, line: int) -> Row:
    """A row of `measured_h200_memory.jsonl` and its like: an engine start made to measure it."""
    cells = Cells(values)
    arguments = Cells(cells.object("engine_args"), cells.notes)
    said = cells.text("note") or ""
    config = dict(cells.object("model_config"))
    quantization = cells.text("quant") or arguments.text("quantization")
    if ("quantization_config not taken" in said or cells.text("quantization_seen") == "None") and (
        quantization or "quantization_config" in config
    ):
        config.pop("quantization_config", None)
        quantization = None
        cells.notes.append("the engine did not take the quantization: scored as 16 bit")
    if other := sorted(map(str, arguments.values.keys() - PREDICTED)):
        cells.notes.append(f"the prediction does not follow {', '.join(other)}")
    lora = bool(arguments.values.get("enable_lora"))
    return _row(
        cells, file, line, "own starts",
        config=config or None,
        quantization=quantization,
        version=cells.text("engine_version"),
        gpu=cells.text("gpu"), cards=cells.whole("gpus", MOST_CARDS),
        total_gib=cells.number("total_gib"),
        pipeline_parallel_size=cells.whole("pp", MOST_CARDS) or arguments.whole("pipeline_parallel_size", MOST_CARDS),
        data_parallel_size=cells.whole("dp", MOST_CARDS) or arguments.whole("data_parallel_size", MOST_CARDS),
        expert_parallel=bool(arguments.values.get("enable_expert_parallel")),
        enforce_eager=bool(cells.flag("enforce_eager") or arguments.flag("enforce_eager")),
        max_loras=(arguments.whole("max_loras") or 1) if lora else None,  # the engine's own defaults
        max_lora_rank=(arguments.whole("max_lora_rank") or 16) if lora else None,
        warm=cells.text("compile_cache") == "warm",
        measured=cells.measured(OWN),
    )  # fmt: skip


def published_start(values: Mapping[str, Any], file: str, line: int) -> Row:
    """A row of `vllm_memory_logs.jsonl` and its like: a start made by others, from a log, a table or a thread."""
    cells = Cells(values)
    basis = cells.text("basis") or ""
    kind: Kind = "full logs" if "full log" in basis else "tables" if "table" in basis else "threads"
    gpu, cards = _card(cells.text("gpu"))
    measured = cells.measured({name: name for name in PUBLISHED} | ALSO)
    about = re.fullmatch(r"~?\s*(\d+(?:\.\d+)?)\s*([kM]?)", cells.text("kv_cache_tokens_approx") or "")
    if about and "kv_cache_tokens" not in measured:
        measured["kv_cache_tokens"] = float(about[1]) * {"": 1, "k": 1e3, "M": 1e6}[about[2]]
        cells.notes.append(f"the row has {about[0]} tokens, rounded")
    return _row(
        cells, file, line, kind,
        config=dict(cells.object("model_config")) or None,
        quantization=cells.text("quantization"),
        version=cells.text("vllm_version"),
        gpu=gpu, cards=cards,
        total_gib=cells.number("gpu_total_gib"),
        pipeline_parallel_size=cells.whole("pp", MOST_CARDS),
        data_parallel_size=cells.whole("dp", MOST_CARDS),
        expert_parallel=values.get("enable_expert_parallel") is True,
        enforce_eager=cells.flag("enforce_eager"),
        max_loras=None, max_lora_rank=None,
        warm=cells.text("compile_cache") == "warm",
        measured=measured,
    )  # fmt: skip


def _row(cells: Cells, file: str, line: int, kind: Kind, **own: Any) -> Row:
    """What both formats call by one name; notes last, when every cell was looked at."""
    shared: dict[str, Any] = {
        "id": str(cells.values.get("id") or f"line {line}"),
        "model": cells.text("model") or "",
        "family": cells.text("family") or "",
        "recalled": cells.text("config_basis") == "recalled",
        "tensor_parallel_size": cells.whole("tp", MOST_CARDS),
        "gpu_memory_utilization": cells.number("gpu_memory_utilization"),
        "max_model_len": cells.whole("max_model_len"),
        "max_num_seqs": cells.whole("max_num_seqs"),
        "max_num_batched_tokens": cells.whole("max_num_batched_tokens"),
        "dtype": cells.text("dtype"),
        "kv_cache_dtype": cells.text("kv_cache_dtype"),
        "block_size": cells.whole("block_size"),
        "enable_prefix_caching": cells.flag("enable_prefix_caching"),
        "said": cells.text("note") or "",
        "source": cells.text("source") or "",
    }
    return Row(file=file, line=line, kind=kind, **shared, **own, notes=tuple(cells.notes))


def _card(written: str | None) -> tuple[str | None, int | None]:
    """ "2x RTX 3090 (NVLink)" and "RTX 3090 x2" -> "RTX 3090", 2."""
    if written is None:
        return None, None
    name = re.sub(r"\(.*?\)", "", written).strip()
    before, after = re.match(r"(\d{1,4})\s*[x×*]\s*", name), re.search(r"\s*[x×*]\s*(\d{1,4})$", name)
    if before:
        return name[before.end() :] or None, int(before[1])
    if after:
        return name[: after.start()] or None, int(after[1])
    return name or None, None
