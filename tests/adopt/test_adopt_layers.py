"""Readers and judges of an import are pure: text in, launches and diagnostics out."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import deployc.adopt

PACKAGE = Path(deployc.adopt.__file__).parent
PURE = sorted([*(PACKAGE / "read").glob("*.py"), *(PACKAGE / "judge").glob("*.py"), PACKAGE / "write.py"])
TOUCHES = {"os", "subprocess", "socket", "pathlib", "shutil", "urllib", "importlib", "pickle", "runpy"}
RUNS = {"eval", "exec", "compile", "open", "__import__", "print", "input"}


@pytest.mark.parametrize("path", PURE, ids=lambda path: path.stem)
def test_nothing_outside_is_touched_and_nothing_is_run(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            assert not {alias.name.partition(".")[0] for alias in node.names} & TOUCHES
        elif isinstance(node, ast.ImportFrom):
            assert (node.module or "").partition(".")[0] not in TOUCHES
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in RUNS
