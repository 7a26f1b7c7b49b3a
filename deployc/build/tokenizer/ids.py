"""Ids of config.json and generation_config.json that no row of the embedding belongs to.

Rule: such an eos, bos or pad id is replaced by the tokenizer's own where that has a row, else taken out; an eos that
leaves nothing behind, where generation ends by it, is an error. Negative ids stay: old configs write -1 for "none".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deployc.build.tokenizer import faults
from deployc.build.tokenizer.meaning import Tokenizer
from deployc.diagnostics import Report

NESTED = "text_config"
_KEYS = ("eos", "bos", "pad")


def listed(value: Any) -> list[int]:
    """eos_token_id as a list: it is a number or a list of them."""
    return [v for v in (value if isinstance(value, list) else [value]) if type(v) is int]


def mended(
    values: Mapping[str, Any], where: str, tokenizer: Tokenizer, rows: int, needed: bool, report: Report
) -> dict[str, Any]:
    """The keys that must change, with their new values; `needed`: generation ends by this eos_token_id."""
    changes: dict[str, Any] = {}
    for name in _KEYS:
        key = f"{name}_token_id"
        was = values.get(key)
        wrong = [number for number in listed(was) if number >= rows]
        if not wrong:
            continue
        left = [number for number in listed(was) if number < rows]
        own = tokenizer.id(f"{name}_token")
        if not left and own is not None and own < rows:
            left = [own]
        if not left and name == "eos" and needed:
            report.add(faults.id_beyond(where, key, was, rows))
            continue
        now = left if isinstance(was, list) else left[0] if left else None
        changes[key] = now or None if isinstance(now, list) else now
        report.add(faults.mended_id(where, key, was, changes[key], rows))
    return changes


def of_config(
    config: Mapping[str, Any], tokenizer: Tokenizer, rows: int, needed: bool, report: Report
) -> dict[str, Any]:
    """Changes to config.json, and to its language part where that has ids of its own; `needed` as above."""
    changes = mended(config, "config.json", tokenizer, rows, needed, report)
    nested = config.get(NESTED)
    if isinstance(nested, dict) and (inner := mended(nested, f"config.json {NESTED}", tokenizer, rows, needed, report)):
        changes[NESTED] = {**nested, **inner}
    return changes
