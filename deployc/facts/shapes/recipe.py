"""`quantization_config` of config.json, read: which linear layers are stored in which format.

Each method's rules for what stays at 16 bit are those of whoever loads it (vllm/model_executor/layers/quantization/,
0.25.1): `is_layer_skipped` for fp8 and awq, `is_layer_skipped_bnb`, `is_layer_excluded` of modelopt, `dynamic` of gptq,
`should_ignore_layer` of compressed-tensors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Any

from deployc.facts import faults
from deployc.types.config import quantization
from deployc.types.scheme import Scheme

Match = Callable[[str], bool]
"""Of a module's whole name, "model.layers.0.mlp.down_proj"."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Modules that match are stored so; None = left at 16 bit."""

    match: Match
    scheme: Scheme | None


@dataclass(frozen=True, slots=True)
class Recipe:
    """The first rule that matches a linear layer decides; where none does, it stays at 16 bit."""

    rules: tuple[Rule, ...]
    numbered: bool  # whether some rule names single layers, so that every name must be looked at
    towers: bool = True  # whether layers of vision and audio encoders are quantized where no rule keeps them
    experts_only: bool = False

    def scheme(self, module: str) -> Scheme | None:
        """What one module is stored in."""
        return next((rule.scheme for rule in self.rules if rule.match(module)), None)


def recipe(config: Mapping[str, Any]) -> Recipe:
    """What config.json says. Raises Fault DC209 for a method or variant that is not known here."""
    said = quantization(config)
    method = said.get("quant_method", "compressed-tensors" if "config_groups" in said else None)
    read = METHODS.get(str(method))
    if read is None:
        detail = f"{method!r:.40} is a quantization whose tensors are not known here."
        raise faults.unsupported("quantization_config.quant_method", f"{detail} Known are {', '.join(METHODS)}.")
    return read(said)


def by_parts(entry: str) -> Match:
    """One or several whole parts of the name, of the module or one around it; "re:" begins a regular expression."""
    if entry.startswith("re:"):
        return by_regex(entry[3:])
    return lambda name: f".{entry}." in f".{name}."


def by_regex(pattern: str) -> Match:
    """From the name's start. Raises Fault DC209 where it is no expression."""
    try:
        found = re.compile(pattern)
    except re.error as wrong:
        raise faults.unsupported("quantization_config", f"{pattern!r:.60} is no regular expression: {wrong}.") from None
    return lambda name: bool(found.match(name))


def _substring(entry: str) -> Match:
    return lambda name: entry in name


def _wildcard(entry: str) -> Match:
    """modelopt: part of the name, or a pattern with stars."""
    return lambda name: entry in name or fnmatch(name, entry)


def _anything(_: str) -> bool:
    return True


def _left(said: Mapping[str, Any], match: Callable[[str], Match], *keys: str) -> list[Rule]:
    """What the first of these keys leaves at 16 bit."""
    entries: Any = next((said[key] for key in keys if said.get(key)), [])
    if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
        raise faults.unsupported(f"quantization_config.{keys[0]}", f"a list of names is expected, not {entries!r:.60}.")
    return [Rule(match(entry), None) for entry in entries]


def _recipe(said: Mapping[str, Any], rules: Iterable[Rule], **rest: bool) -> Recipe:
    """`numbered` where any name or pattern of the config holds a digit."""
    named = [*_strings({k: v for k, v in said.items() if k not in ("quant_method", "format", "quant_algo", "version")})]
    return Recipe(tuple(rules), any(c.isdigit() for text in named for c in text), **rest)


def _strings(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from (str(key) if str(key)[:1] in "+-" or "." in str(key) else "", *_strings(inner))
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)


def _number(said: Mapping[str, Any], key: str, default: int | None, allowed: tuple[int, ...] = ()) -> int:
    value = said.get(key, default)
    if type(value) is not int or (allowed and value not in allowed) or not -1 <= value <= 2**20:
        expected = f"one of {', '.join(map(str, allowed))}" if allowed else "a whole number"
        raise faults.unsupported(f"quantization_config.{key}", f"{expected} is expected, not {value!r:.40}.")
    return value


LM_HEAD = Rule(by_parts("lm_head"), None)


