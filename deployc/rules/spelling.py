"""How values are written: quotes that a shell or a compose file would take off, and that the engine would get."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from deployc.diagnostics import Diagnostic, error, warning
from deployc.rules.case import Case
from deployc.types import json_text

QUOTES = ("'", '"', "`", "\u201c", "\u2018")
"""Those that open a quotation; the last two as word processors write them."""


def quotes(case: Case) -> Iterator[Diagnostic]:
    """No shell reads a value of deploy.yaml: a quotation mark inside it reaches the engine."""
    flags = case.facts.engine.flags
    for written, value in case.deploy.engine.args.items():
        flag, inner = flags.get(case.facts.engine.canonical(written)), inside(value)
        if inner is None:
            continue
        as_json = flag is not None and flag.type == "json"
        fix = f"write {'the map itself: ' if as_json else ''}{written}: {inner}"
        yield _quoted(error if as_json else warning, case, ("engine", "args", written), value, fix)
    for name, text in case.deploy.engine.env.items():
        inner = inside(text)
        if inner is not None:
            yield _quoted(warning, case, ("engine", "env", name), text, f"write {name}: {inner}")


def _quoted(say: Callable[..., Diagnostic], case: Case, path: tuple[str, str, str], value: str, fix: str) -> Diagnostic:
    return say(
        "DC523",
        "a value has quotation marks around it",
        f"`{'.'.join(path)}` is {value[:60]} with the quotation marks: no shell takes them off, and the engine gets "
        "them too.",
        fix,
        case.deploy.at(path),
    )


def inside(value: Any) -> str | None:
    """What stands between the marks; of JSON that was quoted as a JSON text, the JSON in it. None = there are none."""
    if not isinstance(value, str) or len(value) < 2 or not value.startswith(QUOTES):
        return None
    try:
        inner = json_text.loads(value)
    except ValueError:
        closing = {"\u201c": "\u201d", "\u2018": "\u2019"}.get(value[0], value[0])
        return value[1:-1] if value.endswith(closing) else None
    return inner if isinstance(inner, str) else None
