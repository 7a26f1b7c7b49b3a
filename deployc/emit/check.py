"""What must hold before anything is written: values that every format can hold, names that do not collide."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from deployc.diagnostics import Diagnostic, Report, Span, error, warning
from deployc.emit import calibration, quote
from deployc.emit.flags import served_names
from deployc.emit.launch import devices
from deployc.spec.deploy import Deploy
from deployc.types.choices import Choices
from deployc.types.facts import Facts

ELSEWHERE = {
    "host": "target.bind",
    "port": "target.port",
    "model": "model.source",
    "revision": "model.revision",
    "tokenizer-revision": "model.revision",
    "api-key": "target.api_key",
    "lora-modules": "adapters",
}
"""Flags of `engine.args` that another key of deploy.yaml decides: two places for one thing could disagree."""

ELSEWHERE_ENV = {
    "CUDA_VISIBLE_DEVICES": "hardware.devices",
    "VLLM_API_KEY": "target.api_key",
    "HF_TOKEN": "target.hub_token",
    "MODELSCOPE_API_TOKEN": "target.hub_token",
    "HF_ENDPOINT": "model.endpoint",
}


def check(deploy: Deploy, facts: Facts, choices: Choices) -> Report:
    """All findings at once; the bundle is made only where none is an error."""
    report = Report()
    report.extend(_elsewhere(deploy, facts))
    report.extend(_names(deploy, choices))
    report.extend(_values(deploy))
    report.extend(_cards(deploy, facts, choices))
    report.extend(calibration.check(deploy))
    return report


def _elsewhere(deploy: Deploy, facts: Facts) -> Iterator[Diagnostic]:
    written = [("args", key, facts.engine.canonical(key), ELSEWHERE) for key in deploy.engine.args]
    written += [("env", key, key, ELSEWHERE_ENV) for key in deploy.engine.env]
    for section, key, name, owners in written:
        if name in owners:
            yield error(
                "DC612",
                "this is set by another key of deploy.yaml",
                f"`engine.{section}.{key}` would stand beside `{owners[name]}`, and the two could disagree.",
                f"remove it and set `{owners[name]}`",
                deploy.at(("engine", section, key)),
            )


def _names(deploy: Deploy, choices: Choices) -> Iterator[Diagnostic]:
    if choices.adapter_mode.value != "serve":
        return
    taken = set(served_names(deploy, choices).value)
    for index, adapter in enumerate(deploy.adapters):
        if adapter.name in taken:
            yield error(
                "DC613",
                "base model and adapter have one name",
                f"Both would answer to {adapter.name!r}.",
                "rename the adapter, or set api.served_model_name for the base model",
                deploy.at(f"adapters.{index}.name"),
            )


def _values(deploy: Deploy) -> Iterator[Diagnostic]:
    for path, form, text in _written(deploy):
        try:
            if quote.PLACEHOLDER.search(text):
                raise quote.Unquotable("`${DEPLOYC_…}` is kept for the paths that a target fills in")
            form(text)
        except quote.Unquotable as refused:
            yield _unquotable(refused, deploy.at(path))


def _unquotable(refused: quote.Unquotable, at: Span | None) -> Diagnostic:
    """The error for a value that a format of the bundle cannot hold."""
    return error(
        "DC614",
        "this value cannot be written into the bundle",
        f"{refused}.",
        "change the value; a long text can be given as a file (`./name`)",
        at,
    )


def _written(deploy: Deploy) -> Iterator[tuple[tuple[str | int, ...], Callable[[str], str], str]]:
    """Every text of the user that reaches the bundle: where it stands, the strictest format it goes into, the text."""
    target = deploy.target
    for name, value in deploy.engine.env.items():
        yield ("engine", "env", name), quote.variable, name
        yield ("engine", "env", name), quote.dockerfile, value
    for key, secret in (("api_key", target.api_key), ("hub_token", target.hub_token)):
        if secret is not None and secret.env is not None:
            yield ("target", key, "env"), quote.variable, secret.env
        elif secret is not None and secret.file is not None:
            yield ("target", key, "file"), quote.systemd_value, secret.file
    if deploy.engine.image is not None:
        yield ("engine", "image"), quote.image, deploy.engine.image
    if target.state != "auto":
        yield ("target", "state"), quote.plain, target.state
    yield ("target", "bind"), quote.systemd_word, target.bind
    sections: tuple[tuple[tuple[str | int, ...], Any], ...] = (
        (("engine", "args"), deploy.engine.args),
        (("model", "source"), deploy.model.source),
        (("model", "endpoint"), deploy.model.endpoint),
        (("model", "overrides"), deploy.model.overrides),
        (("adapters",), [adapter.model_dump() for adapter in deploy.adapters]),
        (("api",), deploy.api.model_dump()),
    )
    for path, section in sections:
        for place, text in _texts(path, section):
            yield place, quote.systemd_word, text


def _texts(path: tuple[str | int, ...], value: Any) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield path, str(key)
            yield from _texts((*path, key), inner)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _texts((*path, index), inner)


def _cards(deploy: Deploy, facts: Facts, choices: Choices) -> Iterator[Diagnostic]:
    replicas, size = choices.replicas.value, choices.tensor_parallel_size.value
    cards = len(devices(deploy, facts))
    if cards and replicas * size > cards:
        yield error(
            "DC616",
            "more engines than cards",
            f"{replicas} replicas on {size} cards each need {replicas * size} cards; there are {cards}.",
            "lower engine.parallel.replicas or engine.parallel.tensor, or raise hardware.count",
            deploy.at("engine.parallel"),
        )
    if replicas > 1:
        last = deploy.target.port + replicas - 1
        yield warning(
            "DC610",
            "replicas without a balancer",
            f"{replicas} engines listen on ports {deploy.target.port} to {last}; nothing spreads requests over them.",
            "put a balancer in front of them, or let the clients choose",
            deploy.at("engine.parallel.replicas"),
        )
