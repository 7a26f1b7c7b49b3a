"""What to do about a failure: by the flags that the engine names, by the figures that it prints, by the code's page."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from deployc.types.lore import Gone

_FLAG = re.compile(r"--([a-z][a-z0-9_.-]{1,80})(?:[ =]([^\s-]\S{0,80}))?", re.IGNORECASE)


def first(markdown: str) -> str:
    """Its first paragraph in one line: the page has the rest."""
    return " ".join(markdown.partition("\n\n")[0].split()).rstrip(".")


def flags(text: str, gone: Mapping[str, Gone]) -> tuple[str, str, str]:
    """DC502 where one of the flags went, with what takes its place; else DC500."""
    said, instead = [], []
    for flag, value in _FLAG.findall(text.partition("arguments:")[2]):
        name = flag.lower().replace("_", "-")
        if (one := gone.get(name)) is not None:
            said.append(f" `--{name}` went in vLLM {one.gone}.{f' {one.why}' if one.why else ''}")
            instead.append(one.put(value or "true") if one.instead else f"remove {name}")
    if not said:
        return "DC500", "", ""
    return "DC502", "".join(said), "; ".join(dict.fromkeys(instead))


def by_figures(code: str, facts: Mapping[str, float | str], text: str) -> str:
    """What the log's own figures allow, as a key and its value; "" where it names none."""
    length, tokens = facts.get("longest_context"), facts.get("kv_cache_tokens")
    free, total, positions = facts.get("free_gib"), facts.get("total_gib"), facts.get("positions")
    fits = length if isinstance(length, float) else tokens
    if code == "DC302" and isinstance(fits, float):
        return f"workload.max_context: {int(fits)} or less, as things are"
    if code == "DC520" and isinstance(positions, float):
        return f"workload.max_context: {int(positions)} or less"
    if code == "DC303" and isinstance(free, float) and isinstance(total, float) and free < total:
        return f"engine.gpu_memory_utilization: {math.floor(100 * free / total) / 100:.2f} or less, as things are"
    if code == "DC595" and (rank := re.search(r"LoRA rank (\d{1,6}) ", text)):
        return f"engine.args.max-lora-rank: {rank[1]} or the next step above it"
    return ""
