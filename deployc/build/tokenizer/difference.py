"""Where two tokenizers, templates or generation configs differ in meaning, in lines for people.

Not compared, because nothing that is served depends on it: the order of keys and spaces in JSON, tokenizer_class,
padding_side, pad_token, truncation, model_max_length, the version that wrote a file, the list of additional special
tokens (what counts of it are the `special` flags of the tokens themselves).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deployc.build.tokenizer.meaning import Tokenizer

_SERVED = ("eos_token", "bos_token", "unk_token")
_NO_MATTER = ("transformers_version", "_from_model_config")


def tokenizers(old: Tokenizer, new: Tokenizer) -> list[str]:
    """What `new` says otherwise than `old`; empty where they mean the same."""
    lines = [*_tokens(old, new), *_flags(old, new)]
    for key in _SERVED:
        before, after = old.special.get(key), new.special.get(key)
        if before != after:
            lines.append(f"{key}: {_quoted(before)} -> {_quoted(after)}")
    lines += [
        f"{key}: {str(old.switches[key]).lower()} -> {str(new.switches[key]).lower()}"
        for key in sorted(old.switches.keys() & new.switches.keys())
        if old.switches[key] != new.switches[key]
    ]
    alike = "model" in old.rules and "model" in new.rules
    keys = sorted(old.rules.keys() | new.rules.keys()) if alike else sorted(old.rules.keys() & new.rules.keys())
    if parts := [key for key in keys if old.rules.get(key) != new.rules.get(key)]:
        lines.append(f"how text is split: {', '.join(parts)}")
    return lines


def templates(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """Chat templates by name ("default" for the only one)."""
    lines = []
    for name in sorted(old.keys() | new.keys()):
        before, after = _lines(old.get(name)), _lines(new.get(name))
        if before == after:
            continue
        which = "chat template" if name == "default" else f"chat template {name!r}"
        if before is None or after is None:
            lines.append(f"{which}: {_sized(before)} -> {_sized(after)}")
            continue
        at = next((i for i, (a, b) in enumerate(zip(before, after, strict=False), 1) if a != b), None)
        at = at or min(len(before), len(after)) + 1
        lines.append(f"{which}: {_sized(before)} -> {_sized(after)}, the first difference in line {at}")
    return lines


def generations(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """generation_config.json."""
    return [
        f"{key} of generation_config.json: {_shown(old.get(key))} -> {_shown(new.get(key))}"
        for key in sorted(old.keys() | new.keys())
        if key not in _NO_MATTER and _listed(key, old.get(key)) != _listed(key, new.get(key))
    ]


def _tokens(old: Tokenizer, new: Tokenizer) -> list[str]:
    lines = []
    more = [t for t in new.tokens if t not in old.tokens]
    gone = [t for t in old.tokens if t not in new.tokens]
    moved = [t for t, number in new.tokens.items() if old.tokens.get(t, number) != number]
    added = [t for t in more if t in new.added]
    if added:
        lines.append(f"added tokens: {_few(added, new)}")
    if len(added) < len(more) or any(t not in old.added for t in gone):
        lines.append(f"vocabulary: {len(old.tokens):,} -> {len(new.tokens):,} tokens, {len(more):,} of them new")
    if gone:
        lines.append(f"without the tokens: {_few(gone, old)}")
    if moved:
        lines.append(f"tokens with another id: {_few(moved, new)}")
    return lines


def _flags(old: Tokenizer, new: Tokenizer) -> list[str]:
    """A token that is special is left out of answers; its other flags say how text around it is split."""
    lines = []
    for flag in ("special", "single_word", "lstrip", "rstrip", "normalized"):
        for way in (True, False):
            changed = [
                t for t in new.added.keys() & old.added.keys()
                if flag in new.added[t] and old.added[t].get(flag, way) != way == new.added[t][flag]
            ]  # fmt: skip
            if changed:
                lines.append(
                    f"added tokens that are {'now' if way else 'no longer'} `{flag}`: {_few(sorted(changed), new)}"
                )
    return lines


def _few(tokens: list[str], of: Tokenizer) -> str:
    tokens = sorted(tokens, key=lambda t: of.tokens.get(t, -1))
    named = ", ".join(f"{t!r} ({of.tokens.get(t)})" for t in tokens[:3])
    return named + (f" and {len(tokens) - 3:,} more" if len(tokens) > 3 else "")


def _lines(text: str | None) -> list[str] | None:
    return None if text is None else text.rstrip().splitlines()


def _sized(lines: list[str] | None) -> str:
    return "none" if lines is None else f"{len(lines)} line{'s' if len(lines) != 1 else ''}"


def _quoted(text: str | None) -> str:
    return "none" if text is None else repr(text)


def _shown(value: Any) -> str:
    return "none" if value is None else str(value)


def _listed(key: str, value: Any) -> Any:
    """eos_token_id is a number or a list of them, in any order."""
    return sorted(value, key=str) if key == "eos_token_id" and isinstance(value, list) else [value]
