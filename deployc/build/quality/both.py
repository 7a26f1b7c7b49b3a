"""One measurement: the reference answers and its logits are kept, then the artifact answers and is compared.

One model of transformers is in memory at a time. Runs in the build interpreter.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from deployc.build.quality import compare, faults, layers, models, room
from deployc.build.quality.answers import Ids, answers, ends, is_json, longest
from deployc.build.quality.figures import Unit
from deployc.build.quality.samples import Prompt, Samples, Scored, read
from deployc.build.quality.stored import Stored
from deployc.build.text.read import Line
from deployc.facts.faults import Fault

SHOWN = 4
"""Answers that are kept to be read."""
CUT = 600
"""Characters of a prompt or an answer that are kept."""

Advance = Callable[[int, int, str], None]
"""(tokens done, of all, what)."""


class Count:
    """How far it is, in tokens that both models score, and may write."""

    def __init__(self, total: int, tell: Advance) -> None:
        self._done, self._total, self._tell = 0, max(total, 1), tell

    def at(self, item: str) -> Callable[[int], None]:
        """Say what is done now; what is returned adds tokens."""

        def advance(more: int) -> None:
            self._done = min(self._done + more, self._total)
            self._tell(self._done, self._total, item)

        advance(0)
        return advance


@dataclass(frozen=True, slots=True)
class Task:
    """What is measured where. `row`: bytes of the logits of one token; `asked`: prompts that both models answer."""

    reference: Path
    artifact: Path
    into: Path
    shown: str
    tokens: int
    dtype: torch.dtype
    device: str
    row: int
    ends: tuple[int, ...]
    asked: tuple[Prompt, ...]
    count: Count


def measured(job: Mapping[str, Any], advance: Advance) -> dict[str, Any]:
    """The `done` event of the worker. Raises Fault DC204, DC265, DC266; OSError."""
    started = time.monotonic()
    tokenizer = models.tokenizer(Path(job["artifact"]))
    lines = [Line(**{**line, "messages": line["messages"] and tuple(line["messages"])}) for line in job["lines"]]
    samples = read(lines, tokenizer, job["tokens"], job["shown"])
    task, not_covered = _task(job, samples, advance)
    with torch.inference_mode(), compare.Logits(task.into) as kept:
        scored, before, kind = _reference(task, samples, kept)
        gc.collect()
        units, after, missing = _artifact(task, scored, kept, kind)
    if not samples.scored:
        not_covered.append("No line has a text or an answer to score: the 16-bit model's own answers were scored.")
    if missing:
        not_covered.append(
            f"The inputs of {len(missing)} quantized layers ({missing[0]} …) stayed at 16 bit: an engine rounds them."
        )
    said = [tuple(tokenizer.decode(ids, skip_special_tokens=True) for ids in pair)
            for pair in zip(before, after, strict=True)]  # fmt: skip
    return {
        "units": units,
        "lines": len(scored),
        "tokens": sum(line.tokens for line in scored),
        "valid_json": _valid(task.asked, said),
        "answers": _shown(task.asked, said),
        "squares": layers.squares(task.reference, task.artifact),
        "not_covered": not_covered,
        "device": torch.cuda.get_device_name() if task.device.startswith("cuda") else task.device,
        "seconds": round(time.monotonic() - started, 3),
    }


def _task(job: Mapping[str, Any], samples: Samples, advance: Advance) -> tuple[Task, list[str]]:
    """The task, and what it leaves out."""
    reference, artifact = Path(job["reference"]), Path(job["artifact"])
    lengths = [len(line.ids) for line in samples.scored] + [len(prompt.ids) for prompt in samples.prompts]
    if not lengths:
        raise Fault(faults.nothing_to_score(job["shown"], job["tokens"]))
    dtype = models.dtype_of(artifact)
    config = models.config_of(artifact)
    row = config.get_text_config().vocab_size * dtype.itemsize
    with Stored(reference) as stored:
        weights = stored.elements() * dtype.itemsize
    device, slow = room.device(weights, row * max(lengths), job["device"])
    not_covered = [slow] if slow else []
    if samples.beyond:
        left = (
            "1 line was left out: its prompt fills"
            if samples.beyond == 1
            else (f"{samples.beyond} lines were left out: their prompts fill")
        )
        not_covered.append(f"{left} all of {job['tokens']} tokens.")
    asked = _asked(samples)
    tokens = sum(line.tokens for line in samples.scored) + sum(longest(prompt, job["tokens"]) for prompt in asked)
    ended = tuple(ends(artifact, config))
    task = Task(reference, artifact, Path(job["into"]), job["shown"], job["tokens"], dtype, device, row, ended,
                asked, Count(2 * tokens, advance))  # fmt: skip
    return task, not_covered


def _asked(samples: Samples) -> tuple[Prompt, ...]:
    """All prompts whose answer must be JSON, and others up to SHOWN; all there are where no text is scored."""
    wanted = [prompt for prompt in samples.prompts if prompt.json]
    others = [prompt for prompt in samples.prompts if not prompt.json]
    most = max(SHOWN - len(wanted), SHOWN // 2) if samples.scored else len(others)
    return (*wanted, *others[:most])


def _reference(
    task: Task, samples: Samples, kept: compare.Logits
) -> tuple[Sequence[Scored], list[Ids], Callable[..., Any]]:
    """What is scored, the answers, the class of the model; logits are put into `kept`."""
    advance = task.count.at("the 16-bit model")
    model = models.reference(task.reference, task.dtype, task.device)
    with models.running("the 16-bit model", task.device):
        said = answers(model, task.asked, task.ends, task.tokens, task.count.at("the 16-bit model answers"))
        lines = samples.scored or _own(task, said)
        room.check_disk(task.into, lines, task.row)
        for line in lines:
            kept.keep(compare.logits(model, line, "the 16-bit model"))
            advance(line.tokens)
        return lines, said, type(model)


def _artifact(
    task: Task, lines: Sequence[Scored], kept: compare.Logits, kind: Callable[..., Any]
) -> tuple[list[Unit], list[Ids], list[str]]:
    """The sums for figures, the answers, the layers whose inputs are not rounded."""
    advance = task.count.at("the artifact")
    model, missing = models.artifact(task.artifact, kind, task.dtype, task.device)
    with models.running("the artifact", task.device):
        units = compare.units(model, lines, kept, advance)
        said = answers(model, task.asked, task.ends, task.tokens, task.count.at("the artifact answers"))
    return units, said, missing


def _own(task: Task, said: Sequence[Ids]) -> tuple[Scored, ...]:
    """The reference's own answers as scored text."""
    lines = [Scored((*prompt.ids, *ids), len(prompt.ids)) for prompt, ids in zip(task.asked, said, strict=True)]
    if sum(line.tokens for line in lines) < 2:
        raise Fault(faults.nothing_to_score(task.shown, task.tokens))
    return tuple(line for line in lines if line.tokens > 0)


def _valid(asked: Sequence[Prompt], said: Sequence[Sequence[str]]) -> list[int] | None:
    """How many were to be JSON, and how many are, of the reference and of the artifact."""
    pairs = [pair for prompt, pair in zip(asked, said, strict=True) if prompt.json]
    return [len(pairs), *(sum(is_json(pair[i]) for pair in pairs) for i in (0, 1))] if pairs else None


def _shown(asked: Sequence[Prompt], said: Sequence[Sequence[str]]) -> list[dict[str, str]]:
    """Some of the answers, of both kinds of prompts where there are both."""
    wanted = [i for i, prompt in enumerate(asked) if prompt.json]
    others = [i for i, prompt in enumerate(asked) if not prompt.json]
    chosen = [*wanted[: max(SHOWN // 2, SHOWN - len(others))], *others][:SHOWN]
    return [
        {"prompt": _cut(asked[i].shown), "reference": _cut(said[i][0]), "artifact": _cut(said[i][1])} for i in chosen
    ]


def _cut(text: str) -> str:
    return text if len(text) <= CUT else text[: CUT - 1] + "…"
