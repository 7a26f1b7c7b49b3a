"""What a user says of a server, as YAML: strict like deploy.yaml, every mistake on its line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from deployc import units
from deployc.diagnostics import Diagnostic, Report, Span, error
from deployc.source import load
from deployc.spec import faults, values
from deployc.spec.deploy import Deploy
from deployc.spec.faults import Wrong, expected, fault, said
from deployc.spec.model import Bytes, CustomGpu, Gpu, Positive, Rate, Seconds, Spread, Text
from deployc.spec.section import OneOrMany, Read, Section
from deployc.spec.serving import Version
from deployc.types.facts import MOST_CARDS

FORMATS: Mapping[str, str] = {
    "none": "none", "fp16": "none", "bf16": "none", "float16": "none", "bfloat16": "none", "16-bit": "none",
    "fp8": "fp8", "int8": "int8", "w8a8": "int8", "int4": "int4-rtn", "w4a16": "int4-rtn",
    "gptq": "int4-gptq", "awq": "int4-awq",
    "8bit": "int8", "8-bit": "int8", "4bit": "int4-rtn", "4-bit": "int4-rtn", "int8-weight-only": "int8-weight-only",
    "int4-rtn": "int4-rtn", "int4-gptq": "int4-gptq", "int4-awq": "int4-awq",
    "bitsandbytes": "int8-weight-only", "bitsandbytes-8bit": "int8-weight-only", "bitsandbytes-4bit": "int4-rtn",
}  # fmt: skip
"""What people call the weights -> the format of ours that takes as many bytes."""
ADAPTERS = ("none", "merged", "unmerged", "unknown", "lora")
ENGINES = ("vllm", "other", "unknown")


def _percent(value: Any) -> float:
    """A share; "108%" and 108 are taken as they are said, and judged later. A bare number above 1 is per cent."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 1:
        return value / 100
    return units.parse_fraction(value)


def _word(known: tuple[str, ...]) -> Read:
    def parse(value: Any) -> str:
        word = str(value).strip().lower().replace("_", "-") if isinstance(value, str) else ""
        if word not in known:
            near = get_close_matches(word, known, 1, 0.6)
            fix = f"did you mean {near[0]}?" if near else f"write one of {', '.join(known)}"
            raise Wrong(faults.CHOICE, f"{said(value)} is not one of {', '.join(known)}", fix)
        return word

    return Read(parse, {"enum": list(known)})


Utilization = Annotated[float, values.quantity(_percent, "a share", "40%", bare=True)]


class Batch(Section):
    """The same server with so many requests in flight."""

    concurrency: Positive
    tokens_per_second: Rate


class Description(Section):
    """`gpu` and `model` as in deploy.yaml; all else is what is known. Nothing has a default that stands for a fact."""

    gpu: Gpu
    model: Text
    count: Annotated[int, values.whole(1, MOST_CARDS)] = 1  # cards that the server uses
    gpu_memory: Bytes | None = None  # of one card, as nvidia-smi or NVML shows it
    cpus: Positive | None = None
    engine: Annotated[str, _word(ENGINES)] = "unknown"
    version: Version | None = None
    quantization: Annotated[str, _word(tuple(FORMATS))] = "none"
    adapter: Annotated[str, _word(ADAPTERS)] = "none"
    args: dict[str, Any] = Field({})  # flags of the engine as it was started
    input_tokens: Positive | None = None
    output_tokens: Positive | None = None
    concurrency: Positive | None = None
    requests_per_second: Rate | None = None
    tokens_per_second: Rate | None = None  # of answers, all requests together
    latency: Seconds | None = None  # of one whole request
    memory_used: Bytes | None = None  # of one card
    gpu_utilization: Utilization | None = None
    cpu_utilization: Utilization | None = None
    prefix_cache_hits: Utilization | None = None
    out_of_memory: Annotated[str, _word(tuple(FORMATS))] | None = None  # weights with which it did not start
    batches: list[Batch] = Field([])
    notes: Annotated[str | list[str], OneOrMany(Text)] = Field([])


