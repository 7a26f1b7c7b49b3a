"""Renders chat templates, in a process of its own: a template comes from a hub and is a program.

jinja's sandbox keeps it from Python's insides and gives `range` a limit, but it stops neither nested loops nor
`'x' * 10**10`. So three bounds hold here: seconds of processor time, bytes of memory, characters rendered. Past the
first the kernel ends the process, the others raise; `rendering.py` says which it was.

The environment is that of transformers 5.24 (`utils/chat_template_utils.py`, `_cached_compile_jinja_template`), which
vLLM 0.32.0 renders with. Standard input: a JSON list of [template, variables]. Standard output: a JSON list of
{"text"} | {"error", "line", "raised"}, where `raised` says that the template itself refused by raise_exception.
"""

from __future__ import annotations

import json
import resource
import sys
import traceback
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

SECONDS, MEMORY, CHARACTERS = 10, 2**30, 2**20
"""Bounds of one process: of processor time, of address space in bytes, of the text of one rendering."""


class Refusal(jinja2.TemplateError):
    """The template's own raise_exception."""


class Generation(jinja2.ext.Extension):
    """`{% generation %}` marks what an assistant said, for training; it renders as what it holds."""

    tags = {"generation"}  # noqa: RUF012  # jinja declares it so

    def parse(self, parser: Any) -> Any:
        """The body as it is."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_as_it_is"), [], [], body).set_lineno(line)

    def _as_it_is(self, caller: Any) -> Any:
        return caller()


def environment() -> ImmutableSandboxedEnvironment:
    """jinja2 as chat templates expect it."""

    def raise_exception(message: str) -> None:
        raise Refusal(message)

    def tojson(
        value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
    ) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return made


def render(template: str, variables: Mapping[str, Any]) -> dict[str, Any]:
    """{"text"} or {"error", "line", "raised"}."""
    try:
        parts, length = [], 0
        for part in environment().from_string(template).generate(**variables):
            parts.append(part)
            length += len(part)
            if length > CHARACTERS:
                message = f"it renders more than {CHARACTERS:,} characters for a chat of two lines"
                return {"error": message, "line": None, "raised": False}
        return {"text": "".join(parts)}
    except jinja2.TemplateSyntaxError as wrong:
        return {"error": wrong.message or "syntax error", "line": wrong.lineno, "raised": False}
    except MemoryError:
        return {"error": f"it takes more than {MEMORY // 2**20:,} MiB of memory", "line": None, "raised": False}
    except RecursionError as wrong:
        return {"error": "it calls itself without end", "line": _line(wrong), "raised": False}
    except Exception as wrong:
        kind = "" if isinstance(wrong, jinja2.TemplateError) else f"{type(wrong).__name__}: "
        return {"error": f"{kind}{wrong}"[:500], "line": _line(wrong), "raised": isinstance(wrong, Refusal)}


def _line(wrong: BaseException) -> int | None:
    """The template's line: jinja names its code `<template>` or `<unknown>` in tracebacks."""
    frames = traceback.extract_tb(wrong.__traceback__)
    return next((f.lineno for f in reversed(frames) if f.filename in ("<template>", "<unknown>")), None)


def main() -> None:
    """One list in, one list out, under the bounds."""
    jobs = json.load(sys.stdin)
    for kind, most in ((resource.RLIMIT_CPU, SECONDS), (resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CORE, 0)):
        _, allowed = resource.getrlimit(kind)  # a lower one of the system's own stays
        bound = most if allowed == resource.RLIM_INFINITY else min(most, allowed)
        resource.setrlimit(kind, (bound, allowed))
    sys.stdout.write(json.dumps([render(template, variables) for template, variables in jobs]))


if __name__ == "__main__":
    main()
