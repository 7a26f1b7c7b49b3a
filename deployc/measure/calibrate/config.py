"""A row's short `model_config` -> the config.json that `deployc.facts.model.from_config` takes.

The short form leaves out what the family fixes: the model_type, the nesting of a model with several modalities, the
order of its layers. What the family does not fix is an `Unknown` that names the key, never a guess.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from deployc.data import profiles
from deployc.facts.architecture import FAMILIES, WHOLES
from deployc.measure.calibrate.rows import Row

_NOT_OF_CONFIG = ("vision", "has_vision_tower", "sliding_layers_per_full", "architectures", "model_type")
_POSITIONS = 4096
KINDS = {"bfloat16": "bfloat16", "bf16": "bfloat16", "float16": "float16", "half": "float16", "float32": "float32"}
"""Names of dtypes in rows -> those of config.json."""


class Unknown(Exception):
    """A row that cannot be predicted; the message says which key is missing or unknown."""


@dataclass(frozen=True, slots=True)
class Config:
    """A config.json, and what had to be put into it that the row does not say.

    `assumed` are inputs by the names of `Start.assumed`: "max_model_len", "towers". `released` is the quantization
    that the family's own checkpoints come in; "" = none.
    """

    values: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    assumed: frozenset[str] = frozenset()
    released: str = ""


def config_json(row: Row) -> Config:
    """The row's config.json, without its quantization. Raises Unknown."""
    short = row.config
    if not short:
        raise Unknown("model_config: there is none")
    if "model_type" in short:  # a whole config.json
        return _whole(row, short)
    name, notes = _architecture(row, short)
    own = released()["released"].get(name, {})
    text, told = _language_model(row, {**own.get("text", {}), **short})
    notes += told
    assumed = {"max_model_len"} if told and not row.max_model_len else set()
    whole = next((model_type for model_type, one in WHOLES.items() if one.name == name), None)
    flat = next((model_type for model_type, one in FAMILIES.items() if one.name == name), None)
    if whole is not None:
        values = _nest(name, whole, text, short, own)
        if "vision_config" not in values:
            notes.append("the row does not show the vision tower: the language model alone")
            assumed.add("towers")
    elif flat is None:
        raise Unknown(f"model_config.architectures: the model_type of {name} is not known")
    elif short.get("has_vision_tower") or short.get("vision"):
        raise Unknown(f"model_config.vision: {name} is known here as a language model alone")
    else:
        values = {**text, "architectures": [name], "model_type": flat}
    return Config(values, tuple(notes), frozenset(assumed), own.get("quantization", ""))


def _whole(row: Row, written: Mapping[str, Any]) -> Config:
    """A config.json as it is, but for the dtype: an engine started, so that it had one, and the row may tell it."""
    kind = WHOLES.get(str(written["model_type"]))
    inner = written.get(kind.key) if kind is not None else None
    if any(_dtype(part) for part in (written, inner) if isinstance(part, Mapping)):
        return Config(dict(written))
    told = KINDS.get(row.dtype or "")
    notes = () if told else ("the model's dtype is not said: bfloat16 assumed",)
    return Config({**written, "torch_dtype": told or "bfloat16"}, notes)


def _dtype(values: Mapping[str, Any]) -> Any:
    return values.get("dtype") or values.get("torch_dtype")


def _architecture(row: Row, short: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The model's class: as the row has it, else by the model's name."""
    names = short.get("architectures")
    if isinstance(names, list) and names and isinstance(names[0], str):
        return names[0], []
    tower = bool(short.get("has_vision_tower") or short.get("vision"))
    table: Mapping[str, str] = released()["names"]["vision" if tower else "text"]
    for called in (row.model.lower(), row.family.lower()):
        for part, name in table.items():
            if part in called:
                return name, [f"{name} by the model's name"]
    raise Unknown(f"model_config.architectures: not there, and {row.model or 'no model name'} does not tell it")


def _language_model(row: Row, short: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The keys of the language model, layers in their order, with the dtype and the positions that it needs."""
    notes: list[str] = []
    values = {key: value for key, value in short.items() if key not in _NOT_OF_CONFIG}
    layers, sliding = values.get("num_hidden_layers"), short.get("sliding_layers_per_full")
    if isinstance(values.get("layer_types"), dict):
        values["layer_types"] = spread(values["layer_types"])
    elif isinstance(sliding, int) and isinstance(layers, int):
        unit = ["sliding_attention"] * sliding + ["full_attention"]
        values["layer_types"] = [unit[layer % len(unit)] for layer in range(layers)]
    if _dtype(values) is None:
        values = {key: value for key, value in values.items() if key != "dtype"} | {"torch_dtype": "bfloat16"}
    if values.get("max_position_embeddings") is None:
        known = row.max_model_len or _POSITIONS
        table: Mapping[str, int] = released()["positions"]
        named = next((most for part, most in table.items() if part in row.model.lower()), None)
        values["max_position_embeddings"] = max(named or known, row.max_model_len or 0)
        if named is None:
            notes.append(f"the model's positions are not known: {known:,} assumed")
    return values, notes


def spread(counts: Mapping[str, Any]) -> list[str]:
    """{"sliding_attention": 50, "full_attention": 10} as a list: the rarer kind ends each of its equal stretches.

    So the released models have them: Gemma 3 and 4 five sliding and one full, gpt-oss one and one, Qwen3.5 three
    linear and one full. Of memory only the split between pipeline stages depends on it. Raises Unknown.
    """
    if not counts or not all(type(count) is int and 0 <= count <= 1000 for count in counts.values()):
        raise Unknown(f"model_config.layer_types: counts are expected, not {dict(counts)!r:.60}")
    kinds = sorted(counts, key=lambda kind: (counts[kind], kind == "sliding_attention"))
    order = [kinds[-1]] * sum(counts.values())
    free = list(range(len(order)))
    for kind in kinds[:-1]:
        many, room = counts[kind], len(free)
        taken = [place for at, place in enumerate(free) if (at + 1) * many // room > at * many // room]
        for place in taken:
            order[place] = kind
        free = [place for place in free if place not in taken]
    return order


def _nest(
    name: str, model_type: str, text: Mapping[str, Any], short: Mapping[str, Any], of: Mapping[str, Any]
) -> dict[str, Any]:
    """The language model and the tower each in its own object, as these models are published."""
    whole = WHOLES[model_type]
    shown = short.get("vision") if isinstance(short.get("vision"), dict) else {}
    tower = {**of.get("vision", {}), **(shown or {})}
    own = {key: text[key] for key in ("tie_word_embeddings", "dtype", "torch_dtype") if key in text}
    values = {"architectures": [name], "model_type": model_type, **of.get("whole", {}), **own}
    values[whole.key] = {**text, "model_type": whole.text}
    if "hidden_size" in tower:
        values["vision_config"] = {"model_type": whole.vision, **tower}
    return values


@cache
def released() -> Mapping[str, Any]:
    """profiles/calibration/families.json: what is common to the released models of a family."""
    read: Mapping[str, Any] = json.loads((profiles() / "calibration" / "families.json").read_text(encoding="utf-8"))
    return read