def _gptq(said: Mapping[str, Any]) -> Recipe:
    """Also auto-round's packing of that name. `dynamic`: "+:" or no prefix overrides, "-:" leaves at 16 bit."""
    if str(said.get("checkpoint_format", "gptq")) not in ("gptq", "gptq_v2"):
        raise faults.unsupported("quantization_config.checkpoint_format", f"{said['checkpoint_format']!r:.40}.")
    rules = [] if said.get("lm_head") else [LM_HEAD]
    for pattern, change in (said.get("dynamic") or {}).items():
        inner = by_regex(pattern.removeprefix("+:").removeprefix("-:"))
        rules.append(Rule(inner, None if pattern.startswith("-:") else _gptq_scheme({**said, **change})))
    rules.append(Rule(_anything, _gptq_scheme(said)))
    return _recipe({"dynamic": said.get("dynamic") or {}}, rules, towers=False)


def _gptq_scheme(said: Mapping[str, Any]) -> Scheme:
    group = _number(said, "group_size", 128)
    return Scheme("gptq", _number(said, "bits", None, (2, 3, 4, 8)), group=max(group, 0),
                  symmetric=bool(said.get("sym", True)), act_order=bool(said.get("desc_act")))  # fmt: skip


def _awq(said: Mapping[str, Any]) -> Recipe:
    if str(said.get("version", "gemm")).lower() != "gemm":
        raise faults.unsupported("quantization_config.version", f"{said['version']!r:.40}: the engine loads gemm only.")
    left = _left(said, _substring, "modules_to_not_convert")
    return _recipe(said, [*left, LM_HEAD, Rule(_anything, _awq_scheme(said))], towers=False)


def _awq_scheme(said: Mapping[str, Any]) -> Scheme:
    bits = _number(said, "w_bit" if "w_bit" in said else "bits", None, (4, 8))
    group = _number(said, "q_group_size" if "q_group_size" in said else "group_size", 128)
    zeros = said.get("zero_point", not said.get("sym", False))
    return Scheme("awq", bits, group=max(group, 0), symmetric=not zeros)


def _auto_round(said: Mapping[str, Any]) -> Recipe:
    """`extra_config`: other bits for single modules; 16 and more are left as they are."""
    packing = str(said.get("packing_format", "auto_round:auto_gptq"))
    if "gptq" not in packing and "awq" not in packing:
        raise faults.unsupported("quantization_config.packing_format", f"{packing!r:.40} is not known here.")
    make = _awq_scheme if "awq" in packing else _gptq_scheme
    rules = []
    for name, change in (said.get("extra_config") or {}).items():
        other = {**said, **change}
        match = by_regex(name) if re.search(r"[*\\^$|]", name) else by_parts(name)
        rules.append(Rule(match, None if int(other.get("bits", 16)) >= 16 else make(other)))
    return _recipe({"extra": said.get("extra_config") or {}}, [*rules, LM_HEAD, Rule(_anything, make(said))],
                   towers=False)  # fmt: skip


def _fp8(said: Mapping[str, Any]) -> Recipe:
    """A scale a tensor, or a block where `weight_block_size` is given; float32."""
    block = said.get("weight_block_size")
    if block is not None and not (isinstance(block, list) and len(block) == 2 and all(type(b) is int for b in block)):
        raise faults.unsupported("quantization_config.weight_block_size", f"two sizes are expected, not {block!r:.40}.")
    static = said.get("activation_scheme", "dynamic") == "static"
    scheme = Scheme("fp8", 8, group=0 if block else -1, block=tuple(block) if block else (0, 0), static_input=static,
                    scale="weight_scale_inv" if block else "weight_scale", scale_dtype="F32")  # fmt: skip
    left = _left(said, by_parts, "modules_to_not_convert", "ignored_layers")
    return _recipe(said, [*left, LM_HEAD, Rule(_anything, scheme)])


def _fbgemm(said: Mapping[str, Any]) -> Recipe:
    left = _left(said, by_parts, "modules_to_not_convert")
    return _recipe(said, [*left, LM_HEAD, Rule(_anything, Scheme("fp8", 8, scale_dtype="F32"))])


def _bitsandbytes(said: Mapping[str, Any]) -> Recipe:
    left = [*_left(said, by_parts, "llm_int8_skip_modules"), LM_HEAD]
    if said.get("load_in_8bit"):
        return _recipe(said, [*left, Rule(_anything, Scheme("bitsandbytes-8bit", 8))])
    block = _number(said, "bnb_4bit_blocksize", 64)
    double = bool(said.get("bnb_4bit_use_double_quant"))
    return _recipe(said, [*left, Rule(_anything, Scheme("bitsandbytes-4bit", 4, group=block, double=double))])


