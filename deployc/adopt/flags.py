"""Flags of a launch -> the keys of deploy.yaml that own them, or `engine.args`; what stays behind, and why."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from deployc.adopt.engine import Engine
from deployc.adopt.typed import as_json, merged, python_literal, typed, unquoted
from deployc.cost.written import as_count
from deployc.source.secrets import secret_name
from deployc.spec.unsupported import NOT_YET
from deployc.types.facts import Flag
from deployc.types.launch import FoundFlag, FoundLaunch

_OURS = {"host": "target.bind", "port": "target.port", "api-key": "target.api_key", "enable-lora": "adapters",
         "lora-modules": "adapters", "config": "this file", "enable-auto-tool-choice": "api.tool_call_parser",
         "uds": "target.bind", "revision": "model.revision"}  # fmt: skip
"""Flags that deployc writes itself, from the key named."""


_LEVEL = Flag("level", "int")
_OPEN = re.compile(r"\$(?:\{?[A-Za-z_]\w*|\(|[@*])|%[A-Za-z_]\w*%|<[A-Za-z][\w ,./|:-]*>")


@dataclass(slots=True)
class Placed:
    """Values by dotted key, `engine.args` by flag, a comment by either, and what was left out with its reason."""

    keys: dict[str, Any] = field(default_factory=dict)
    args: dict[str, Any] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)
    left_out: list[tuple[str, str]] = field(default_factory=list)  # (as written, why)

    def key(self, dotted: str, value: Any, comment: str = "") -> None:
        """Set a key, the last time wins as on a command line."""
        self.keys[dotted] = value
        if comment:
            self.comments[dotted] = comment


def placed(launch: FoundLaunch, engine: Engine) -> Placed:
    """Each flag to its place. A flag that is gone, or does nothing, stays behind with the reason."""
    found = Placed()
    dotted = merged([flag for flag in launch.flags if "." in flag.name])
    for flag in launch.flags:
        if "." not in flag.name and not (flag.value is None and launch.source == "config"):
            _place(found, flag, engine)
    for name, value in dotted.items():
        canonical = engine.facts.canonical(name)
        before = found.args.get(canonical)
        found.args[canonical] = {**before, **value} if isinstance(before, dict) else value
    if adapters := adapters_of(launch):
        found.key("adapters", adapters)
    return found


def canonical(written: str, engine: Engine) -> str:
    """The catalogue's name of a flag, also of one that is cut short or is switched off by `no-`."""
    name = engine.facts.canonical(written)
    if name in engine.facts.flags or name in engine.lore.gone:
        return name
    known = engine.known(name)
    return known.name if known is not None and known.name.startswith(name) and name not in known.aliases else name


def _place(found: Placed, flag: FoundFlag, engine: Engine) -> None:
    name, value = named(flag, engine)
    shown = f"{flag.written} {flag.text}".strip()
    there = engine.facts.flags.get(name)
    if there is None and name in engine.lore.gone:
        gone = engine.lore.gone[name]
        if (rope := _yarn(name, value)) is not None:
            found.key("model.context", rope, f"was {shown}: that flag went in vLLM {gone.gone}")
            return
        instead = gone.put(json.dumps(value, ensure_ascii=False))
        found.left_out.append((shown, f"gone since vLLM {gone.gone}" + (f"; {instead}" if instead else "")))
    elif there is None:
        found.left_out.append((shown, f"vLLM {engine.facts.version} has no such flag"))
    elif there.deprecated:
        found.left_out.append((shown, f"deprecated: {' '.join(there.deprecated.split())}"))
    elif secret_name(name) and name not in _OURS and isinstance(value, str):
        found.left_out.append((flag.written, "it looks like a secret: the engine's own environment must bring it"))
    elif name in _PUT and _PUT[name][0] not in NOT_YET and (put := _PUT[name][1](value)) is not None:
        found.key(_PUT[name][0], put, "" if str(put) in str(value) else f"was {shown}")
    elif name not in _OURS and not (there.name in _PUT and value == "auto"):
        found.args[name] = value
        if there.default is not None and str(value).lower() == there.default.lower():
            found.comments[f"engine.args.{name}"] = f"the default of vLLM {engine.facts.version}"


def is_open(value: Any) -> bool:
    """Whether a value is to be filled in: `$MODEL`, `$(…)`, `<your model>`."""
    return isinstance(value, str) and bool(_OPEN.search(value))


