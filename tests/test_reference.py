"""docs/reference.md lists every key of deploy.yaml, as the models have them: `DEPLOYC_UPDATE=1` rewrites the table."""

from __future__ import annotations

import os
import re
from pathlib import Path

from deployc.spec.keys import MEANING
from deployc.spec.unsupported import NOT_YET

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference.md"


def table() -> str:
    """One row a key."""
    rows = [f"| `{key}`{'*' if key in NOT_YET else ''} | {meaning} |" for key, meaning in MEANING.items()]
    return "\n".join(["| key | meaning |", "|---|---|", *rows])


def test_every_key_is_in_the_reference() -> None:
    text = REFERENCE.read_text()
    if os.environ.get("DEPLOYC_UPDATE"):
        text = re.sub(r"\| key \| meaning \|\n(?:\|.*\n)*|@@KEYS@@\n", lambda _: table() + "\n", text)
        REFERENCE.write_text(text)
    assert table() in text
