"""Lines of text as token ids, by the model's own tokenizer and chat template.

Only the standard library is imported; the tokenizer is handed in by whoever loaded it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deployc.build.faults import reason
from deployc.build.text import faults
from deployc.build.text.read import Line
from deployc.facts.faults import Fault


def tokenized(tokenizer: Any, lines: Sequence[Line], most: int, shown: str) -> list[list[int]]:
    """Ids of each line, at most `most`: `text` with the special tokens that the tokenizer adds, `messages` rendered.

    `tokenizer` is one of transformers'; `shown` is the file as people name it. Raises Fault DC261 with every line that
    the template refuses.
    """
    ids: list[list[int]] = []
    bad: dict[str, list[int]] = {}
    for line in lines:
        try:
            ids.append(_ids(tokenizer, line)[:most])
        except Exception as wrong:  # a template is a program of the model's: it may raise anything
            why = f"the model's chat template does not take it ({reason(wrong)})"
            bad.setdefault(why, []).append(line.number)
    if bad:
        raise Fault(faults.bad_lines(shown, bad))
    return ids


def _ids(tokenizer: Any, line: Line) -> list[int]:
    if line.messages is None:
        return list(tokenizer(line.text)["input_ids"])
    rendered = tokenizer.apply_chat_template([dict(message) for message in line.messages], tokenize=False)
    return list(tokenizer(rendered, add_special_tokens=False)["input_ids"])