def named(flag: FoundFlag, engine: Engine) -> tuple[str, Any]:
    """The catalogue's name of a flag and its value: `--no-x` is x: false."""
    if flag.name in ("O", "optimization-level") and "optimization-level" not in engine.facts.flags:
        return "compilation-config", {"level": typed(_LEVEL, flag.value)}  # before there were levels: -O3 was its key
    name = "optimization-level" if flag.name == "O" else canonical(flag.name, engine)
    value = value_of(flag, engine.known(name))
    positive, off = engine.facts.positive(flag.name)
    return (positive, value is not True) if off else (name, value)


def value_of(flag: FoundFlag, known: Flag | None) -> Any:
    """The value in the flag's type; of JSON with quotes too many, or written as Python writes it, what was meant."""
    if known is not None and known.type == "json" and isinstance(flag.value, str):
        inner = unquoted(flag.value)
        for text in (flag.value, inner or ""):
            read = as_json(text)
            read = python_literal(text) if read is None else read
            if read is not None:
                return read
    return typed(known, flag.value)


def _yarn(name: str, value: Any) -> dict[str, Any] | None:
    """`--rope-scaling {"rope_type": "yarn", "factor": 4 …}` as model.context."""
    value = as_json(value) if isinstance(value, str) else value
    if name != "rope-scaling" or not isinstance(value, dict):
        return None
    factor = value.get("factor")
    kind = value.get("rope_type", value.get("type"))
    return {"rope": "yarn", "factor": factor} if kind == "yarn" and isinstance(factor, int | float) else None


_DTYPES = {"half": "float16", "float16": "float16", "bfloat16": "bfloat16"}
Put = Callable[[Any], Any]
"""The value as the key has it; None where the key cannot hold it, and the flag stays a flag."""


def _length(value: Any) -> Any:
    count = as_count(value)
    return count if count is not None and count >= 1 else None


def _count(value: Any) -> Any:
    return value if isinstance(value, int) and value >= 1 else None


def _share(value: Any) -> Any:
    return value if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1 else None


def _map(value: Any) -> Any:
    return value if isinstance(value, dict) else None


def _text(value: Any) -> Any:
    return value if isinstance(value, str) and value else None


_PUT: dict[str, tuple[str, Put]] = {
    "tensor-parallel-size": ("engine.parallel.tensor", _count),
    "pipeline-parallel-size": ("engine.parallel.pipeline", _count),
    "enable-expert-parallel": ("engine.parallel.expert", lambda value: value if isinstance(value, bool) else None),
    "speculative-config": ("engine.speculative", _map),
    "api-server-count": ("api.servers", _count),
    "gpu-memory-utilization": ("engine.gpu_memory_utilization", _share),
    "max-model-len": ("workload.max_context", _length),
    "dtype": ("model.dtype", lambda value: _DTYPES.get(str(value))),
    "kv-cache-dtype": ("quantization.kv_cache", lambda value: "fp8" if value == "fp8" else None),
    "served-model-name": ("api.served_model_name", lambda value: value if isinstance(value, list) else [str(value)]),
    "chat-template": ("api.chat_template", _text),
    "tool-call-parser": ("api.tool_call_parser", _text),
    "reasoning-parser": ("api.reasoning_parser", _text),
    "trust-remote-code": ("model.trust_remote_code", lambda value: value if isinstance(value, bool) else None),
    "hf-overrides": ("model.overrides", _map),
    "override-generation-config": ("api.generation", _map),
    "revision": ("model.revision", _text),
}
"""Flag -> the key of deploy.yaml that sets it; one that nothing heeds yet stays a flag."""


def adapters_of(launch: FoundLaunch) -> list[dict[str, Any]]:
    """`--lora-modules name=path …` as adapters that are served."""
    flag = launch.flag("lora-modules")
    words = flag.value if flag and isinstance(flag.value, list) else [flag.text] if flag else []
    found = []
    for word in map(str, words):
        read = as_json(word) if word.startswith("{") else None
        name, _, path = word.partition("=")
        if isinstance(read, dict) and {"name", "path"} <= read.keys():
            name, path = str(read["name"]), str(read["path"])
        if name and path and re.match(r"[\w.-]+\Z", name):
            found.append({"name": name, "source": path, "mode": "serve"})
    return found
