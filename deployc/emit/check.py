"""What must hold before anything is written: values that every format can hold, names that do not collide."""

from __future__ import annotations

from collections.abc import Iterator

from deployc.diagnostics import Diagnostic, Report, Span, error, warning
from deployc.emit import calibration, quote
from deployc.emit.flags import served_names
from deployc.emit.launch import devices
from deployc.emit.passed import texts
from deployc.spec.deploy import Deploy
from deployc.types.bundle import Launch
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
    "config": "engine.args",  # a file of flags: none of them would be checked, and it could set all of the above
}
"""Flags of `engine.args` that another key of deploy.yaml decides: two places for one thing could disagree."""

_KEY_OF = {
    "served-model-name": "api.served_model_name",
    "hf-overrides": "model.overrides",
    "chat-template": "api.chat_template",
    "override-generation-config": "api.generation",
    "lora-modules": "adapters",
}
ELSEWHERE_ENV = {
    "CUDA_VISIBLE_DEVICES": "hardware.devices",
    "VLLM_API_KEY": "target.api_key",
    "HF_TOKEN": "target.hub_token",
    "MODELSCOPE_API_TOKEN": "target.hub_token",
    "HF_ENDPOINT": "model.endpoint",
}


def too_long(deploy: Deploy, launch: Launch) -> Iterator[Diagnostic]:
    """DC614 for a command line that no Dockerfile can hold; each of its texts may have been short enough."""
    try:
        quote.exec_form(launch.argv)
    except quote.Unquotable as refused:
        longest = max(launch.flags, key=lambda flag: sum(map(len, flag.argv)))
        why = quote.Unquotable(f"of the whole command line: {refused}; --{longest.name} is the longest of it")
        yield _unquotable(why, deploy.at(_KEY_OF.get(longest.name, "engine.args")))


def check(deploy: Deploy, facts: Facts, choices: Choices) -> Report:
    """All findings at once; the bundle is made only where none is an error."""
    report = Report()
    report.extend(_elsewhere(deploy, facts))
    report.extend(_names(deploy, choices))
    report.extend(_values(deploy, choices))
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


def _values(deploy: Deploy, choices: Choices) -> Iterator[Diagnostic]:
    for path, form, text in texts(deploy, choices):
        try:
            if quote.PLACEHOLDER.search(text):
                raise quote.Unquotable("`${DEPLOYC_…}` is kept for the paths that a target fills in")
            quote.exec_form([text])
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
