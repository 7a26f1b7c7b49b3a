"""The simulated scheduler against vLLM's own, step by step, under many loads; one process, no model, no server.

Where a block holds one token, or memory is ample, the simulation is exact: every batch of every step, and the time of
every request, to the rounding of floats. Where whole blocks of 16 run short, a straight line stands for them (room.py)
and preemptions may come a few steps sooner or later: throughput and mean latency are then held, not the batches.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from deployc.cost.simulate import Delays, Limits, Load, Room, Trace, closed, lengths, poisson, simulate
from deployc.cost.step import StepTime
from deployc.cost.step.work import Work

pytestmark = pytest.mark.engine

CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 512, "hidden_size": 64,
    "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 1, "num_key_value_heads": 1,
    "max_position_embeddings": 8192, "hidden_act": "silu", "rms_norm_eps": 1e-5,
}  # fmt: skip
LONGEST = 8192
HOST, LEAD = 0.2, 0.1
"""Seconds of the host in a step, and of these before its first kernel, over those of the GPU."""
AMPLE = 100_000
"""Blocks that never run short here."""


@dataclass(frozen=True)
class Case:
    """One run; `blocks` are those that can be given out. What the GPU does of a step takes a sum of constants x
    (1, *Work) seconds, the host `HOST` of it."""

    name: str
    load: Load
    blocks: int = AMPLE
    max_num_seqs: int = 16
    max_num_batched_tokens: int = 256
    block_size: int = 1
    prefix_caching: bool = True
    ahead: int = 2
    whole_prompts: bool = True
    delays: Delays = field(default=Delays(0.002, 0.0003, 1e-6))
    seconds: tuple[float, ...] = (0.01, 1e-4, 1e-6, 0.0, 3e-5, 1e-8, 3e-4, 2e-4)

    def asked(self) -> dict[str, Any]:
        limits = {
            "max_num_seqs": self.max_num_seqs, "max_num_batched_tokens": self.max_num_batched_tokens,
            "blocks": self.blocks + 1, "block_size": self.block_size, "prefix_caching": self.prefix_caching,
            "ahead": self.ahead, "whole_prompts": self.whole_prompts,
        }  # fmt: skip
        return {
            "load": asdict(self.load), "limits": limits, "delays": asdict(self.delays),
            "seconds": [[share * each for each in self.seconds] for share in (1, HOST, LEAD)],
        }  # fmt: skip

    def simulated(self) -> Trace:
        space = Room(float(self.blocks * self.block_size), (self.block_size - 1) / 2, 1.0)
        limits = Limits(
            self.max_num_seqs, self.max_num_batched_tokens, space, self.prefix_caching, self.block_size, self.ahead,
            self.whole_prompts,
        )  # fmt: skip
        return simulate(self.load, limits, self.delays, self.time, record=True)

    def time(self, work: Work) -> StepTime:
        gpu = sum(one * each for one, each in zip(self.seconds, (1, *work), strict=True))
        return StepTime(gpu, HOST * gpu, LEAD * gpu)


def drawn(seed: int) -> Case:
    """A load and limits of any kind, with blocks of one token."""
    chance = Random(seed)
    count, longest, answer = chance.choice((5, 20, 40)), chance.choice((20, 100, 400)), chance.choice((5, 30, 100))
    alike = chance.random() < 0.3
    inputs = [longest if alike else chance.randint(longest // 8 + 1, longest) for _ in range(count)]
    outputs = [answer if alike else chance.randint(1, answer) for _ in range(count)]
    shared = chance.choice((0, 0, min(inputs) - 1, min(inputs) // 2))
    if chance.random() < 0.5:
        load = closed(inputs, outputs, chance.choice((2, 8, 32)), shared)
    else:
        load = poisson(inputs, outputs, chance.choice((1.0, 10.0, 100.0)), shared, seed)
    largest = max(map(sum, zip(inputs, outputs, strict=True)))
    budget = chance.choice((8, 32, 64, 256, 2048))
    return Case(
        f"drawn {seed}", load,
        blocks=largest + round(largest * 4 * chance.random()) if chance.random() < 0.7 else AMPLE,
        max_num_seqs=min(budget, chance.choice((2, 4, 16, 64))),
        max_num_batched_tokens=budget,
        prefix_caching=chance.random() < 0.7,
        ahead=chance.choice((2, 2, 2, 1)),
        delays=Delays(chance.choice((0.0, 0.0005, 0.003)), chance.choice((0.0, 0.0003)), chance.choice((0.0, 1e-6))),
        seconds=(chance.choice((0.001, 0.01)), 1e-4, chance.choice((0.0, 1e-5)), 0.0, 3e-5, 1e-7, 1e-3, 1e-3),
    )  # fmt: skip


EXACT = [
    Case("one request", closed([100], [20], 1)),
    Case("one token each", closed([50] * 20, [1] * 20, 4)),
    Case("prompts longer than a step", closed([300] * 12, [10] * 12, 4), max_num_batched_tokens=64),
    Case("fewer places than clients", closed([60] * 30, [30] * 30, 12), max_num_seqs=5),
    Case("short of blocks", closed([100] * 20, [100] * 20, 8), blocks=500),
    Case("short of blocks, nothing cached", closed([100] * 20, [100] * 20, 8), blocks=500, prefix_caching=False),
    Case("a part of a prompt suffices", closed([200] * 20, [60] * 20, 8), 700, max_num_batched_tokens=64,
         whole_prompts=False),
    Case("a part suffices, nothing cached", closed([200] * 20, [60] * 20, 8), 500, max_num_batched_tokens=32,
         prefix_caching=False, whole_prompts=False),
    Case("formed one at a time", poisson([60] * 30, [30] * 30, 30.0), ahead=1),
    Case("a shared prefix in whole blocks", closed([400] * 24, [40] * 24, 8, 300), block_size=16),
    Case("a shared prefix, open", poisson(lengths(24, 400, 700, 1), [40] * 24, 20.0, 128), block_size=16),
    *(drawn(seed) for seed in range(32)),
]  # fmt: skip
SHORT = [
    Case("closed", closed(lengths(60, 600, 1200, 1), lengths(60, 120, 240, 2), 24), 600),
    Case("alike", closed([600] * 60, [120] * 60, 24), 600),
    Case("long answers", closed([100] * 40, [300] * 40, 24), 300),
    Case("open", poisson(lengths(60, 600, 1200, 1), lengths(60, 120, 240, 2), 20.0), 600, prefix_caching=False),
]
ROUNDED = [replace(case, block_size=16, max_num_seqs=64, max_num_batched_tokens=2048) for case in SHORT]


@pytest.fixture(scope="module")
def real(interpreter: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What vLLM's scheduler did, by name."""
    folder = tmp_path_factory.mktemp("scheduled")
    (folder / "config.json").write_text(json.dumps(CONFIG))
    script, cases = Path(__file__).with_name("real_scheduler.py"), [*EXACT, *ROUNDED]
    done = subprocess.run(
        [str(interpreter), str(script), str(LONGEST), str(folder)], text=True, timeout=600, capture_output=True,
        input=json.dumps([case.asked() for case in cases]), env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) == len(cases), done.stderr[-3000:]
    return dict(zip((case.name for case in cases), rows, strict=True))


