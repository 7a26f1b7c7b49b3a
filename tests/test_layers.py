"""The house: a stage imports only what stands above it, and pure stages touch nothing outside."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "deployc"
ORDER = [
    "diagnostics", "units", "data", "files", "types", "source", "spec", "facts", "cost", "rules", "choose",
    "emit", "plan", "views", "build", "apply", "measure", "adopt", "pipeline", "cli",
]  # fmt: skip
PURE = {"diagnostics", "units", "types", "spec", "cost", "rules", "choose", "emit", "plan", "views"}
HEAVY = {"torch", "transformers", "peft", "safetensors", "compressed_tensors", "docker", "pynvml",
         "huggingface_hub", "modelscope", "httpx", "vllm", "llmcompressor"}  # fmt: skip
EDGE = HEAVY | {"subprocess", "socket", "urllib", "requests", "asyncio", "ssl", "http", "shutil"}
MODULES = sorted(PACKAGE.rglob("*.py"))


def room(path: Path) -> str:
    """The stage that a file belongs to; the package's own `__init__` and `__main__` are the edge of the edge."""
    relative = path.relative_to(PACKAGE)
    return relative.parts[0].removesuffix(".py") if relative.parts[0] not in ("__init__.py", "__main__.py") else "cli"


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Every imported module and whether the import stands at module level (not under TYPE_CHECKING)."""
    tree = ast.parse(path.read_text())
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) in top
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, id(node) in top
            if node.module == "deployc":
                for alias in node.names:
                    yield f"deployc.{alias.name}", id(node) in top


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_upwards_only(path: Path) -> None:
    here = ORDER.index(room(path))
    for module, _ in imports(path):
        parts = module.split(".")
        if parts[0] == "deployc" and len(parts) > 1 and parts[1] in ORDER:
            assert ORDER.index(parts[1]) <= here, f"{path.name} ({room(path)}) imports {module} against the stream"
        if room(path) not in ("facts", "pipeline", "cli", "build", "apply", "measure", "adopt"):
            assert not module.startswith("deployc.facts"), f"{path.name}: pure stages take Facts from types, not facts"


@pytest.mark.parametrize("path", [p for p in MODULES if room(p) in PURE], ids=lambda p: str(p.relative_to(PACKAGE)))
def test_pure_stages_reach_for_nothing_outside(path: Path) -> None:
    assert not {m.split(".")[0] for m, _ in imports(path)} & EDGE
    calls = {
        n.func.id
        for n in ast.walk(ast.parse(path.read_text()))
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
    }
    assert not calls & {"open", "print", "input", "exit"}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_heavy_libraries_are_imported_where_they_are_used(path: Path) -> None:
    assert not {m.split(".")[0] for m, top in imports(path) if top} & HEAVY or in_the_build(path)


def in_the_build(path: Path) -> bool:
    """Run inside the build interpreter only, never imported by the tool's own process: its docstring says so."""
    said = " ".join((ast.get_docstring(ast.parse(path.read_text())) or "").split())
    return room(path) == "build" and "Runs in the build interpreter." in said


def test_only_the_command_line_prints_or_exits() -> None:
    for path in MODULES:
        if room(path) in ("cli",) or in_the_build(path):
            continue
        calls = {
            n.func.id
            for n in ast.walk(ast.parse(path.read_text()))
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
        }
        assert "print" not in calls, f"{path} prints"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_one_concept_a_file(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 300


def test_one_summary_a_code() -> None:
    """A diagnostic's summary is constant for its code, and no two rooms use one code for two things."""
    summaries: dict[str, set[str]] = defaultdict(set)
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and len(node.args) >= 2:
                code, summary = node.args[0], node.args[1]
                if (
                    isinstance(code, ast.Constant)
                    and isinstance(code.value, str)
                    and re.fullmatch(r"DC\d{3}", code.value)
                ):
                    assert isinstance(summary, ast.Constant), (
                        f"{path.name}: the summary of {code.value} is not constant"
                    )
                    summaries[code.value].add(str(summary.value))
    assert summaries
    assert {c: s for c, s in summaries.items() if len(s) > 1} == {}


def test_a_plan_loads_no_heavy_library() -> None:
    program = (
        "import sys; import deployc.pipeline, deployc.source, deployc.spec, deployc.facts, deployc.choose,"
        "deployc.rules, deployc.emit, deployc.plan, deployc.views.text, deployc.cli.plan;"
        f"print(sorted(set(m.split('.')[0] for m in sys.modules) & {HEAVY!r}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_test_file_is_collected(pytestconfig: pytest.Config) -> None:
    """pytest leaves out folders named `build` unless told otherwise: a room's tests must not vanish unseen."""
    left_out = pytestconfig.getini("norecursedirs")
    rooms = {path.parent.name for path in Path(__file__).parent.rglob("test_*.py")}
    assert not rooms & set(left_out)
