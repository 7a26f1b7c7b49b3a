"""Run by the engine's own interpreter: its scheduler, cache manager and core loop, without a model, under a fake clock.

Only what computes and what talks is a stand-in: a step takes the seconds that its batch is given, requests come and
answers go at times of the fake clock. Batches, steps in flight, blocks and preemptions are vLLM's own.

Arguments: max_model_len and a model's folder, of which only config.json is read. In, on standard input: a JSON list of
{load, limits, delays, seconds} as test_engine_5_scheduler.py writes it. Out: one JSON line a run, {steps: [Work],
sent, first, done, preempted}.
"""

from __future__ import annotations

import contextlib
import heapq
import json
import os
import queue
import sys
from collections import deque
from concurrent.futures import Future
from typing import Any

os.environ |= {"VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1", "VLLM_LOGGING_LEVEL": "WARNING"}
asked = json.loads(sys.stdin.read())
out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # whatever a library prints is no result

import torch  # noqa: E402
from vllm.config import CacheConfig, ModelConfig, SchedulerConfig, VllmConfig  # noqa: E402
from vllm.sampling_params import SamplingParams  # noqa: E402
from vllm.utils.hashing import sha256_cbor  # noqa: E402
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash  # noqa: E402
from vllm.v1.core.sched.async_scheduler import AsyncScheduler  # noqa: E402
from vllm.v1.core.sched.scheduler import Scheduler  # noqa: E402
from vllm.v1.engine import EngineCoreRequestType  # noqa: E402
from vllm.v1.engine import core as engine_core  # noqa: E402
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec  # noqa: E402
from vllm.v1.outputs import ModelRunnerOutput  # noqa: E402
from vllm.v1.request import Request  # noqa: E402
from vllm.v1.structured_output import StructuredOutputManager  # noqa: E402

LONGEST, MODEL = int(sys.argv[1]), sys.argv[2]
APART = 2**20
"""Token ids between one request's own and the next's: no prompt is as long."""


class Clock:
    """Seconds from the first that may come. It is the module `time` to the engine core's loop, which only sleeps."""

    def __init__(self) -> None:
        self.now = -1.0  # the engine is idle by then

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Users:
    """Input and output queue in one: requests are sent when they are due, and answers are noted."""

    def __init__(self, load: dict[str, Any], delays: dict[str, float], clock: Clock, hasher: Any) -> None:
        self.load, self.delays, self.clock, self.hasher = load, delays, clock, hasher
        count = len(load["inputs"])
        self.sent, self.first, self.done = [0.0] * count, [-1.0] * count, [-1.0] * count
        self.due: list[tuple[float, int]] = []
        self.unsent = count
        if load["concurrency"]:
            self.unsent = min(load["concurrency"], count)
            seen = delays["travel"]
            for index in range(self.unsent):
                self.due.append((seen, index))
                seen += self.between(index)
        else:
            self.sent = list(load["arrivals"])
            self.due = [(at + delays["travel"], index) for index, at in enumerate(self.sent)]
        heapq.heapify(self.due)

    def between(self, index: int) -> float:
        """Seconds that a request takes of the front end."""
        return float(self.delays["spacing"] + self.delays["spacing_token"] * self.load["inputs"][index])

    def empty(self) -> bool:
        return not self.due or self.due[0][0] > self.clock.now

    def get(self, **_: bool) -> Any:
        """What an engine without work waits for. When none will come, the run is over."""
        if not self.due:
            raise SystemExit
        if self.empty():
            self.clock.now = self.due[0][0]
        return self.get_nowait()

    def get_nowait(self) -> Any:
        return EngineCoreRequestType.ADD, (self.request(heapq.heappop(self.due)[1]), 0)

    def request(self, index: int) -> Request:
        """The prefix that all have in common, then tokens of its own."""
        tokens, shared, own = self.load["inputs"][index], self.load["shared_prefix"], APART * (index + 1)
        prompt = [*range(min(shared, tokens)), *range(own, own + tokens - shared)]
        params = SamplingParams(max_tokens=self.load["outputs"][index], ignore_eos=True, temperature=0.0)
        return Request(str(index), prompt, params, None, arrival_time=self.clock.now, block_hasher=self.hasher)

    def put_nowait(self, outputs: Any) -> None:
        ended = 0
        for output in outputs[1].outputs:
            index = int(output.request_id)
            if output.new_token_ids and self.first[index] < 0:
                self.first[index] = self.clock.now
            if output.finish_reason is not None:
                self.done[index] = self.clock.now
                self.send_next(ended)
                ended += 1

    def send_next(self, ended: int) -> None:
        """Of a closed load, as one is answered; `ended` others were so in the same step."""
        if self.load["concurrency"] and self.unsent < len(self.sent):
            self.sent[self.unsent] = self.clock.now
            seen = self.clock.now + self.delays["travel"] + self.between(self.unsent) * ended
            heapq.heappush(self.due, (seen, self.unsent))
            self.unsent += 1


class Result(Future[ModelRunnerOutput]):
    """What a step will have computed at a time of the clock."""

    def __init__(self, clock: Clock, at: float, output: ModelRunnerOutput) -> None:
        self.clock, self.at, self.output = clock, at, output

    def result(self, *_: Any) -> ModelRunnerOutput:
        self.clock.now = max(self.clock.now, self.at)
        return self.output