def _mxfp4(_: Mapping[str, Any]) -> Recipe:
    """gpt-oss: stacked experts only."""
    return Recipe((Rule(_anything, Scheme("mxfp4", 4, group=32)),), numbered=False, experts_only=True)


def _modelopt(said: Mapping[str, Any]) -> Recipe:
    """Also the form of hf_quant_config.json, nested under `quantization`."""
    inner = said.get("quantization")
    said = inner if isinstance(inner, Mapping) else said
    algorithm = str(said.get("quant_algo", "")).upper()
    schemes = {
        "FP8": Scheme("fp8", 8, group=-1, static_input=True, scale_dtype="F32"),
        "NVFP4": Scheme("nvfp4", 4, group=16, static_input=True, scale="weight_scale_2"),
    }
    if algorithm not in schemes:
        raise faults.unsupported("quantization_config.quant_algo", f"{algorithm!r:.40}; known are FP8 and NVFP4.")
    left = _left(said, _wildcard, "exclude_modules", "ignore")
    return _recipe(said, [*left, Rule(_anything, schemes[algorithm])])


def _compressed_tensors(said: Mapping[str, Any]) -> Recipe:
    """Groups of modules by target: "Linear" is every linear layer, else names or expressions, which go first."""
    groups = said.get("config_groups")
    if not isinstance(groups, Mapping) or not groups:
        raise faults.unsupported("quantization_config.config_groups", "there are none.")
    named, classes = [], []
    for key, group in groups.items():
        scheme = _compressed_scheme(f"quantization_config.config_groups.{key}", group, str(said.get("format", "")))
        for target in group.get("targets") or ["Linear"]:
            if target == "Linear":
                classes.append(Rule(_anything, scheme))
            else:
                named.append(Rule(by_parts(str(target)), scheme))
    return _recipe(said, [*_left(said, by_parts, "ignore"), *named, *classes])


def _compressed_scheme(key: str, group: Any, whole: str) -> Scheme:
    weights = group.get("weights") if isinstance(group, Mapping) else None
    if not isinstance(weights, Mapping):
        raise faults.unsupported(f"{key}.weights", "weights that stay as they are, or none.")
    form, bits = str(group.get("format") or whole), weights.get("num_bits")
    strategy, symmetric = weights.get("strategy"), bool(weights.get("symmetric", True))
    inputs = group.get("input_activations") or {}
    static = bool(inputs) and inputs.get("dynamic") is False
    size = _number(weights, "group_size", 0) if weights.get("group_size") else 0
    if form in ("float-quantized", "int-quantized", "naive-quantized") and bits == 8:
        block = weights.get("block_structure") or ((128, 128) if strategy == "block" else (0, 0))
        kind = "fp8" if weights.get("type") == "float" else "int8"
        per_group = -1 if strategy == "tensor" else size if strategy == "group" else 0
        return Scheme("fp8" if kind == "fp8" else "int8", 8, group=per_group, block=(int(block[0]), int(block[1])),
                      symmetric=symmetric, static_input=static)  # fmt: skip
    if form == "pack-quantized" and bits in (2, 3, 4, 8):
        by_group = weights.get("actorder") in ("group", True)
        return Scheme("packed", bits, group=size, symmetric=symmetric, act_order=by_group)
    if form == "nvfp4-pack-quantized":
        return Scheme("nvfp4", 4, group=16, static_input=bool(inputs))
    if form == "mxfp4-pack-quantized":
        return Scheme("mxfp4", 4, group=32)
    raise faults.unsupported(key, f"format {form!r:.40} with {bits!r:.10} bits is not known here.")


METHODS: Mapping[str, Callable[[Mapping[str, Any]], Recipe]] = {
    "awq": _awq,
    "gptq": _gptq,
    "compressed-tensors": _compressed_tensors,
    "fp8": _fp8,
    "fbgemm_fp8": _fbgemm,
    "bitsandbytes": _bitsandbytes,
    "mxfp4": _mxfp4,
    "modelopt": _modelopt,
    "auto-round": _auto_round,
}
