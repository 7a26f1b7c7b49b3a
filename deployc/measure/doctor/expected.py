"""The same model and card as a healthy vLLM would serve them: a `Case`, decided and predicted like any deploy.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from deployc.choose.decide import decide
from deployc.measure.doctor.description import FORMATS, Description
from deployc.rules.case import Case
from deployc.spec.deploy import Deploy, bind
from deployc.types.facts import Facts

FAULTS = ("enforce-eager",)
"""Flags that are judged as causes, and therefore are not part of what is expected."""
PROMPT, ANSWER = 1000, 250
"""Tokens where the description names none: said as assumed."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The case, and what of it was assumed, in words."""

    case: Case
    assumed: tuple[str, ...]


def deploy_of(said: Description, version: str, weights: str | None = None, folder: str = ".") -> Deploy:
    """A deploy.yaml of what is described, with its load; `weights` in place of those described. Raises pydantic's
    ValidationError where a flag has no such value."""
    args = {name.lstrip("-").replace("_", "-"): value for name, value in said.args.items()}
    share = args.pop("gpu-memory-utilization", "auto")
    length = args.pop("max-model-len", None)
    flags = {name: value for name, value in args.items() if name not in FAULTS}
    prompt, answer = said.input_tokens or PROMPT, said.output_tokens or ANSWER
    load: dict[str, Any] = {"input_tokens": prompt, "output_tokens": answer}
    if isinstance(length, int) and not isinstance(length, bool) and length > 0:
        load["max_context"] = length
    if said.concurrency is None and said.requests_per_second is not None:
        load["request_rate"] = said.requests_per_second
    else:
        load["concurrency"] = said.concurrency or 1
    if said.prefix_cache_hits:
        load["shared_prefix_tokens"] = min(prompt - 1, int(prompt * min(1.0, said.prefix_cache_hits)))
    gpu = said.gpu if isinstance(said.gpu, str) else said.gpu.written()
    values: dict[str, Any] = {
        "version": 1,
        "name": "described",
        "model": {"source": said.model},
        "quantization": {"weights": weights or FORMATS[said.quantization]},
        "hardware": {"gpu": gpu, "count": said.count},
        "workload": load,
        "engine": {"version": version, "gpu_memory_utilization": share, "args": flags},
    }
    return bind(values, {}, folder)


def expected(said: Description, deploy: Deploy, facts: Facts) -> Expected:
    """Of a checkpoint that is quantized already, as it is; else in the format described."""
    if facts.model.quantization:
        deploy = deploy_of(said, deploy.engine.version, "checkpoint")
    choices, prediction, _ = decide(deploy, facts)
    assert choices is not None and prediction is not None  # noqa: S101  (decide gives both, even where nothing fits)
    return Expected(Case(deploy, facts, choices, prediction), tuple(_assumed(said, deploy)))


def with_weights(said: Description, case: Case, weights: str) -> Case:
    """The same with other weights, or with those of the checkpoint."""
    facts = case.facts
    deploy = deploy_of(said, case.deploy.engine.version, "checkpoint" if facts.model.quantization else weights)
    choices, prediction, _ = decide(deploy, facts)
    assert choices is not None and prediction is not None  # noqa: S101
    return Case(deploy, facts, choices, prediction)


def with_load(case: Case, load: Mapping[str, Any]) -> Case:
    """The same under another load; max_num_seqs is chosen for it again, where the description does not set it."""
    plain = {k: v for k, v in case.deploy.workload.model_dump(exclude_none=True).items() if k not in _LOADS}
    workload = type(case.deploy.workload).model_validate({**plain, **load})
    deploy = case.deploy.model_copy(update={"workload": workload})
    choices, prediction, _ = decide(deploy, case.facts)
    assert choices is not None and prediction is not None  # noqa: S101
    return replace(case, deploy=deploy, choices=choices, prediction=prediction)


_LOADS = ("concurrency", "request_rate")


def _assumed(said: Description, deploy: Deploy) -> list[str]:
    found = []
    if said.version is None:
        found.append(f"the engine's version: {deploy.engine.version} assumed")
    if said.input_tokens is None:
        found.append(f"the length of prompts: {PROMPT:,} tokens assumed")
    if said.output_tokens is None:
        found.append(f"the length of answers: {ANSWER} tokens assumed")
    if said.concurrency is None and said.requests_per_second is None:
        found.append("how many requests are in flight: one assumed")
    return found
