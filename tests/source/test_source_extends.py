"""Overlays: maps merge, lists and scalars replace, and every value keeps the file and line it came from."""

from __future__ import annotations

from pathlib import Path

import pytest

from deployc.source import Document, load


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "deploy.yaml"


def good(file: Path) -> Document:
    document, report = load(file, {"A": "1"})
    assert document is not None and not report.errors, [d.detail for d in report]
    return document


def test_maps_merge_the_rest_replaces(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        base="a: {x: 1, y: {z: 2}}\nl: [1, 2]\ns: base\nm: {k: 1}\n",
        deploy="extends: base.yaml\na: {y: {w: 3}, v: 4}\nl: [3]\nm: null\nn: 5\n",
    )
    assert good(file).values == {"a": {"x": 1, "y": {"z": 2, "w": 3}, "v": 4}, "l": [3], "s": "base", "m": None, "n": 5}


def test_every_value_keeps_its_file_and_line(tmp_path: Path) -> None:
    file = write(tmp_path, base="a:\n  x: 1\n  y: 2\n", deploy="extends: base.yaml\n\na:\n  y: 3\n")
    spans = good(file).spans
    assert str(spans["a", "x"]) == "base.yaml:2:6" and spans["a", "x"].excerpt == "  x: 1"
    assert str(spans["a", "y"]) == "deploy.yaml:4:6"
    keys = good(file).keys
    assert str(keys["a", "x"]) == "base.yaml:2:3" and str(keys["a",]) == "deploy.yaml:3:1"


def test_a_chain_across_folders(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        common__root="a: 1\nb: 1\nc: ${A}\n",
        common__mid="extends: root.yaml\nb: 2\n",
        deploy="extends: common/mid.yaml\nc: 3\n",
    )
    document = good(file)
    assert document.values == {"a": 1, "b": 2, "c": 3}
    assert list(document.inputs) == ["deploy.yaml", "common/mid.yaml", "common/root.yaml"]
    assert all(digest.startswith("sha256:") and len(digest) == 71 for digest in document.inputs.values())
    assert document.variables == {}  # what an overlay replaced is not asked for
    assert document.folder == tmp_path


@pytest.mark.parametrize(
    ("files", "code", "at", "said"),
    [
        ({"deploy": "extends: deploy.yaml\n"}, "DC116", "deploy.yaml:1:10", "deploy.yaml -> deploy.yaml"),
        (
            {"deploy": "extends: b.yaml\n", "b": "extends: deploy.yaml\n"},
            "DC116",
            "b.yaml:1:10",
            "b.yaml -> deploy.yaml",
        ),
        ({"deploy": "a: 1\nextends: none.yaml\n"}, "DC100", "deploy.yaml:2:10", "none.yaml: no such file"),
        ({"deploy": "extends: .\n"}, "DC100", "deploy.yaml:1:10", "folder"),
        ({"deploy": "extends: /dev/zero\n"}, "DC100", "deploy.yaml:1:10", "device"),
        ({"deploy": "extends: 3\n"}, "DC115", "deploy.yaml:1:10", "the path of one file"),
        ({"deploy": "extends: [a.yaml]\n"}, "DC115", "deploy.yaml:1:10", "one file"),
        ({"deploy": "extends:\n"}, "DC115", "deploy.yaml:1:1", "one file"),
        ({"deploy": "extends: ''\n"}, "DC115", "deploy.yaml:1:10", "one file"),
        ({"deploy": "extends: ${A}\n"}, "DC115", "deploy.yaml:1:10", "variables"),
        ({"deploy": 'extends: "a\\nb"\n'}, "DC115", "deploy.yaml:1:10", "one file"),
        ({"deploy": "extends: b.yaml\n", "b": "a: [\n"}, "DC102", "b.yaml:1:4", "not closed"),
        ({"deploy": "extends: b.yaml\n", "b": "- a\n"}, "DC114", "b.yaml:1:1", "list"),
        ({"deploy": "extends: b.yaml\n", "b": "a: ${NOPE}\n"}, "DC120", "b.yaml:1:4", "NOPE"),
    ],
)
def test_what_can_be_wrong(tmp_path: Path, files: dict[str, str], code: str, at: str, said: str) -> None:
    _, report = load(write(tmp_path, **files), {})
    assert [(d.code, str(d.at)) for d in report] == [(code, at)]
    assert said in report.diagnostics[0].detail


def test_a_circle_behind_a_link(tmp_path: Path) -> None:
    file = write(tmp_path, deploy="extends: other.yaml\n")
    (tmp_path / "other.yaml").symlink_to(file)
    _, report = load(file, {})
    assert [d.code for d in report] == ["DC116"]


def test_a_chain_without_end(tmp_path: Path) -> None:
    files = {f"b{i}": f"extends: b{i + 1}.yaml\n" for i in range(30)}
    _, report = load(write(tmp_path, deploy="extends: b0.yaml\n", **files), {})
    assert [d.code for d in report] == ["DC116"] and "More than 16 files" in report.diagnostics[0].detail
