"""The quantizer's own process: text is tokenized, the model goes through llm-compressor, shards get their names.

`ready` says {torch, threads}, `done` {shards, quantization_config, versions, seconds}. Only the standard library,
torch, transformers and llm-compressor are imported. Runs in the build interpreter.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from deployc.build.available import available
from deployc.build.calibrated import faults
from deployc.build.calibrated.memory import Width, layer_of, memory
from deployc.build.calibrated.written import expected, fresh, place
from deployc.build.child import Events, serve
from deployc.build.text.read import Line
from deployc.build.text.tokens import tokenized
from deployc.build.weights.safetensors_file import Reader
from deployc.facts.faults import Fault
from deployc.types.groups import Tensor
from deployc.types.scheme import scheme

Job = Mapping[str, Any]
"""into, model: folders, the model's with tokenizer and config.json; source: the model as people name it. shards: file
names in `model`. method: "gptq", "awq" or "smoothquant"; group_size; strength of smoothing. quantized: tensor -> its
scheme; left_alone: modules. dtype: "bfloat16" … text: {shown, tokens, lines: [{number, text, messages}]}. threads: a
number, or null for one a core."""

QUIET = {"TQDM_DISABLE": "1", "LLM_COMPRESSOR_LOG_LEVEL": "ERROR", "TOKENIZERS_PARALLELISM": "false",
         "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}  # fmt: skip
"""Read when the libraries are imported: bars and logs would fill a file nobody reads, and nothing is to be fetched."""
LIBRARIES = ("llmcompressor", "compressed-tensors", "torch", "transformers")
SHARD = "5GB"


def main() -> None:
    """Run one job of standard input, and exit."""
    os.environ.update(QUIET)
    serve(run)


def run(job: Job, events: Events) -> None:
    """Check text and memory, calibrate, and put the shards in place."""
    import torch

    torch.set_num_threads(threads := int(job["threads"] or len(os.sched_getaffinity(0))))
    events.send("ready", torch=torch.__version__, threads=threads)
    started = time.monotonic()
    with _named("reading the tokenizer"):
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(job["model"], local_files_only=True)
    text = job["text"]
    lines = [Line(line["number"], line["text"], line["messages"]) for line in text["lines"]]
    ids = tokenized(tokenizer, lines, text["tokens"], text["shown"])
    tensors = _tensors(Path(job["model"]), job["shards"], job["source"])
    _room(job, tensors, [len(sample) for sample in ids])
    read = time.monotonic()
    into = Path(job["into"])
    folder = fresh(into)
    try:
        _calibrate(job, tokenizer, ids, folder, events)
        calibrated = time.monotonic()
        schemes = {name: scheme(values) for name, values in job["quantized"].items()}
        placed = place(folder, into, expected(tensors, schemes), job["source"])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    seconds = {"read": read - started, "calibrate": calibrated - read, "write": time.monotonic() - calibrated}
    versions = {name.replace("-", "_"): version(name) for name in LIBRARIES}
    events.send("done", **placed, versions=versions, seconds=seconds)


def _tensors(folder: Path, shards: list[str], source: str) -> list[Tensor]:
    tensors: list[Tensor] = []
    for name in shards:
        with Reader(folder / name, source) as reader:
            tensors += [(slot.name, slot.dtype, slot.shape) for slot in reader.slots]
    return tensors


def _room(job: Job, tensors: list[Tensor], lengths: list[int]) -> None:
    """Raises Fault DC264 where this host has not the memory that it takes."""
    from transformers import AutoConfig

    with _named("reading config.json"):
        config = AutoConfig.from_pretrained(job["model"], local_files_only=True).get_text_config()
        heads = config.num_attention_heads
        head_dim = getattr(config, "head_dim", None) or config.hidden_size // heads
    layers = {name: layer_of(name) for name in job["quantized"]}
    parts = memory(tensors, layers, lengths, Width(config.hidden_size, heads, head_dim), job["method"])
    free = available()
    if free is not None and sum(parts.values()) > free:
        raise Fault(faults.too_little_memory(sum(parts.values()), free, max(parts, key=lambda part: parts[part])))


def _calibrate(job: Job, tokenizer: Any, ids: list[list[int]], folder: Path, events: Events) -> None:
    """The model through llm-compressor, and what that made of it into `folder`."""
    with _named("loading llm-compressor"):
        from deployc.build.calibrated import library
    with _named("reading the model"):
        model = library.load(Path(job["model"]), job["dtype"])

    def advance(done: int, total: int) -> None:
        events.progress("calibrate", done, total, "", unit="layers")

    with _named("calibrating"):
        library.calibrate(
            model, tokenizer, ids, job["method"], job["group_size"], job["strength"], job["left_alone"], advance
        )
    with _named("writing the weights"):
        model.save_pretrained(folder, save_compressed=True, max_shard_size=SHARD)


@contextmanager
def _named(doing: str) -> Iterator[None]:
    """Whatever a library raises becomes Fault DC264 that says what it was at; our own faults stay what they are."""
    try:
        yield
    except (Fault, OSError):
        raise
    except Exception as wrong:
        said = str(wrong).strip().splitlines() or [""]
        raise Fault(faults.failed(doing, f"{type(wrong).__name__}: {said[0][:300]}")) from wrong
