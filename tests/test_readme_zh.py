"""README.zh-CN.md in step with README.md: its blocks, headings, commands, links and figures, section by section.

`DEPLOYC_UPDATE=1` copies the blocks; prose is for whoever reads the message."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path

import pytest
from translated import FENCE, blocks, links, quantities, spans

ROOT = Path(__file__).resolve().parent.parent
ENGLISH, CHINESE = ROOT / "README.md", ROOT / "README.zh-CN.md"
HEADING = re.compile(r"^(#{1,6}) (.+)$", re.MULTILINE)
EACH_OTHER = Counter([ENGLISH.name, CHINESE.name])


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def sections(markdown: str) -> list[tuple[str, str, str]]:
    """Level ("##"), title and text below it, of each heading that stands in no block."""
    kept: list[str] = []

    def out(block: re.Match[str]) -> str:
        kept.append(block[0])
        return f"\0{len(kept) - 1}\0"

    _, *parts = HEADING.split(FENCE.sub(out, markdown))
    below = [re.sub("\0(\\d+)\0", lambda mark: kept[int(mark[1])], part) for part in parts[2::3]]
    return list(zip(parts[::3], parts[1::3], below, strict=True))


def lines_with(names: Counter[str], markdown: str) -> str:
    """The lines where these stand, to be looked at."""
    wanted = [name.split()[0] if name[0].isdigit() else name for name in names]  # a unit may be told otherwise
    return "\n".join(f"  | {line}" for line in FENCE.sub("", markdown).splitlines() if any(n in line for n in wanted))


def test_each_points_to_the_other_after_its_sentence() -> None:
    for path, other in ((ENGLISH, CHINESE), (CHINESE, ENGLISH)):
        title, sentence, link, _ = text(path).split("\n\n", 3)
        assert title == "# deployc"
        assert "`deploy.yaml`" in sentence
        assert re.fullmatch(rf"\[[^]]+\]\({re.escape(other.name)}\)", link)


def test_headings_correspond() -> None:
    english, chinese = ([(level, title) for level, title, _ in sections(text(path))] for path in (ENGLISH, CHINESE))
    pairs = list(zip_longest(english, chinese))
    assert [a and a[0] for a, _ in pairs] == [b and b[0] for _, b in pairs], f"headings side by side: {pairs}"


def test_blocks_are_the_same_in_the_same_order() -> None:
    english, chinese = blocks(text(ENGLISH)), blocks(text(CHINESE))
    if os.environ.get("DEPLOYC_UPDATE") and len(english) == len(chinese):
        present = iter(english)
        CHINESE.write_text(FENCE.sub(lambda _: next(present), text(CHINESE)), encoding="utf-8")
        return
    assert len(english) == len(chinese), "a block of code was added to README.md or taken out: do it in README.zh-CN.md"
    assert english == chinese, "DEPLOYC_UPDATE=1 pytest tests/test_readme_zh.py copies the blocks of README.md"


@pytest.mark.parametrize(
    ("what", "found"), [("code", spans), ("figures", quantities), ("blocks", lambda below: Counter(blocks(below)))]
)
def test_a_section_says_what_the_english_one_says(what: str, found: Callable[[str], Counter[str]]) -> None:
    wrong = []
    for (_, title, english), (_, heading, chinese) in zip(
        sections(text(ENGLISH)), sections(text(CHINESE)), strict=True
    ):
        missing, left = found(english) - found(chinese), found(chinese) - found(english)
        if missing:
            wrong.append(f"# {heading} lacks {what} of # {title}: {sorted(missing)}\n{lines_with(missing, english)}")
        if left:
            wrong.append(f"# {heading} has {what} that # {title} has not: {sorted(left)}\n{lines_with(left, chinese)}")
    assert not wrong, "README.zh-CN.md is to be brought up to README.md:\n" + "\n".join(wrong)


def test_links_lead_to_the_same_places() -> None:
    here = [links(text(path)) - EACH_OTHER for path in (ENGLISH, CHINESE)]
    english, chinese = (Counter({link: n for link, n in found.items() if link[0] != "#"}) for found in here)
    assert english == chinese
    titles = {title.lower().replace(" ", "-") for _, title, _ in sections(text(CHINESE))}
    assert {link[1:] for link in here[1] if link[0] == "#"} <= titles
    assert [link for link in chinese if not (ROOT / link.partition("#")[0]).exists()] == []
