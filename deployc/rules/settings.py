"""What is set, as one table: flags and keys of their maps, variables of the environment, the deployment's own state.

Remarks of profiles/engines/remarks.json are matched against it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from deployc.cost.context import positions
from deployc.cost.kv_cache import keeps_prefixes
from deployc.diagnostics import Span
from deployc.rules.case import Case


class Setting(NamedTuple):
    """A value as text ("true", "20", "awq") and where it stands; `at` is None for what the file does not write."""

    value: str
    at: Span | None = None


def settings(case: Case) -> dict[str, Setting]:
    """By name: "enforce-eager", "compilation-config.cudagraph_mode", "NCCL_DEBUG", "model.quantization"."""
    return {**_state(case), **written(case)}


def written(case: Case) -> dict[str, Setting]:
    """The flags, keys of their maps and variables among them: a launch of others has these and no more."""
    return {**dict(_flags(case)), **dict(_variables(case))}


def _flags(case: Case) -> Iterator[tuple[str, Setting]]:
    """`no-x: true` is `x: false`; a map counts by its keys too."""
    for written, value in case.deploy.engine.args.items():
        if value is None:
            continue
        at, (name, off) = case.deploy.at(("engine", "args", written)), case.facts.engine.positive(written)
        if off and isinstance(value, bool):
            yield name, Setting(text(not value), at)
            continue
        yield name, Setting(text(value), at)
        for key, inner in value.items() if isinstance(value, dict) else ():
            yield f"{name}.{str(key).replace('-', '_')}", Setting(text(inner), at)


def _variables(case: Case) -> Iterator[tuple[str, Setting]]:
    for name, value in case.deploy.engine.env.items():
        yield name, Setting(value, case.deploy.at(("engine", "env", name)))


def _state(case: Case) -> dict[str, Setting]:
    """What the deployment is, whoever decided it; what is not known is left out."""
    choices, facts, deploy = case.choices, case.facts, case.deploy
    card = facts.smallest
    state = {
        "adapters.mode": choices.adapter_mode.value,
        "model.quantization": served_method(case),
        "model.dtype": choices.dtype.value,
        "model.keeps_prefixes": text(keeps_prefixes(facts)),
        "model.fetched": text(facts.model.hub != "folder" and not choices.needs_build),
        "hardware.gpu": "cpu" if case.on_cpu else "gpu",
        "hardware.interconnect": card.interconnect,
        "engine.parallel.tensor": text(choices.tensor_parallel_size.value),
        "engine.parallel.pipeline": text(choices.pipeline_parallel_size.value),
        "workload.beyond_positions": text(choices.max_model_len.value > positions(deploy, facts)),
    }
    if card.compute_capability is not None:
        major, minor = card.compute_capability
        state["hardware.capability"] = f"{major}.{minor}"
    if deploy.api.servers != "auto":
        state["api.servers"] = text(deploy.api.servers)
    if deploy.api.tool_call_parser is not None:
        state["api.tool_call_parser"] = deploy.api.tool_call_parser
    return {name: Setting(value) for name, value in state.items()}


def served_method(case: Case) -> str:
    """What the served weights are in, by the name in their config.json: "none", "compressed-tensors", "awq" …"""
    if case.choices.weights.value not in ("none", "checkpoint"):
        return "compressed-tensors"
    return str(case.facts.model.quantization.get("quant_method") or "none").lower()


def text(value: Any) -> str:
    """As the command line has it: true, 20, awq."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def holds(value: str, wanted: Sequence[str]) -> bool:
    """Whether a value is one of those wanted, which `types/lore.py` describes; of none at all, every one is."""
    return not wanted or any(_is(value, one) for one in wanted)


def all_hold(known: Mapping[str, Setting], wanted: Mapping[str, Sequence[str]]) -> bool:
    """Whether every named setting is set, to a value that is wanted."""
    return all(name in known and holds(known[name].value, values) for name, values in wanted.items())


def any_holds(known: Mapping[str, Setting], wanted: Mapping[str, Sequence[str]]) -> bool:
    """Whether at least one is."""
    return any(name in known and holds(known[name].value, values) for name, values in wanted.items())


def _is(value: str, wanted: str) -> bool:
    if wanted.startswith("!%"):
        return value.isdecimal() and int(value) % int(wanted[2:]) != 0
    if wanted.startswith("!"):
        return value.lower() != wanted[1:].lower()
    if wanted.startswith("*") and wanted.endswith("*") and len(wanted) > 2:
        return wanted[1:-1] in value
    if wanted[:1] in "<>":
        return _beyond(value, wanted)
    return value == wanted


def _beyond(value: str, wanted: str) -> bool:
    """`>20`, `>=8`, `<1`; what is no number lies nowhere."""
    bound = wanted.lstrip("<>=")
    try:
        number, limit = float(value), float(bound)
    except ValueError:
        return False
    if number == limit:
        return "=" in wanted
    return number > limit if wanted[0] == ">" else number < limit
