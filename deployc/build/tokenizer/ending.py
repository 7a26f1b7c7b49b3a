"""What ends a turn in a rendered chat template: the token after which a model trained with it has said its say.

A chat of a user and an assistant is rendered; in what follows the assistant's words the first added or special token
is the end. Templates that leave the last turn open (GLM-4 ends it by the next role's token) are rendered with one more
message of the user. Tokens of white space alone (Gemma's runs of line breaks) end nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from deployc.build.tokenizer import faults
from deployc.build.tokenizer.meaning import Tokenizer
from deployc.build.tokenizer.rendering import Rendered, render
from deployc.build.tokenizer.template import DEFAULT, TOOLS
from deployc.diagnostics import Diagnostic

ASKED, ANSWERED, THANKED = "what-is-two-and-two", "four-is-the-answer", "thank-you-so-far"
_TOOL: Mapping[str, Any] = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Adds two numbers.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "number", "description": "One."}},
            "required": ["a"],
        },
    },
}


@dataclass(frozen=True, slots=True)
class End:
    """A turn ends with `token`; `shown` is the template as people know it."""

    shown: str
    token: str
    id: int


def ends(templates: Mapping[str, str], tokenizer: Tokenizer, shown: str) -> tuple[list[End], list[Diagnostic]]:
    """The end of a turn in each template that is served, and what is wrong with those (DC296, DC297).

    Served are the default and, for requests with tools, the one for tools; `templates` names them, `shown` says what
    the default one is called.
    """
    served = {name: templates[name] for name in (DEFAULT, TOOLS) if name in templates}
    found: list[End] = []
    wrong: list[Diagnostic] = []
    if DEFAULT not in served:
        named = ", ".join(map(repr, sorted(templates)))
        fix = "Name one `default`, or set api.chat_template."
        wrong.append(
            faults.end_unknown(f"The templates are named {named}; without tools the engine takes `default`.", fix)
        )
    samples = [(name, sample) for name in served for sample in _samples(name == TOOLS)]
    rendered = render([(served[name], {**tokenizer.variables, **sample}) for name, sample in samples])
    for name in served:
        which = shown if name == DEFAULT else f"{shown} {name!r}"
        end = _end(name, which, [r for (of, _), r in zip(samples, rendered, strict=True) if of == name], tokenizer)
        if isinstance(end, End):
            found.append(end)
        else:
            wrong.append(end)
    return found, wrong


def _samples(tools: bool) -> Iterator[dict[str, Any]]:
    """Variables of a rendering: content as text and as parts, with one turn and with one more, with a system's word."""
    for system in (False, True):
        for parts in (False, True):
            for more in (False, True):
                said = [("system", "be-brief")] * system + [("user", ASKED), ("assistant", ANSWERED)]
                said += [("user", THANKED)] * more
                messages = [
                    {"role": role, "content": [{"type": "text", "text": text}] if parts else text}
                    for role, text in said
                ]
                yield {
                    "messages": messages,
                    "tools": [_TOOL] if tools else None,
                    "documents": None,
                    "add_generation_prompt": False,
                }


def _end(name: str, which: str, rendered: list[Rendered], tokenizer: Tokenizer) -> End | Diagnostic:
    if all(result.text is None for result in rendered):
        return _failed(name, which, rendered)
    tails = _tails(rendered)
    if not tails:
        return faults.end_unknown(
            f"The {which} renders a chat without the assistant's words.", "Try whether answers end, with messages."
        )
    known = candidates(tokenizer)
    first = next((token for tail in tails if (token := first_token(tail, known)) is not None), None)
    if first is None:
        shown = next((tail for tail in tails if tail.strip()), "")
        what = f"with {shown[:60]!r}, which holds no added or special token" if shown else "with nothing at all"
        return faults.end_unknown(
            f"The {which} ends a turn {what}: the engine has no token to stop at.",
            "Use a template that ends turns with a token of the vocabulary, or send `stop` with each request.",
        )
    if first == tokenizer.special.get("bos_token") != tokenizer.special.get("eos_token"):
        return faults.end_unknown(
            f"In the {which} the first token after an answer is {first!r}, which begins the next turn.",
            "Use a template that ends turns with a token of its own, or send `stop` with each request.",
        )
    return End(which, first, known[first])


def candidates(tokenizer: Tokenizer) -> dict[str, int]:
    """Token -> id of those that are found in text as a whole."""
    whole = {*tokenizer.added, *tokenizer.variables.values()}
    return {token: tokenizer.tokens[token] for token in whole if token.strip() and token in tokenizer.tokens}


def first_token(text: str, known: Mapping[str, int]) -> str | None:
    """The token that stands first in a text; of those at one place the longest."""
    found = [(at, -len(token), token) for token in known if (at := text.find(token)) >= 0]
    return min(found)[2] if found else None


def _tails(rendered: list[Rendered]) -> list[str]:
    """What follows the assistant's words, of the first pair of samples (one turn, one more) that has them at all."""
    pairs = [rendered[at : at + 2] for at in range(0, len(rendered), 2)]
    found = ([tail for r in pair if (tail := _tail(r.text)) is not None] for pair in pairs)
    return next(filter(None, found), [])


def _tail(text: str | None) -> str | None:
    """What follows the assistant's words, up to the next message's; None where they are not there."""
    if text is None or ANSWERED not in text:
        return None
    return text.rpartition(ANSWERED)[2].partition(THANKED)[0]


def _failed(name: str, which: str, results: list[Rendered]) -> Diagnostic:
    """A template's own refusal of every sample is no fault of it; anything else is."""
    refusal = next((r for r in results if r.raised), None)
    if refusal is not None or name == TOOLS:
        why = (refusal or results[0]).error
        return faults.end_unknown(
            f"The {which} refuses a plain chat of a user and an assistant: {why}",
            "Try whether answers end, with messages.",
        )
    return faults.broken_template(which, results[0].line, results[0].error)