def batches(trace: Trace) -> list[list[float]]:
    """Work of every step: of a run of equal ones, the middle was recorded. A prompt's next part has as many tokens more
    before it."""
    assert trace.record is not None
    found: list[list[float]] = []
    for count, work in trace.record.stages:
        if work is None:
            continue
        for number in range(count):
            later = number - (count - 1) / 2
            context, area = work.context + work.decodes * later, work.area + work.tokens**2 * later
            found.append([work.decodes, context, work.prompts, work.tokens, area, work.finished, work.begun])
    return found


@pytest.mark.parametrize("case", EXACT, ids=lambda case: case.name)
def test_every_batch_and_every_time_is_the_engines(case: Case, real: dict[str, dict[str, Any]]) -> None:
    seen, trace = real[case.name], case.simulated()
    assert batches(trace) == seen["steps"]
    assert trace.preempted == seen["preempted"]
    for name in ("sent", "first", "done"):
        assert getattr(trace, name) == pytest.approx(seen[name], rel=1e-9, abs=1e-9), name


@pytest.mark.parametrize("case", ROUNDED, ids=lambda case: case.name)
def test_where_whole_blocks_run_short_throughput_and_latency_are_close(
    case: Case, real: dict[str, dict[str, Any]]
) -> None:
    seen, trace = real[case.name], case.simulated()
    assert max(trace.done) == pytest.approx(max(seen["done"]), rel=0.02)
    for name in ("first", "done"):
        ours, theirs = (mean_after(times[name], times["sent"]) for times in (asdict(trace), seen))
        assert ours == pytest.approx(theirs, rel=0.02), name
    assert trace.preempted == pytest.approx(seen["preempted"], rel=0.25, abs=5)


def mean_after(times: list[float], sent: list[float]) -> float:
    return sum(time - start for time, start in zip(times, sent, strict=True)) / len(sent)


def test_the_loads_meet_what_the_scheduler_can(real: dict[str, dict[str, Any]]) -> None:
    """Enough of them are cut, preempted, resumed from the prefix cache and kept waiting to mean something."""
    traces = {case.name: case.simulated() for case in EXACT}
    cut = [name for name, trace in traces.items() if any(row[2] > row[5] for row in batches(trace))]
    preempted = [name for name, seen in real.items() if seen["preempted"]]
    slots = [name for name, trace in traces.items() if trace.short_of_slots > 0]
    memory = [name for name, trace in traces.items() if trace.short_of_memory > 0]
    assert min(len(cut), len(preempted), len(slots), len(memory)) >= 8
