"""Lines of the user's text as tokens: which are scored, and which prompts are answered. Runs in the build interpreter.

A line of `text` is scored from its second token on. Of `messages` that end with the assistant the last answer is
scored, and what stands before it is a prompt; `messages` that end otherwise are a prompt alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from deployc.build.faults import reason
from deployc.build.quality import faults
from deployc.build.text.read import Line
from deployc.facts.faults import Fault

OPENING = 32
"""Tokens of a `text` that are its prompt, where the answers of both models are shown."""


@dataclass(frozen=True, slots=True)
class Scored:
    """Token ids of a line, those from `first` on scored; `first` is at least 1."""

    ids: tuple[int, ...]
    first: int

    @property
    def tokens(self) -> int:
        """How many are scored."""
        return len(self.ids) - self.first


@dataclass(frozen=True, slots=True)
class Prompt:
    """Token ids of a prompt, what people see of it, and whether its answer must be JSON."""

    ids: tuple[int, ...]
    shown: str
    json: bool


@dataclass(frozen=True, slots=True)
class Samples:
    """All lines, cut to so many tokens. `beyond`: lines whose answer or whose prompt does not fit into them."""

    scored: tuple[Scored, ...]
    prompts: tuple[Prompt, ...]
    beyond: int


def read(lines: Sequence[Line], tokenizer: Any, tokens: int, shown: str) -> Samples:
    """The lines as a tokenizer of transformers makes them. Raises Fault DC265 for what its template refuses."""
    scored: list[Scored] = []
    prompts: list[Prompt] = []
    beyond = 0
    for line in lines:
        try:
            made = _text(line, tokenizer, tokens) if line.text is not None else _chat(line, tokenizer)
        except Exception as wrong:  # a template raises what it likes
            raise Fault(faults.bad_line(shown, line.number, reason(wrong))) from None
        (found, prompt), lost = made, False
        if found is not None:
            cut = Scored(found.ids[:tokens], found.first)
            if cut.tokens > 0:
                scored.append(cut)
            lost = cut.tokens <= 0 < found.tokens
        if prompt.ids:
            if len(prompt.ids) <= tokens:
                prompts.append(prompt)
            lost = lost or len(prompt.ids) > tokens
        beyond += lost
    return Samples(tuple(scored), tuple(prompts), beyond)


def _text(line: Line, tokenizer: Any, tokens: int) -> tuple[Scored, Prompt]:
    ids = tuple(tokenizer(line.text)["input_ids"])
    opening = ids[: min(OPENING, tokens)]
    return Scored(ids, 1), Prompt(opening, tokenizer.decode(opening, skip_special_tokens=True), json=False)


def _chat(line: Line, tokenizer: Any) -> tuple[Scored | None, Prompt]:
    messages = list(line.messages or ())
    answered = messages[-1]["role"] == "assistant"
    asked = messages[:-1] if answered else messages
    head = _rendered(asked, tokenizer, opened=True) if asked else ()
    said = next((m["content"] for m in reversed(asked) if m["role"] == "user"), "") or ""
    prompt = Prompt(head, said, line.json)
    if not answered:
        return None, prompt
    whole = _rendered(messages, tokenizer, opened=False)
    same = next((i for i, (a, b) in enumerate(zip(head, whole, strict=False)) if a != b), min(len(head), len(whole)))
    return Scored(whole, max(same, 1)), prompt


def _rendered(messages: Sequence[Any], tokenizer: Any, *, opened: bool) -> tuple[int, ...]:
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=opened)
    return tuple(tokenizer(text, add_special_tokens=False)["input_ids"])
