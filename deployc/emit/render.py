"""Templates -> text. What a template prints has gone through a quoting filter, or rendering stops."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from deployc import data
from deployc.emit import quote


class _Quoted(str):
    """Text that a quoting filter made."""

    __slots__ = ()


def render(template: str, **values: Any) -> str:
    """The text of `templates/<template>`; raises `quote.Unquotable` where a value has no form in that format."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(data.templates()),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701  no HTML here: each value goes through its own format's filter
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_quoted_only,
        auto_reload=False,
    )
    environment.filters = {name: _filter(function) for name, function in _FILTERS.items()}
    return environment


def _quoted_only(value: object) -> object:
    if isinstance(value, _Quoted | int):
        return value
    raise TypeError(f"a template prints {value!r} without a quoting filter")


def _filter(function: Callable[[Any], str]) -> Callable[[Any], _Quoted]:
    return lambda value: _Quoted(function(value))


def _words(filter_one: Callable[[str], str]) -> Callable[[Any], str]:
    return lambda words: " ".join(filter_one(word) for word in words)


_FILTERS: dict[str, Callable[[Any], str]] = {
    "comment": quote.comment,
    "compose": quote.compose,
    "compose_secret": quote.compose_secret,
    "dockerfile": quote.dockerfile,
    "exec_form": quote.exec_form,
    "image": quote.image,
    "plain": quote.plain,
    "required": quote.required,
    "shell": quote.shell,
    "shell_secret": quote.shell_secret,
    "shell_words": _words(quote.shell),
    "systemd_value": quote.systemd_value,
    "systemd_word": quote.systemd_word,
    "systemd_words": _words(quote.systemd_word),
    "variable": quote.variable,
    "yaml": quote.yaml,
}
