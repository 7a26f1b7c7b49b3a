"""What must not be built: each fault one diagnostic, nothing left in the store, and what was there untouched."""

from __future__ import annotations

import ast
import inspect
import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import adapted
import pytest
from adapted import Small
from damage import put
from golden import assert_golden
from refusing import REFUSALS, TOLD, Asked

from deployc.build import faults
from deployc.diagnostics import Report, Stop
from deployc.facts.folder import Folder
from deployc.facts.source import pinned
from deployc.types.bundle import Recipe
from deployc.types.facts import DTYPE_BYTES
from deployc.types.groups import Tensor
from deployc.views.diagnostics import diagnostics

pytestmark = pytest.mark.build
GOLDEN = Path(__file__).parent / "refusals"
ELSEWHERE = {"DC273": "a disk that fills", "DC278": "a worker that is killed", "DC280": "`store verify`",
             "DC286": "a file that the system refuses"}  # fmt: skip
"""Codes that files alone do not bring about; tests of the process and of the store have them."""


def stopped(small: Small, asked: Asked) -> Report:
    """Why a build did not begin or not end; nothing may be left of it but its journal."""
    before = {p for p in small.root.rglob("*") if p.is_file()}
    with pytest.raises(Stop) as stop:
        small.build(asked.recipe, **asked.options)
    left = {p for p in small.root.rglob("*") if p.is_file()} - before
    assert {p.name for p in left} <= {".journal"}
    assert not list(small.store.glob("[0-9a-f]*"))
    return stop.value.report


def refused(small: Small, recipe: Recipe | None = None) -> list[tuple[str, str]]:
    return [(d.code, d.detail) for d in stopped(small, Asked(recipe)).errors]


def as_read(report: Report, root: Path) -> str:
    """The report as people see it, but for names that are others in each run."""

    def same(text: str) -> str:
        return re.sub(
            r"\.building-[0-9a-f]{64}",
            ".building-KEY",
            text.replace(str(root), "/lab").replace(sys.executable, "/usr/bin/python3"),
        )

    named = [replace(d, detail=same(d.detail), fix=same(d.fix)) for d in report]
    return diagnostics(Report(named), width=100)


@pytest.mark.parametrize("name", REFUSALS)
def test_each_refusal_reads_so(name: str, small: Small, request: pytest.FixtureRequest) -> None:
    asked = REFUSALS[name](small) or Asked()
    if "python" not in asked.options:
        request.getfixturevalue("inline")
    assert_golden(GOLDEN / name / "expect.txt", as_read(stopped(small, asked), small.root))


@pytest.mark.usefixtures("inline")
@pytest.mark.parametrize("name", TOLD)
def test_each_warning_reads_so(name: str, small: Small) -> None:
    asked = TOLD[name](small) or Asked()
    notes = small.build(asked.recipe).notes
    assert_golden(GOLDEN / name / "expect.txt", as_read(Report(list(notes)), small.root))


@pytest.mark.usefixtures("inline")
def test_too_little_disk_reads_so(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.statvfs(small.root)
    monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result((4096, 4096, *real[2:4], 3, *real[5:])))
    text = as_read(stopped(small, Asked()), small.root)
    assert_golden(GOLDEN / "too-little-disk" / "expect.txt", text)


def test_no_interpreter_reads_so(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert_golden(GOLDEN / "no-interpreter" / "expect.txt", as_read(stopped(small, Asked()), small.root))


def test_every_refusal_of_a_build_has_a_golden_case() -> None:
    codes = {
        str(node.args[0].value)
        for node in ast.walk(ast.parse(inspect.getsource(faults)))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "error"
        if isinstance(node.args[0], ast.Constant)
    }
    shown = {code for path in GOLDEN.glob("*/expect.txt") for code in re.findall(r"error\[(DC\d+)\]", path.read_text())}
    assert codes - shown == set(ELSEWHERE)
    assert {path.name for path in GOLDEN.iterdir()} == {*REFUSALS, *TOLD, "too-little-disk", "no-interpreter"}


@pytest.mark.usefixtures("inline")
@pytest.mark.parametrize("dtype", ["F8_E4M3", "I8", "I64", "BOOL"])
@pytest.mark.parametrize("side", ["model", "adapter"])
def test_what_is_no_plain_number_is_not_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str, side: str
) -> None:
    real, known = adapted.save, adapted.values
    stems = "_proj.weight" if side == "model" else "lora_A.weight"

    def save(path: Path, tensors: list[Tensor], seed: int) -> None:
        real(path, [(n, dtype if n.endswith(stems) else d, shape) for n, d, shape in tensors], seed)

    def values(kind: str, count: int, *how: Any) -> bytes:
        return bytes([1]) * round(count * DTYPE_BYTES[dtype]) if kind == dtype else known(kind, count, *how)

    monkeypatch.setattr(adapted, "save", save)
    monkeypatch.setattr(adapted, "values", values)
    ((code, detail),) = refused(Small(tmp_path).model().adapter("qa"))
    assert (code, dtype in detail, "proj" in detail) == ("DC288", True, True)


@pytest.mark.usefixtures("inline")
def test_all_that_is_wrong_is_said_at_once(small: Small) -> None:
    small.adapter("other")
    put(small.root / "other/adapter_config.json", lora_alpha=-1)
    os.truncate(small.root / "qa/adapter_model.safetensors", 40)
    assert {code for code, _ in refused(small)} == {"DC204", "DC230"}
    (small.root / "model/config.json").write_text("{")
    assert {code for code, _ in refused(small)} == {"DC203", "DC204", "DC230"}


@pytest.mark.usefixtures("inline")
def test_a_template_of_the_adapter_is_taken_and_told(small: Small) -> None:
    (small.root / "qa/tokenizer.json").write_bytes((small.root / "model/tokenizer.json").read_bytes() + b"\n")
    assert small.build().notes == ()
    template = "{% for message in messages %}[{{ message.content }}]</s>{% endfor %}"
    (small.root / "qa/chat_template.jinja").write_text(template)
    artifact = small.build()
    (note,) = artifact.notes
    assert (note.code, "chat template" in note.detail) == ("DC279", True)
    assert (artifact.path / "chat_template.jinja").read_text() == template
    assert {
        "adapters/qa/chat_template.jinja",
        "adapters/qa/tokenizer.json",
        "model/tokenizer.json",
    } <= artifact.manifest.inputs.keys()


def test_an_adapter_may_be_called_model(tmp_path: Path) -> None:
    """Its files and the model's stand apart in the manifest."""
    small = Small(tmp_path).model()
    small.adapter("adapter").root.joinpath("adapter").rename(tmp_path / "peft")
    (tmp_path / "peft" / "tokenizer_config.json").write_text('{"chat_template": "{{ messages[0].content }}</s>"}')
    small.adapters = {}
    pinned_there = pinned(Folder(tmp_path / "peft", "./peft").files())
    recipe = replace(
        small.recipe(),
        adapters=(("model", "./peft", None, 1.0),),
        adapter_files={f"model/{name}": pin for name, pin in pinned_there.items()},
    )
    read = small.build(recipe).manifest.inputs
    assert read["model/tokenizer_config.json"] != read["adapters/model/tokenizer_config.json"]
