"""Every code of a diagnostic that the package writes, with its summaries: what reference and pages are held against."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "deployc"
CODE = re.compile(r"DC\d{3}")


@cache
def summaries() -> dict[str, set[str]]:
    """Code -> its summaries, as calls and pairs write them; one of them, where all is well."""
    found: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(args=[ast.Constant(value=str(code)), ast.Constant(value=str(summary)), *_]):
                    pass
                case ast.Tuple(elts=[ast.Constant(value=str(code)), ast.Constant(value=str(summary))]):
                    pass
                case _:
                    continue
            if CODE.fullmatch(code) and not CODE.fullmatch(summary):
                found.setdefault(code, set()).add(summary)
    return found
