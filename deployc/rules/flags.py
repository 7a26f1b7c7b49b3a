"""`engine.args` against the catalogue of this very version."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from deployc.cost.written import as_count, written_flag
from deployc.diagnostics import Diagnostic, error, warning
from deployc.rules.case import Case
from deployc.rules.spelling import inside
from deployc.types import json_text
from deployc.types.facts import Flag

OWNERS: Mapping[str, tuple[str, ...]] = {
    "tensor-parallel-size": ("engine.parallel.tensor",),
    "gpu-memory-utilization": ("engine.gpu_memory_utilization",),
    "max-model-len": ("workload.max_context",),
    "dtype": ("model.dtype",),
    "kv-cache-dtype": ("quantization.kv_cache",),
    "served-model-name": ("api.served_model_name",),
    "chat-template": ("api.chat_template",),
    "tool-call-parser": ("api.tool_call_parser",),
    "reasoning-parser": ("api.reasoning_parser",),
    "override-generation-config": ("api.generation",),
    "api-server-count": ("api.servers",),
    "trust-remote-code": ("model.trust_remote_code",),
    "hf-overrides": ("model.overrides", "model.context"),
    "rope-scaling": ("model.context",),
}
"""Flags that other keys of the file set too."""

LEAST = {
    name: 1
    for name in (
        "max-num-seqs",
        "max-num-batched-tokens",
        "tensor-parallel-size",
        "max-loras",
        "max-lora-rank",
        "block-size",
    )
} | {"max-model-len": -1}
"""Counts of which the engine needs one; max_model_len -1 lets the engine choose (vllm/config/model.py)."""


BARE = ("hf-token",)
"""Flags with a value that may stand without one: then the token is the one that was logged in with (nargs "?",
vllm/engine/arg_utils.py)."""

TYPES: Mapping[str, str] = {
    "int": "a whole number",
    "size": "a whole number, or a short form: 16k is 16,000, 16K 16,384",
    "float": "a number",
    "bool": "true or false",
    "json": "a map, or its JSON as one text",
    "list": "a list",
}
"""What a flag takes, in words."""


def known(case: Case) -> Iterator[Diagnostic]:
    """A flag that this version's parser does not have stops the engine at once."""
    flags = case.facts.engine.flags
    for written in case.deploy.engine.args:
        name, _, key = case.facts.engine.canonical(written).partition(".")
        of_a_map = bool(key) and name in flags and flags[name].type == "json"
        switch = flags.get(name.removeprefix("no-"))
        if of_a_map or (not key and (name in flags or (switch is not None and switch.type == "bool"))):
            continue
        if name in case.facts.lore.gone:
            yield _gone(case, written, name)
        elif name in case.facts.lore.came:
            yield _not_yet(case, written, name)
        else:
            yield _unknown(case, written, name)


def _unknown(case: Case, written: str, name: str) -> Diagnostic:
    flags, notion = case.facts.engine.flags, case.facts.lore.notions.get(name, "")
    close = get_close_matches(name, list(flags), 1, 0.7)
    guess = f"did you mean {close[0]}?" if close else "remove it, or look it up in that version's documentation"
    return error(
        "DC500",
        "the engine has no such flag",
        f"vLLM {case.facts.engine.version} has no --{name} ({len(flags)} options in its catalogue)."
        + (f" {notion}" if notion else ""),
        "remove it" if notion else guess,
        case.deploy.at(("engine", "args", written)),
    )


def _not_yet(case: Case, written: str, name: str) -> Diagnostic:
    came, going = case.facts.lore.came[name], case.facts.lore.going
    then = [
        old for old, one in going.items() if f"engine.args.{name}:" in one.instead and old in case.facts.engine.flags
    ]
    other = f"set {', '.join(then)}, which it took the place of" if then else "remove the flag"
    return error(
        "DC507",
        "the engine does not have this flag yet",
        f"--{name} came in vLLM {came}; {case.facts.engine.version} would not start with it.",
        f"set engine.version: {came} or a newer one, or {other}",
        case.deploy.at(("engine", "args", written)),
    )


def _gone(case: Case, written: str, name: str) -> Diagnostic:
    gone = case.facts.lore.gone[name]
    instead = gone.put(json.dumps(case.deploy.engine.args[written]))
    why = f" {gone.why}" if gone.why else ""
    return error(
        "DC502",
        "the engine no longer has this flag",
        f"--{name} went in vLLM {gone.gone}; {case.facts.engine.version} would not start with it.{why}",
        f"remove it; {instead}" if instead else "remove it: nothing needs to stand in its place",
        case.deploy.at(("engine", "args", written)),
    )


def going(case: Case) -> Iterator[Diagnostic]:
    """A flag that this version still takes, but says will go or has no effect."""
    for written, value in case.deploy.engine.args.items():
        flag = case.facts.engine.flags.get(case.facts.engine.canonical(written))
        if flag is None or not flag.deprecated:
            continue
        gone = case.facts.lore.going.get(flag.name)
        instead = gone.put(json.dumps(value)) if gone else ""
        named = re.findall(r"engine\.args\.([a-z0-9-]+)", instead)
        yield warning(
            "DC505",
            "the engine flag is deprecated",
            f"vLLM {case.facts.engine.version} says of --{flag.name}: {flag.deprecated}"
            + (f" It went in {gone.gone}." if gone else ""),
            f"remove it; {instead}" if instead and all(n in case.facts.engine.flags for n in named) else "remove it",
            case.deploy.at(("engine", "args", written)),
        )


