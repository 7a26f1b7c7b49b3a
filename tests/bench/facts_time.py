"""How long facts take to be read, over what parsing the same bytes as plain JSON takes; and one prediction.

Each pair runs in turn and the least of each is compared, so that other load hits both alike.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from deployc import pipeline
from deployc.choose import decide
from deployc.cost import predict
from deployc.data import profiles
from deployc.facts import lock
from deployc.facts.calibration import calibration
from deployc.facts.engine import load
from deployc.facts.model import from_config
from deployc.types.groups import Tensor, compress

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "qwen2.5-7b-lora-rtx4090" / "deploy.yaml"
ROUNDS = 15
BOUNDS = {"a lockfile": 12.0, "a catalogue": 8.0, "45,000 tensors as groups": 8.0}
PREDICTION = 5e-3
"""Seconds of one prediction for a model of 100 layers, on an idle machine."""


def least(*works: Callable[[], object]) -> list[float]:
    """The least seconds of each, run in turn."""
    rounds = []
    for _ in range(ROUNDS):
        row = []
        for work in works:
            began = time.perf_counter()
            work()
            row.append(time.perf_counter() - began)
        rounds.append(row)
    return [min(column) for column in zip(*rounds, strict=True)]


def main() -> int:
    """Print every ratio and the prediction; 1 where a ratio is past its bound."""
    locked = EXAMPLE.with_suffix(".lock")
    text = locked.read_text()
    tables = sorted((profiles() / "engines" / "vllm").glob("*.json"))
    tensors: list[Tensor] = [
        (f"model.layers.{i}.mlp.experts.{j}.{p}_proj.weight", "BF16", (768, 2048))
        for i in range(60)
        for j in range(250)
        for p in ("up", "gate", "down")
    ]
    plain = json.dumps(tensors)
    pairs: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "a lockfile": (lambda: lock.read(locked), lambda: json.loads(text)),
        "a catalogue": (lambda: load("0.32.0"), lambda: [json.loads(table.read_bytes()) for table in tables]),
        "45,000 tensors as groups": (lambda: compress(tensors), lambda: json.loads(plain)),
    }
    wrong = 0
    for name, pair in pairs.items():
        ours, parsing = least(*pair)
        wrong |= ours / parsing > BOUNDS[name]
        print(f"{name}: {ours * 1000:.1f} ms / JSON {parsing * 1000:.1f} ms = {ours / parsing:.1f} ({BOUNDS[name]})")
    (seconds,) = least(_prediction())
    print(f"one prediction of a model of 100 layers: {seconds * 1000:.1f} ms (bound {PREDICTION * 1000:.0f} when idle)")
    return wrong


def _prediction() -> Callable[[], object]:
    """The 4090 example's configuration with a model of 100 layers."""
    analysis = pipeline.compile(EXAMPLE, offline=True)
    facts, deploy = analysis.facts, analysis.deploy
    assert facts is not None and deploy is not None
    config = {**facts.model.config, "num_hidden_layers": 100}
    model = from_config(config, source="org/deep", hub="huggingface", provenance="", chat_template=True)
    deep = replace(facts, model=model, adapters=(), calibration=calibration(facts.engine.version))
    choices = decide(deploy, deep)[0]
    assert choices is not None
    return lambda: predict(deploy, deep, choices)


if __name__ == "__main__":
    sys.exit(main())
