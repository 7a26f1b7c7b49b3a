"""A JSON Lines file of the user's: read, checked, and the lines of it chosen; only the standard library is needed.

A line is an object with `text` (a string) or `messages` (of a chat, for the model's own template); its answer must be
JSON where it has `json: true` or a `response_format` of type json_object or json_schema, as requests name it. Other
keys are passed over, empty lines too. Of a file with more lines than are wanted those are taken that are spread evenly
over it, so that a file in order of topics gives some of each, and the same file always the same lines.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deployc.build.text import faults
from deployc.diagnostics import Report

ROLES = ("system", "developer", "user", "assistant", "tool")
"""Who may speak in `messages`; what a model's template makes of each is its own matter."""

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a file: its number from 1, and either a text or the messages of a chat ({role, content, …}).

    `json`: the answer must be JSON.
    """

    number: int
    text: str | None = None
    messages: tuple[Mapping[str, Any], ...] | None = None
    json: bool = False


def read_text(path: Path, samples: int, shown: str = "") -> tuple[list[Line], Report]:
    """`samples` lines of the file, or all where it has fewer (warning DC262).

    Every line is checked, be it chosen or not: an error DC261 names all bad ones by number, and then none is returned.
    Errors of the disk are DC261 too. `shown` is the file as people name it, else its path; the place in deploy.yaml is
    the caller's to add.
    """
    shown = shown or str(path)
    good: list[tuple[int, int]] = []  # number and offset: a file may be larger than memory
    bad: dict[str, list[int]] = {}
    try:
        for number, offset, raw in _lines(path):
            if isinstance(found := _parsed(number, raw), Line):
                good.append((number, offset))
            else:
                bad.setdefault(found, []).append(number)
        if bad or not good:
            return [], Report([faults.bad_lines(shown, bad)])
        chosen = _reread(path, spread(good, samples))
    except OSError as wrong:
        return [], Report([faults.unreadable(shown, wrong.strerror or str(wrong))])
    return chosen, Report([faults.few_lines(shown, len(good), samples)] if len(good) < samples else [])


def spread(values: Sequence[tuple[int, int]], wanted: int) -> list[tuple[int, int]]:
    """`wanted` of the values, evenly over all of them, from the first on; all where there are no more."""
    if len(values) <= wanted:
        return list(values)
    return [values[index * len(values) // wanted] for index in range(wanted)]


def _lines(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Number, offset and bytes of every line that is not empty."""
    offset = 0
    if not (stat.S_ISREG(mode := path.stat().st_mode) or stat.S_ISDIR(mode)):
        raise OSError("it is no regular file but a pipe or a device")  # which could keep us waiting for ever
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            if raw.removeprefix(_BOM).strip():
                yield number, offset, raw
            offset += len(raw)


def _reread(path: Path, chosen: Sequence[tuple[int, int]]) -> list[Line]:
    lines = []
    with path.open("rb") as file:
        for number, offset in chosen:
            file.seek(offset)
            line = _parsed(number, file.readline())
            if not isinstance(line, Line):
                raise OSError(f"line {number} changed while it was read")
            lines.append(line)
    return lines


def _parsed(number: int, raw: bytes) -> Line | str:
    """The line, or why it cannot be used."""
    try:
        value = _value(raw.removeprefix(_BOM))
    except UnicodeDecodeError:
        return "not UTF-8"
    except UnicodeEncodeError:
        return "half of a surrogate pair stands alone"
    except (ValueError, RecursionError):
        return "not JSON (one object a line, on one line)"
    if not isinstance(value, dict):
        return "not an object: JSON Lines has one object a line"
    match value.get("text"), value.get("messages"):
        case None, None:
            return "neither `text` nor `messages`"
        case str(text), None:
            return Line(number, text=text) if text.strip() else "`text` is empty"
        case _, None:
            return "`text` is not a string"
        case None, list(messages):
            return _wrong_chat(messages) or Line(number, messages=tuple(messages), json=_asks_json(value))
        case None, _:
            return "`messages` is not a list"
    return "both `text` and `messages`: one must be chosen"


def _value(raw: bytes) -> Any:
    """What the JSON says. Raises UnicodeEncodeError where half of a pair stands alone, which no tokenizer takes."""
    value = json.loads(raw.decode())
    if b"\\ud" in raw.lower():
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _asks_json(value: Mapping[str, Any]) -> bool:
    form = value.get("response_format")
    return value.get("json") is True or (isinstance(form, dict) and form.get("type") in ("json_object", "json_schema"))


def _wrong_chat(messages: Sequence[Any]) -> str | None:
    if not messages:
        return "`messages` is empty"
    for message in messages:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            return "a message without `role`"
        if message["role"] not in ROLES:
            return f"role {message['role'][:20]!r} is none of {', '.join(ROLES)}"
        if not isinstance(message.get("content"), str) and not (_calls(message) and message.get("content") is None):
            return "a message whose `content` is not a string"
    return None


def _calls(message: Mapping[str, Any]) -> bool:
    """An assistant that calls tools may say nothing beside."""
    return (
        message["role"] == "assistant" and isinstance(message.get("tool_calls"), list) and bool(message["tool_calls"])
    )