@dataclass(frozen=True, slots=True)
class Described:
    """A description and where each of its values stands."""

    values: Description
    spans: Mapping[tuple[str | int, ...], Span]

    def at(self, *path: str | int) -> Span | None:
        """Where a value stands; its parent's place where the file is silent."""
        return next((self.spans[path[:end]] for end in range(len(path), -1, -1) if path[:end] in self.spans), None)


def from_deploy(deploy: Deploy) -> dict[str, Any]:
    """What a deploy.yaml says of what a description may leave out."""
    hardware, load = deploy.hardware, deploy.workload
    cards = hardware.gpu if isinstance(hardware.gpu, list) else [hardware.gpu]
    gpu = cards[0] if isinstance(cards[0], str) else cards[0].written()
    weights = deploy.quantization.weights
    lengths = {"input_tokens": load.input_tokens, "output_tokens": load.output_tokens}
    found: dict[str, Any] = {
        "gpu": gpu,
        "count": hardware.count,
        "model": deploy.model.source,
        "version": deploy.engine.version,
        "quantization": weights if weights in FORMATS else "none",
        "args": dict(deploy.engine.args),
        "concurrency": load.concurrency,
        **{name: length.mean if isinstance(length, Spread) else length for name, length in lengths.items()},
    }
    return {name: value for name, value in found.items() if value is not None}


def described(
    path: Path, env: Mapping[str, str], known: Mapping[str, Any] | None = None
) -> tuple[Described | None, Report]:
    """Read a description, with what is `known` where it is silent. None where it cannot be understood; then all that
    is wrong with it is in the report."""
    document, report = load(path, env)
    if document is None or report.errors:
        return None, report
    try:
        values = Description.model_validate({**(known or {}), **document.values})
        return Described(values, document.spans), report
    except ValidationError as wrong:
        for problem in wrong.errors(include_url=False):
            report.extend(_mistakes(problem, document.spans, document.keys))
        return None, report


def _mistakes(problem: Any, spans: Mapping[Any, Span], keys: Mapping[Any, Span]) -> Iterator[Diagnostic]:
    path = tuple(part for part in problem["loc"] if part != "[key]")
    kind, value, name = str(problem["type"]), problem["input"], ".".join(map(str, path))
    at = next((spans[path[:end]] for end in range(len(path), -1, -1) if path[:end] in spans), None)
    if kind == "missing":
        yield fault(faults.MISSING, f"`{name}` is not given.", f"add {path[-1]}: {_EXAMPLES[str(path[-1])]}", at)
    elif kind == "extra_forbidden":
        parts = {"batches": Batch.model_fields, "gpu": CustomGpu.model_fields}
        known = list(parts.get(str(path[0]), Description.model_fields) if len(path) > 1 else Description.model_fields)
        near = get_close_matches(str(path[-1]).replace("-", "_").lower(), known, 1, 0.6)
        fix = (
            f"did you mean {near[0]}?" if near else f"remove it, or put it under notes; known here: {', '.join(known)}"
        )
        yield fault(faults.UNKNOWN, f"`{path[-1]}` is not a key of a description.", fix, keys.get(path, at))
    else:
        found = problem.get("ctx", {}).get("error")
        wrong = found if isinstance(found, Wrong) else expected(_WANTED.get(kind, "another value"), value)
        yield error(*wrong.kind, f"`{name}`: {wrong.detail}.", wrong.fix, at)


_EXAMPLES = {
    "gpu": "rtx-4090", "model": "Qwen/Qwen2.5-7B-Instruct", "concurrency": "8", "tokens_per_second": "400",
    "memory": "24GiB", "bandwidth": "1008GB/s",
}  # fmt: skip
"""Of every key that must be there, of the description or of a map in it."""
_WANTED = {"dict_type": "a map", "list_type": "a list", "model_type": "a map"}
