"""The user's texts that reach the bundle, each with the strictest format that it goes into."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from deployc.emit import quote
from deployc.spec.deploy import Deploy, Path
from deployc.types.choices import Choices

Passed = tuple[Path, Callable[[str], str], str]
"""Where a text stands, the quoting filter that it must go through, the text."""


def texts(deploy: Deploy, choices: Choices) -> Iterator[Passed]:
    """All of them; names of open maps stand at their values."""
    served = choices.adapter_mode.value == "serve"
    yield from chain(_environment(deploy), _target(deploy), _words(deploy), _arguments(deploy))
    yield from _adapters(deploy) if served else ()


def _environment(deploy: Deploy) -> Iterator[Passed]:
    for name, value in deploy.engine.env.items():
        yield ("engine", "env", name), quote.variable, name
        yield ("engine", "env", name), quote.dockerfile, value
        yield ("engine", "env", name), quote.systemd_value, value
    for key, secret in (("api_key", deploy.target.api_key), ("hub_token", deploy.target.hub_token)):
        if secret is not None and secret.env is not None:
            yield ("target", key, "env"), quote.variable, secret.env
        elif secret is not None and secret.file is not None:
            yield ("target", key, "file"), quote.systemd_value, secret.file


def _target(deploy: Deploy) -> Iterator[Passed]:
    if deploy.engine.image is not None:
        yield ("engine", "image"), quote.image, deploy.engine.image
    if deploy.target.state != "auto" and deploy.target.kind == "systemd":
        yield ("target", "state"), quote.folder, deploy.target.state
    yield ("target", "bind"), quote.systemd_word, deploy.target.bind


def _words(deploy: Deploy) -> Iterator[Passed]:
    sections: tuple[tuple[Path, Any], ...] = (
        (("model", "source"), deploy.model.source),
        (("model", "endpoint"), deploy.model.endpoint),
        (("model", "overrides"), deploy.model.overrides),
        (("api",), deploy.api.model_dump()),
    )
    for path, section in sections:
        for place, text in _within(path, section):
            yield place, quote.systemd_word, text


def _arguments(deploy: Deploy) -> Iterator[Passed]:
    for name, setting in deploy.engine.args.items():
        for place, text in _within(("engine", "args", name), setting):
            yield place, quote.systemd_word if isinstance(setting, dict) else quote.value, text


def _adapters(deploy: Deploy) -> Iterator[Passed]:
    for index, adapter in enumerate(deploy.adapters):
        yield ("adapters", index, "name"), quote.lora_name, adapter.name
        yield ("adapters", index, "source"), quote.lora_source, adapter.source


def _within(path: Path, value: Any) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield path, str(key)
            yield from _within((*path, key), inner)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _within((*path, index), inner)
