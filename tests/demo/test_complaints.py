"""The complaints that the examples are made from: each figure of the answer is in the plan, as people read it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from deployc import pipeline
from deployc.views import text

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
GIB = 2**30


def planned(path: Path) -> tuple[Mapping[str, Any], str]:
    """The document, and the plan as it is printed, on one line."""
    analysis = pipeline.compile(path, offline=True, env={})
    document = pipeline.plan_of(analysis).document
    return document, " ".join(text.plan(document, analysis.report, file=path.name).split())


def advice(document: Mapping[str, Any], code: str) -> str:
    """Detail and fix of the one finding with that code."""
    (found,) = [d for d in document["diagnostics"] if d["code"] == code]
    return f"{found['detail']} {found['fix']}"


def changed(example: str, tmp_path: Path, old: str, new: str) -> Path:
    """An example with one text replaced, beside its lockfile."""
    source, target = EXAMPLES / example, tmp_path / "deploy.yaml"
    assert old in source.read_text()
    target.write_text(source.read_text().replace(old, new))
    pipeline.lock_path(target).write_text(pipeline.lock_path(source).read_text())
    return target


def test_a_7b_with_an_adapter_fits_a_4090_and_is_bound_by_its_bandwidth() -> None:
    document, printed = planned(EXAMPLES / "qwen2.5-7b-lora-rtx4090" / "deploy.yaml")
    prediction = document["prediction"]
    assert "FP16 (16-bit weights, bfloat16) fits on 24 GB" in printed
    assert "14.2 GiB of parameters" in printed
    assert 5.5 * GIB < prediction["memory"]["kv_cache"]["value"] < 6.5 * GIB
    assert prediction["kv_cache_tokens"]["low"] > 100_000
    assert "KV tokens at 56.0 KiB each" in printed
    stream = prediction["single_stream"]
    assert stream["bound_by"] == "memory-bandwidth"
    assert 60 <= stream["tokens_per_second"]["value"] <= 70 < stream["physical_limit"]["value"] < 72
    assert "One stream is bound by memory bandwidth" in printed


def test_an_unmerged_adapter_says_what_it_costs(tmp_path: Path) -> None:
    served = changed("qwen2.5-7b-lora-rtx4090/deploy.yaml", tmp_path, "mode: merge ", "mode: serve ")
    said = advice(planned(served)[0], "DC245")
    loss = re.search(r"output tokens \d+/s against \d+/s, (\d+)% fewer", said)
    assert loss is not None
    assert 5 <= int(loss[1]) <= 40  # measured on an H200: 17 to 37 %
    assert "mode: merge" in said


def test_ten_requests_a_second_take_two_thirds_of_an_a100() -> None:
    """10 x 1,500 tokens x 2 x 6.5e9 weights are 196 TFLOP/s of 312: no card does that and is idle."""
    document, printed = planned(EXAMPLES / "qwen2.5-7b-a100" / "deploy.yaml")
    of = document["prediction"]["explain"]["arithmetic"]
    assert of["weights"] == pytest.approx(6.5e9, rel=0.01)
    assert of["needed"]["value"] == pytest.approx(10 * 1500 * 2 * of["weights"], rel=1e-5)
    assert of["needed"]["basis"] == "exact"
    assert of["needed"]["value"] / of["peak"] == pytest.approx(0.63, abs=0.005)
    assert (
        "prompts take 63% of a card's 312 TFLOP/s: 10 requests/s x 1,500 tokens x 2 x 6.53e9 weights are 196, "
        "unless they are shorter or hit the prefix cache"
    ) in printed


def test_sixty_four_sequences_lower_the_throughput_of_an_a100() -> None:
    document, _ = planned(EXAMPLES / "qwen2.5-7b-a100" / "deploy-seqs64.yaml")
    said = advice(document, "DC540")
    assert "max-num-seqs 64 against 256" in said
    loss = re.search(r"output tokens .*? against .*?, (\d+)% fewer", said)
    assert loss is not None
    assert 5 <= int(loss[1]) <= 20  # measured on an H200: 13 %
    assert "In its favour: time per output token" in said
    assert not [d for d in planned(EXAMPLES / "qwen2.5-7b-a100" / "deploy.yaml")[0]["diagnostics"]
                if d["code"] == "DC540"]  # fmt: skip


def test_the_articles_length_needs_yarn(tmp_path: Path) -> None:
    scaled = "context: {rope: yarn, factor: 4}"
    plain = changed("qwen2.5-7b-4x4090d/deploy.yaml", tmp_path, scaled, "context: null")
    said = advice(planned(plain)[0], "DC520")
    assert "131,072 tokens are asked for; the model was made for 32,768, and the engine does not start" in said
    assert scaled in said
    _, printed = planned(EXAMPLES / "qwen2.5-7b-4x4090d" / "deploy.yaml")
    assert "131,072 tokens, all that the model takes with its own 32,768 positions scaled" in printed


def test_the_articles_load_is_more_than_four_cards_hold() -> None:
    """131,072 tokens x 56 KiB are 7 GiB; 128 requests of 12 Ki tokens 84 GiB, 21 of each card."""
    document, printed = planned(EXAMPLES / "qwen2.5-7b-4x4090d" / "deploy.yaml")
    assert "24 GB each (rtx-4090d, 23.5 GiB as CUDA shows it)" in printed
    assert "requests of 131,072 tokens (7.00 GiB of KV each)" in printed
    assert "the KV of 128 requests in flight, 21.0 GiB (84.0 GiB on 4 cards)" in printed
    left = document["prediction"]["memory"]["kv_cache"]
    assert left["high"] < document["prediction"]["explain"]["kv_cache_mean"]["value"]
    assert "the rest wait or are preempted" in advice(document, "DC306")


def test_four_replicas_beat_the_articles_tensor_parallelism() -> None:
    document, _ = planned(EXAMPLES / "qwen2.5-7b-4x4090d" / "deploy.yaml")
    said = advice(document, "DC533")
    assert "tensor_parallel_size 4 over PCIe against 4 engines of 1 card each" in said
    rates = re.search(r"output tokens (\d+)/s against (\d+)/s, \d+% fewer", said)
    assert rates is not None
    replicas = planned(EXAMPLES / "qwen2.5-7b-4x4090d" / "deploy-replicas.yaml")[0]["prediction"]["speed"]
    assert int(rates[2]) == pytest.approx(replicas["tokens_per_second"]["value"], rel=0.1)
    assert int(rates[1]) == pytest.approx(document["prediction"]["speed"]["tokens_per_second"]["value"], rel=0.01)
    assert "engine.parallel: {tensor: 1, replicas: 4}" in said