class Card:
    """Stands for the executor: one step after the other, each as long as its batch says."""

    def __init__(self, seconds: list[list[float]], scheduler: Scheduler, clock: Clock) -> None:
        self.seconds, self.scheduler, self.clock = seconds, scheduler, clock
        self.free = 0.0  # when the last step ends
        self.prompts: dict[str, int] = {}  # tokens that a request computes before it decodes
        self.steps: list[list[float]] = []
        self.made: Result | None = None

    def execute_model(self, batch: Any, **_: bool) -> Result:
        names = list(batch.num_scheduled_tokens)
        begun = [new.req_id for new in batch.scheduled_new_reqs] + list(batch.scheduled_cached_reqs.resumed_req_ids)
        self.prompts |= {name: self.scheduler.requests[name].num_tokens for name in begun}
        if names:
            self.steps.append([*self.work(batch.num_scheduled_tokens), len(begun)])
            gpu, host, lead = (
                sum(c * n for c, n in zip(part, (1, *self.steps[-1]), strict=True)) for part in self.seconds
            )
            begins = max(self.free, self.clock.now + lead)
            self.clock.sleep(host)
            self.free = max(begins + gpu, self.clock.now)
        requests = [self.scheduler.requests[name] for name in names]
        sampled = [[] if r.is_prefill_chunk else [-r.num_computed_tokens] for r in requests]
        output = ModelRunnerOutput(names, {name: i for i, name in enumerate(names)}, sampled)
        self.made = Result(self.clock, self.free, output)
        return self.made

    def work(self, parts: dict[str, int]) -> list[float]:
        """Decodes, their context, prompts, tokens, area and how many prompts end: Work without those that begin."""
        decodes = context = prompts = tokens = finished = 0
        area = 0.0
        for name, part in parts.items():
            before = (
                self.scheduler.requests[name].num_computed_tokens - part
            )  # a batch that is formed counts as computed
            if before >= self.prompts[name]:
                decodes, context = decodes + 1, context + before
            else:
                prompts, tokens, area = prompts + 1, tokens + part, area + part * (before + part / 2)
                finished += before + part == self.prompts[name]
        return [decodes, context, prompts, tokens, area, finished]

    def sample_tokens(self, *_: Any, **__: bool) -> Result | None:
        return self.made


def configured(limits: dict[str, Any]) -> tuple[VllmConfig, KVCacheConfig]:
    """`blocks` includes the one that is never given out."""
    config = VllmConfig(
        model_config=MODEL_CONFIG,
        cache_config=CacheConfig(block_size=limits["block_size"], enable_prefix_caching=limits["prefix_caching"]),
        scheduler_config=SchedulerConfig(
            max_num_seqs=limits["max_num_seqs"], max_num_batched_tokens=limits["max_num_batched_tokens"],
            max_model_len=LONGEST, enable_chunked_prefill=True, is_encoder_decoder=False,
            scheduler_reserve_full_isl=limits["whole_prompts"],
        ),
    )  # fmt: skip
    config.scheduler_config.async_scheduling = limits["ahead"] > 1  # it is off on a CPU
    config.cache_config.num_gpu_blocks = limits["blocks"]
    spec = FullAttentionSpec(block_size=limits["block_size"], num_kv_heads=1, head_size=1, dtype=torch.float32)
    return config, KVCacheConfig(limits["blocks"], [], [KVCacheGroupSpec(["layer"], spec)])


def run(
    load: dict[str, Any], limits: dict[str, Any], delays: dict[str, float], seconds: list[list[float]]
) -> dict[str, Any]:
    """One load through the engine core's own loop."""
    clock = engine_core.time = Clock()
    config, pool = configured(limits)
    two, size = config.scheduler_config.async_scheduling, limits["block_size"]
    scheduler = (AsyncScheduler if two else Scheduler)(config, pool, StructuredOutputManager(config), size)
    users, card = (
        Users(load, delays, clock, get_request_block_hasher(size, sha256_cbor)),
        Card(seconds, scheduler, clock),
    )
    core: Any = engine_core.EngineCoreProc.__new__(engine_core.EngineCoreProc)
    core.__dict__ |= {
        "vllm_config": config, "scheduler": scheduler, "model_executor": card, "input_queue": users,
        "output_queue": users, "aborts_queue": queue.Queue(), "process_input_queue_block": True,
        "batch_queue": deque() if two else None, "batch_queue_size": config.max_concurrent_batches,
        "async_scheduling": two, "step_fn": core.step_with_batch_queue if two else core.step,
        "is_mm_encoder_only": False, "is_pooling_model": False, "check_for_draft_tokens": False, "log_stats": False,
        "engines_running": False, "publish_dp_lb_stats": False, "engine_index": 0, "_weight_version": "",
        "shutdown_state": engine_core.EngineShutdownState.RUNNING, "_idle_state_callbacks": [],
    }  # fmt: skip
    preempted: list[str] = []
    own = scheduler._preempt_request

    def preempt(request: Request, *rest: Any, **more: Any) -> None:
        preempted.append(request.request_id)
        own(request, *rest, **more)

    scheduler._preempt_request = preempt
    with contextlib.suppress(SystemExit):
        core.run_busy_loop()
    return {
        "steps": card.steps, "sent": users.sent, "first": users.first, "done": users.done, "preempted": len(preempted),
    }  # fmt: skip


init_none_hash(sha256_cbor)
MODEL_CONFIG = ModelConfig(MODEL, max_model_len=LONGEST, skip_tokenizer_init=True, dtype="float16")
for one in asked:
    out.write(json.dumps(run(**one)) + "\n")
    out.flush()
