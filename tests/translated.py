"""What a Markdown text and its translation have in common: blocks, code, links and figures stay as they are."""

from __future__ import annotations

import re
from collections import Counter

FENCE = re.compile(r"^```.*?^```[^\S\n]*$", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"`([^`\n]+(?:\n[^`\n]+)?)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)|(https?://[^\s)`：；，。（）]*[\w/])")
_NUMBER = re.compile(r"(?<![\w.])(\d+(?:[.,]\d+)*)(?: ?(%|[KMGT]i?B|ms|min|s|分钟|秒)(?![A-Za-z]))?")
_UNITS = {"分钟": "min", "秒": "s"}


def blocks(text: str) -> list[str]:
    """The fenced blocks, with their fences."""
    return FENCE.findall(text)


def spans(text: str) -> Counter[str]:
    """Code within the prose, each on one line."""
    return Counter(" ".join(span.split()) for span in _CODE.findall(FENCE.sub("", text)))


def links(text: str) -> Counter[str]:
    """Where the prose points to."""
    return Counter(target or address for target, address in _LINK.findall(_CODE.sub("", FENCE.sub("", text))))


def figures(text: str) -> Counter[str]:
    """The numbers of the prose: none within code, a name ("H200", "Qwen2.5") or an address."""
    return Counter(number for number, _ in _NUMBER.findall(_prose(text)))


def quantities(text: str) -> Counter[str]:
    """The same with their units, as English writes them: "5 min" of "5 分钟"."""
    return Counter(f"{number} {_UNITS.get(unit, unit)}".strip() for number, unit in _NUMBER.findall(_prose(text)))


def _prose(text: str) -> str:
    return _LINK.sub("", _CODE.sub("", FENCE.sub("", text)))