def typed(case: Case) -> Iterator[Diagnostic]:
    """A value that the parser cannot take."""
    for written, value in case.deploy.engine.args.items():
        flag = case.facts.engine.flags.get(case.facts.engine.canonical(written))
        unsaid = flag is None or value is None or inside(value) is not None  # quoted: DC523
        wrong = "" if flag is None or unsaid else _wrong(flag, value)
        if flag is not None and wrong:
            choices = f"one of {', '.join(flag.choices[:12])}" if flag.choices else TYPES.get(flag.type, "a text")
            yield error(
                "DC501",
                "the engine cannot take this value",
                f"--{flag.name} {wrong}.",
                f"write {choices}",
                case.deploy.at(("engine", "args", written)),
            )


def _wrong(flag: Flag, value: Any) -> str:
    if value == "":
        return "" if flag.default == "" else "is given an empty text"
    return _unsayable(flag, value) or _no_choice(flag, value) or _no_number(flag, value) or _no_text(flag, value)


def _unsayable(flag: Flag, value: Any) -> str:
    """What no command line can say: a flag without its value, several values where one stands."""
    if flag.type != "bool" and isinstance(value, bool) and flag.name not in BARE:
        return f"needs a value, and {json.dumps(value)} is none: `null` leaves it out"
    if flag.type not in ("json", "list") and isinstance(value, list):
        return f"takes one value, not the {len(value)} of a list"
    if value == [] and flag.type == "list" and flag.default not in (None, "[]"):
        return "is given an empty list, which no command line can say"
    return ""


def _no_choice(flag: Flag, value: Any) -> str:
    values = value if isinstance(value, list) else [] if isinstance(value, bool) else [value]
    other = [one for one in values if str(one) not in flag.choices] if flag.choices else []
    return f"is not given one of its choices: {other[0]!r}" if other else ""


def _no_number(flag: Flag, value: Any) -> str:
    if flag.type == "bool" and not isinstance(value, bool):
        return f"is a switch, not {value!r}: write true or false"
    if flag.type in ("int", "size") and as_count(value) is None and value not in ("auto", -1):
        return f"takes a whole number, not {value!r}"
    if flag.type == "float" and (isinstance(value, bool) or not isinstance(value, int | float)):
        return f"takes a number, not {value!r}"
    if flag.name in LEAST and (as_count(value) or 0) < LEAST[flag.name]:
        return f"must be at least {LEAST[flag.name]}, not {value!r}"
    if flag.name == "gpu-memory-utilization" and not 0 < value <= 1:
        return f"is a share of the card, above 0 and at most 1, not {value!r}"
    return ""


def _no_text(flag: Flag, value: Any) -> str:
    as_text = flag.default is not None and not _is_json(flag.default)  # where its default is a text, it takes others
    if flag.type == "json" and isinstance(value, str) and not as_text and not _is_json(value):
        return f"takes JSON, and this is none: {value[:60]!r}"
    return ""


def _is_json(text: str) -> bool:
    try:
        json_text.loads(text)
    except ValueError:
        return False
    return True


def set_twice(case: Case) -> Iterator[Diagnostic]:
    """One thing set by a flag and by a key, or by two spellings: the two could disagree, and one of them is lost."""
    spelt: dict[str, str] = {}
    for written in case.deploy.engine.args:
        name = case.facts.engine.canonical(written)
        positive, _ = case.facts.engine.positive(written)
        first = spelt.setdefault(positive, written)
        if first != written:
            yield error(
                "DC503",
                "one thing is set twice",
                f"engine.args.{written} and engine.args.{first} are one flag, --{positive}.",
                f"keep {positive}",
                case.deploy.at(("engine", "args", written)),
            )
        owner = next((key for key in OWNERS.get(name, ()) if case.deploy.written(key)), None)
        if owner:
            yield error(
                "DC503",
                "one thing is set twice",
                f"engine.args.{written} and {owner} ({case.deploy.because(owner)}) set the same flag.",
                f"keep {owner}",
                case.deploy.at(("engine", "args", written)),
            )


def coherent(case: Case) -> Iterator[Diagnostic]:
    """vllm/config/scheduler.py: a step holds at least a token for each sequence."""
    tokens, seqs = case.choices.max_num_batched_tokens, case.choices.max_num_seqs
    if tokens.value < seqs.value:
        yield error(
            "DC504",
            "a step holds fewer tokens than sequences",
            f"max_num_batched_tokens {tokens.value} < max_num_seqs {seqs.value}; the engine does not start.",
            f"set max-num-batched-tokens to at least {seqs.value}, or lower max-num-seqs",
            case.at("max-num-batched-tokens" if tokens.because != "default" else "max-num-seqs", "engine.args"),
        )
    length, chunked = case.choices.max_model_len, written_flag(case.deploy, case.facts, "enable-chunked-prefill")
    if chunked is not None and chunked[0] is False and tokens.value < length.value:
        yield error(
            "DC506",
            "a prompt must fit into one step without chunked prefill",
            f"max_num_batched_tokens {tokens.value} < max_model_len {length.value} and enable-chunked-prefill is off; "
            "the engine does not start.",
            f"leave chunked prefill on, or set max-num-batched-tokens to {length.value}",
            case.at("enable-chunked-prefill", "engine.args"),
        )
