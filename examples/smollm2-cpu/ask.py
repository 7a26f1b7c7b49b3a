"""Asking the base model, in this process, and the served one, over HTTP as a stream."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steps import StepFailed

MAX_TOKENS = 32


def load(folder: Path) -> tuple[Any, Any]:
    """Model in float32 and tokenizer of a model folder, without progress bars."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32), AutoTokenizer.from_pretrained(folder)


def replies(model: Any, tokenizer: Any, questions: list[str]) -> list[str]:
    """The model's greedy answers to some questions, made in one batch."""
    import torch

    prompts = [
        tokenizer.apply_chat_template([{"role": "user", "content": q}], add_generation_prompt=True, tokenize=False)
        for q in questions
    ]
    batch = tokenizer(prompts, add_special_tokens=False, padding=True, padding_side="left", return_tensors="pt")
    with torch.inference_mode():
        out = model.generate(
            input_ids=batch["input_ids"], attention_mask=batch["attention_mask"],
            max_new_tokens=MAX_TOKENS, do_sample=False,
        )  # fmt: skip
    answers = tokenizer.batch_decode(out[:, batch["input_ids"].shape[1] :], skip_special_tokens=True)
    return [str(answer).strip() for answer in answers]


@dataclass(frozen=True, slots=True)
class Streamed:
    """One streamed answer: its text, its tokens, the seconds from the first token to the last, and the chunks."""

    text: str
    tokens: int
    seconds: float
    chunks: int

    @property
    def tokens_per_second(self) -> float:
        """Decode speed of one stream: the first token belongs to the prefill."""
        return (self.tokens - 1) / self.seconds if self.seconds else 0.0


def stream(url: str, name: str, question: str, tokens: tuple[int, int] = (0, MAX_TOKENS)) -> Streamed:
    """One greedy chat answer of the served model, of `tokens` (least, most) tokens. Raises StepFailed."""
    import httpx

    body = {
        "model": name, "temperature": 0, "min_tokens": tokens[0], "max_tokens": tokens[1], "stream": True,
        "stream_options": {"include_usage": True}, "messages": [{"role": "user", "content": question}],
    }  # fmt: skip
    parts: list[str] = []
    times: list[float] = []
    used = 0
    try:
        with httpx.stream("POST", f"{url}/v1/chat/completions", json=body, timeout=120, trust_env=False) as answer:
            if answer.status_code != 200:
                raise StepFailed(f"the server answered {answer.status_code}: {answer.read().decode()[:300]}")
            for line in answer.iter_lines():
                if not line.startswith("data: ") or line == "data: [DONE]":
                    continue
                event = json.loads(line.removeprefix("data: "))
                used = (event.get("usage") or {}).get("completion_tokens", used)
                if event["choices"] and (content := event["choices"][0]["delta"].get("content")):
                    parts.append(content)
                    times.append(time.monotonic())
    except httpx.HTTPError as wrong:
        raise StepFailed(f"the server at {url} broke off: {wrong or type(wrong).__name__}") from wrong
    return Streamed("".join(parts).strip(), used, times[-1] - times[0] if times else 0.0, len(parts))
