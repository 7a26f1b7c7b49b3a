"""docs/reference.md: every key of deploy.yaml, the codes of a plan's facts; `DEPLOYC_UPDATE=1` rewrites both."""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path

from deployc.spec.keys import MEANING
from deployc.spec.unsupported import NOT_YET

ROOT = Path(__file__).resolve().parent.parent
REFERENCE, PACKAGE = ROOT / "docs" / "reference.md", ROOT / "deployc"


def table() -> str:
    """One row a key."""
    rows = [f"| `{key}`{'*' if key in NOT_YET else ''} | {meaning} |" for key, meaning in MEANING.items()]
    return "\n".join(["| key | meaning |", "|---|---|", *rows])


def summaries() -> str:
    """One row a code about model, adapters, formats, builds, memory, settings or rows, with its constant summary."""
    found: dict[str, str] = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(args=[ast.Constant(value=str(code)), ast.Constant(value=str(summary)), *_]):
                    if re.fullmatch(r"DC(2\d|3[0-4]|54|67)\d", code):
                        found[code] = summary
    return "\n".join(["| code | summary |", "|---|---|", *(f"| {code} | {found[code]} |" for code in sorted(found))])


def test_every_key_is_in_the_reference() -> None:
    text = REFERENCE.read_text()
    if os.environ.get("DEPLOYC_UPDATE"):
        text = re.sub(r"\| key \| meaning \|\n(?:\|.*\n)*|@@KEYS@@\n", lambda _: table() + "\n", text)
        REFERENCE.write_text(text)
    assert table() in text


def test_codes_are_in_the_reference_with_their_summaries() -> None:
    text = REFERENCE.read_text()
    if os.environ.get("DEPLOYC_UPDATE"):
        text = re.sub(r"\| code \| summary \|\n(?:\|.*\n)*", lambda _: summaries() + "\n", text)
        REFERENCE.write_text(text)
    assert summaries() in text
