"""docs/reference.md: every key of deploy.yaml, every code; `DEPLOYC_UPDATE=1` rewrites both."""

from __future__ import annotations

import os
import re
from pathlib import Path

from codes import summaries

from deployc.spec.keys import MEANING
from deployc.spec.unsupported import NOT_YET
from deployc.views.pages import ROOMS

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference.md"


def table() -> str:
    """One row a key."""
    rows = [f"| `{key}`{'*' if key in NOT_YET else ''} | {meaning} |" for key, meaning in MEANING.items()]
    return "\n".join(["| key | meaning |", "|---|---|", *rows])


def tables() -> str:
    """One table for all that codes are about, one row a code with its constant summary, linked to its page."""
    known = {code: " / ".join(sorted(found)) for code, found in sorted(summaries().items())}
    parts = []
    for first, last, about in ROOMS:
        rows = [f"| [{c}](codes/{c}.md) | {s} |" for c, s in known.items() if first <= int(c[2:]) <= last]
        if rows:
            parts.append("\n".join([f"### DC{first}-DC{last}: {about}\n", "| code | summary |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def test_every_key_is_in_the_reference() -> None:
    text = REFERENCE.read_text()
    if os.environ.get("DEPLOYC_UPDATE"):
        text = re.sub(r"\| key \| meaning \|\n(?:\|.*\n)*|@@KEYS@@\n", lambda _: table() + "\n", text)
        REFERENCE.write_text(text)
    assert table() in text


def test_codes_are_in_the_reference_with_their_summaries() -> None:
    text = REFERENCE.read_text()
    if os.environ.get("DEPLOYC_UPDATE"):
        text = re.sub(r"(?<=\n)### DC(.*\n)*?(?=## )", lambda _: tables() + "\n", text)
        REFERENCE.write_text(text)
    assert f"{tables()}\n## " in text
    assert sum(text.count(f"(codes/{code}.md)") for code in summaries()) == len(summaries())
