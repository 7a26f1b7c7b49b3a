"""Names that must stand in a registry of this very version: the model's class, parsers of tool calls and reasoning."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from deployc.diagnostics import Diagnostic, Span, error, warning
from deployc.rules.case import Case
from deployc.rules.settings import written

PLUGINS = {"tool-call-parser": "tool-parser-plugin", "reasoning-parser": "reasoning-parser-plugin"}
"""By flag, the one that brings in parsers under names of its own."""


def model_has_a_class(case: Case) -> Iterator[Diagnostic]:
    """`Model architectures [...] are not supported for now` (vllm/model_executor/models/registry.py).

    One name that it has suffices. Names that no version has are the user's own code's, or meant for another task.
    """
    names, known = _architectures(case), case.facts.lore.registries
    if not names or not known.classes or any(name in known.classes for name in names):
        return
    when = {name: known.other_classes[name] for name in names if name in known.other_classes}
    if not when or written(case).get("model-impl") is not None:
        return
    name, told = next(iter(when.items()))
    version, stands_in = case.facts.engine.version, name in known.by_transformers
    instead = told.removeprefix("came in vLLM ")
    say, what = (error, "The engine does not start.")
    if stands_in:
        say, what = (warning, _BY_TRANSFORMERS)
    elif _is_ones_own(case):
        say, what = (warning, _OF_ONES_OWN)
    yield say(
        "DC525",
        "the engine's version has no class for this model",
        f"{case.facts.model.source} is a {name}, and vLLM {version} has no such class: it {told}. {what}",
        f"set engine.version: {instead} or a newer one"
        if told.startswith("came")
        else f"take an engine older than {told.removeprefix('went in vLLM ')}, or another model",
        case.deploy.at("engine.version") or case.deploy.at("model.source"),
    )


_BY_TRANSFORMERS = "It takes the class of transformers instead, which is slower."
_OF_ONES_OWN = "It starts only where the transformers beside it has one that it takes instead, more slowly."


def _is_ones_own(case: Case) -> bool:
    """Whether other libraries may stand beside the engine than those of the official image."""
    image = case.deploy.engine.image
    return case.deploy.target.kind not in ("docker", "compose") or (image is not None and OFFICIAL not in image)


def class_serves_adapters(case: Case) -> Iterator[Diagnostic]:
    """`... does not support LoRA yet` (vllm/v1/worker/lora_model_runner_mixin.py)."""
    known = case.facts.lore.registries
    name = next((name for name in _architectures(case) if name in known.classes), None)
    if not case.facts.adapters or case.choices.adapter_mode.value != "serve" or name is None or known.classes[name]:
        return
    since = known.adapted_since.get(name, "")
    yield error(
        "DC242",
        "the engine cannot serve this adapter unmerged",
        f"vLLM {case.facts.engine.version} serves no adapters on {name}"
        + (f": that came in {since}." if since else ", nor does a newer one that is known here."),
        "; or ".join([*([f"set engine.version: {since} or a newer one"] if since else []), _merged(case)]),
        case.deploy.at("adapters"),
    )


def _merged(case: Case) -> str:
    """A quantized checkpoint takes no merge (DC250)."""
    packed = case.facts.model.quantization and case.choices.weights.value == "checkpoint"
    return "name the 16-bit model as model.source and set mode: merge" if packed else "set mode: merge"


def parsers_are_known(case: Case) -> Iterator[Diagnostic]:
    """`invalid tool call parser: ... (chose from ...)`, of the flag or of the key of `api` that becomes it."""
    flags, known = written(case), case.facts.lore.registries
    for flag, names in known.parsers.items():
        value, at = _asked(case, flag)
        choices = case.facts.engine.flags[flag].choices if flag in case.facts.engine.flags else ()
        if not value or not names or value in names or PLUGINS[flag] in flags or (flag in flags and choices):
            continue  # the last: DC501
        when, close = known.other_parsers.get(f"{flag}.{value}", ""), get_close_matches(value, names, 1, 0.6)
        yield error(
            "DC524",
            "the engine has no such parser",
            f"vLLM {case.facts.engine.version} has no --{flag} {value}{f' (it {when})' if when else ''}, and stops. "
            f"It has {', '.join(names)}.",
            f"set engine.version: {when.removeprefix('came in vLLM ')} or a newer one"
            if when.startswith("came")
            else f"did you mean {close[0]}?"
            if close
            else "name one of these, as the model's card says; or remove it",
            at,
        )


def values_are_known(case: Case) -> Iterator[Diagnostic]:
    """Flags whose parser takes any text, for plugins of an image of one's own; the official ones have none."""
    image, flags = case.deploy.engine.image, case.facts.engine.flags
    if image is not None and OFFICIAL not in image:
        return
    for name, names in case.facts.lore.registries.values.items():
        setting, flag = written(case).get(name), name.partition(".")[0]
        if setting is None or flag not in flags or flags[flag].choices or not names:
            continue
        if name == flag and not all(isinstance(given, str) for given in _given(case, flag)):
            continue  # rules/flags.py
        value = setting.value.strip("[]")  # "[ngram]", as it was written once
        if value in (*names, "") or value.upper() in names or not value.isascii() or value.isdecimal():
            continue
        told = case.facts.lore.registries.other_parsers.get(f"{name}.{value}", "")
        when = f" (it {told})" if told else ""
        yield error(
            "DC501",
            "the engine cannot take this value",
            f"vLLM {case.facts.engine.version} has no --{name} {setting.value}{when}, and stops.",
            f"write one of {', '.join(names)}",
            setting.at,
        )


def _given(case: Case, flag: str) -> list[Any]:
    return [value for name, value in case.deploy.engine.args.items() if case.facts.engine.canonical(name) == flag]


OFFICIAL = "vllm/vllm-openai"


def _asked(case: Case, flag: str) -> tuple[str, Span | None]:
    """The parser, and where it is named."""
    key = flag.replace("-", "_")
    if (setting := written(case).get(flag)) is not None:
        return setting.value, setting.at
    return str(getattr(case.deploy.api, key) or ""), case.deploy.at(f"api.{key}")


def _architectures(case: Case) -> list[str]:
    names = case.facts.model.read_config.get("architectures")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
