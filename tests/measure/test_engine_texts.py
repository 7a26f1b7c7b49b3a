"""profiles/engines/failures.json and log_lines.json, held against the texts of vLLM's sources as recorded from them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from deployc.data import pages
from deployc.facts.catalogue.history import release
from deployc.facts.engine import versions
from deployc.measure.doctor.log.table import Failure, table
from deployc.spec.keys import MEANING

HERE = Path(__file__).resolve().parent
TEXTS: list[dict[str, Any]] = json.loads((HERE / "data" / "engine_texts.json").read_bytes())["texts"]
ROWS = table().failures
KEY = re.compile(r"\b(?:model|engine|quantization|hardware|workload|target|api|rollout)\.[a-z_]+")


def first(text: str) -> Failure | None:
    """The row that tells of a text: the first that matches one of its lines."""
    return next((row for row in ROWS if any(row.pattern.search(line) for line in text.split("\n"))), None)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_matches_the_engines_own_text(row: Failure) -> None:
    """At the ends of its interval of versions, as the sources have it; those of others say whose they are."""
    recorded = [text for text in TEXTS if text["row"] == row.name]
    assert all(any(row.pattern.search(line) for line in text["text"].split("\n")) for text in recorded)
    assert bool(recorded) == row.source.startswith("vllm/")
    if recorded:
        assert row.source in {f"{text['at']} ({text['version']})" for text in recorded}
        seen = sorted(release(text["version"]) for text in recorded)
        assert not row.since or seen[0] == release(row.since)
        assert not row.until or seen[-1] < release(row.until)


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: f"{text['row']}-{text['version']}")
def test_a_text_is_told_under_its_own_rows_code(text: dict[str, Any]) -> None:
    """No row above takes it for something else."""
    found, own = first(text["text"]), next(row for row in ROWS if row.name == text["row"])
    assert found is not None
    assert found.code == own.code or found.name == "json-quotes"  # a placeholder begins as a JSON value does


def test_no_pattern_can_take_more_than_linear_time() -> None:
    """Each repetition is bounded, and none is repeated; so a line costs its length times a constant."""
    marks = [*table().others.values(), table().vllm, table().start, table().serving, table().died, table().stopped]
    shapes = [row.pattern for row in ROWS] + [row.pattern for row in table().figures] + marks
    for shape in shapes:
        plain = re.sub(r"\\.|\[(?:\\.|[^\]\\])*\]", "x", shape.pattern)
        assert not re.search(r"[*+]|\{\d+,\}", plain), shape.pattern
        assert not re.search(r"\)(?:\{|\?\{)", plain), shape.pattern
        assert all(int(most) <= 12000 for most in re.findall(r",(\d+)\}", plain))


def test_rows_are_well_formed() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert [row.name for row in ROWS if not (pages() / f"{row.code}.md").is_file()] == []
    known = {release(version) for version in versions()}
    for row in ROWS:
        assert all(release(version) in known for version in (row.since, row.until) if version), row.name
        named = [key for key in KEY.findall(row.fix) if key not in ("engine.args", "engine.env")]
        assert [key for key in named if key not in MEANING] == [], row.name


FIGURES = [
    ("GPU KV cache size: 126,256 tokens", {"kv_cache_tokens": "126,256"}),
    ("CPU KV cache size: 1,638,400 tokens, Maximum concurrency for 200 tokens per request: 8192.00x",
     {"kv_cache_tokens": "1,638,400", "max_model_len": "200", "max_concurrency": "8192.00"}),
    ("# cuda blocks: 459, # CPU blocks: 512", {"gpu_blocks": "459"}),
    ("Model loading took 14.4084 GiB and 8.412345 seconds", {"weights_gib": "14.4084", "load_s": "8.412345"}),
    ("Model loading took 14.25 GiB memory and 6.2 seconds", {"weights_gib": "14.25", "load_s": "6.2"}),
    ("Graph capturing finished in 22 secs, took 0.89 GiB", {"graph_s": "22", "graphs_gib": "0.89"}),
    ("init engine (profile, create kv cache, warmup model) took 30.20 s (compilation: 9.00 s)", {"init_s": "30.20"}),
    ("init engine (profile, create kv cache, warmup model) took 30.20 seconds", {"init_s": "30.20"}),
    ("vLLM API server version 0.10.1.1", {"version": "0.10.1.1"}),
    ("vLLM server version 0.30.0, serving model x", {"version": "0.30.0"}),
    ("  █▄█▀ █     █     █     █  version 0.32.0", {"version_of_banner": "0.32.0"}),
    ("Using Flash Attention backend on V1 engine.", {"attention_backend": "Flash Attention"}),
    ("Using FLASH_ATTN attention backend out of potential backends: ['FLASH_ATTN']",
     {"attention_backend": "FLASH_ATTN"}),
    ("Available KV cache memory: -1.32 GiB", {"kv_cache_gib": "-1.32"}),
    ("Free memory on device cuda:0 (44.27/79.15 GiB) on startup is less than desired GPU memory utilization (0.9, "
     "71.24 GiB).",
     {"free_gib": "44.27", "total_gib": "79.15", "gpu_memory_utilization": "0.9", "wanted_gib": "71.24"}),
    ("To serve at least one request with the model's max seq len (32768), (1.75 GiB KV cache is needed, which is "
     "larger than the available KV cache memory (0.97 GiB).",
     {"max_model_len": "32768", "kv_needed_gib": "1.75", "kv_cache_gib": "0.97"}),
    ("the estimated maximum model length is 18144.", {"longest_context": "18144"}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "read"), FIGURES, ids=[text[:40] for text, _ in FIGURES])
def test_figures_are_read_from_lines_of_old_and_new_versions(text: str, read: dict[str, str]) -> None:
    found = [
        match.groupdict() for shape in table().figures if shape.has in text and (match := shape.pattern.search(text))
    ]
    said = {name: value for groups in found for name, value in groups.items() if value is not None}
    assert said == read
