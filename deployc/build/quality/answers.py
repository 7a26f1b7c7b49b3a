"""What a model of transformers answers, the likeliest token at a time, and whether that is JSON.

Runs in the build interpreter.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import torch
import transformers

from deployc.build.quality.samples import Prompt

AT_ONCE = 8
"""Prompts that are answered in one batch, those of like length together."""
SHORT = 64
"""Tokens of an answer that is only shown; one that must be JSON may be as long as a line."""

Ids = tuple[int, ...]


def answers(
    model: Any, prompts: Sequence[Prompt], ends: Sequence[int], tokens: int, advance: Callable[[int], None]
) -> list[Ids]:
    """The token ids of the answer to each prompt, up to and with a token of `ends`.

    `advance` is told after each batch for how many tokens there was room.
    """
    found: dict[int, Ids] = {}
    for batch in _batches(prompts):
        limit = longest(prompts[batch[0]], tokens)
        for index, ids in zip(batch, _generated(model, [prompts[i].ids for i in batch], ends, limit), strict=True):
            found[index] = ids
        advance(len(batch) * limit)
    return [found[index] for index in range(len(prompts))]


def longest(prompt: Prompt, tokens: int) -> int:
    """Tokens of an answer at most."""
    return tokens if prompt.json else min(SHORT, tokens)


def ends(folder: Path, config: Any) -> list[int]:
    """Tokens that end an answer: what generation_config.json says, else config.json."""
    path = folder / "generation_config.json"
    written = json.loads(path.read_bytes()).get("eos_token_id") if path.is_file() else None
    ids = written if written is not None else getattr(config.get_text_config(), "eos_token_id", None)
    return [ids] if isinstance(ids, int) else list(ids or ())


def is_json(answer: str) -> bool:
    """Whether a whole answer parses as an object or a list of JSON; thoughts before `</think>` are no part of it."""
    try:
        value = json.loads(answer.rpartition("</think>")[2], parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict | list)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _batches(prompts: Sequence[Prompt]) -> Iterator[list[int]]:
    for wanted in (True, False):
        chosen = sorted((i for i, p in enumerate(prompts) if p.json is wanted), key=lambda i: (len(prompts[i].ids), i))
        for first in range(0, len(chosen), AT_ONCE):
            yield chosen[first : first + AT_ONCE]


def _generated(model: Any, prompts: Sequence[Ids], ends: Sequence[int], limit: int) -> Iterator[Ids]:
    width = max(map(len, prompts))
    pad = ends[0] if ends else 0
    ids = torch.tensor([[pad] * (width - len(p)) + list(p) for p in prompts], device=model.device)
    mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts], device=model.device)
    plain = transformers.GenerationConfig(
        do_sample=False, max_new_tokens=limit, eos_token_id=list(ends) or None, pad_token_id=pad
    )
    model.generation_config = plain  # the model's own (penalties, temperature) must not fill what is left open
    for row in model.generate(ids, attention_mask=mask, generation_config=plain)[:, width:].tolist():
        end = next((at for at, token in enumerate(row) if token in ends), len(row) - 1)
        yield tuple(row[: end + 1])
