"""READ under odd input: one clear diagnostic on its line, never an exception, never a hang."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from deployc.diagnostics import Report
from deployc.source import Document, load

LIMIT = 2**20


def read(folder: Path, text: str | bytes, env: dict[str, str] | None = None) -> tuple[Document | None, Report]:
    file = folder / "deploy.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load(file, env or {})


def values(folder: Path, text: str) -> dict[str, Any]:
    document, report = read(folder, text)
    assert document is not None and not report.errors, [d.detail for d in report]
    return document.values


def places(report: Report) -> list[str]:
    return [f"{d.code} {d.at.line}:{d.at.column}" if d.at else d.code for d in report.ordered()]


@pytest.mark.parametrize(
    ("text", "expected", "said"),
    [
        ("", "DC104 1:1", "no keys"),
        ("# only\n\n# comments\n", "DC104 1:1", "no keys"),
        ("---\n...\n", "DC104 1:1", "no keys"),
        ("- a\n- b\n", "DC114 1:1", "a list"),
        ("just text\n", "DC114 1:1", "one value"),
        ("name:domain-qa\n", "DC114 1:1", "one value"),
        ("a: 1\na: 2\n", "DC105 2:1", "line 1 already, and again on line 2"),
        ("m:\n  x: 1\n  y: 2\n  x: 3\n", "DC105 4:3", "line 2 already, and again on line 4"),
        ("a: 1\n---\nb: 2\n", "DC117 2:1", "second YAML document"),
        ("a:\n\tb: 1\n", "DC102 2:1", "tab"),
        ("d:\n  e: 1\n\tf: 2\n", "DC102 3:1", "tab"),
        ("a: 1\n\t\n", "DC102 2:1", "tab"),
        ("a: 'x\nb: 1\n", "DC102 1:4", "never closed"),
        ("a: [1, 2\nb: 3\n", "DC102 1:4", "not closed"),
        ("a: b: c\n", "DC102 1:5", "makes a key here"),
        ("name\nmodel:\n  source: x\n", "DC102 2:6", "makes a key here"),
        ("a: 1\nname\nb: 1\n", "DC102 2:1", "neither"),
        ("a:\n   b: 1\n  c: 2\n", "DC102 3:3", "indented unlike"),
        ("a: [\n", "DC102 1:4", "not closed"),
        ("a: [${X}, 1]\n", "DC102", "quote it"),
        ("a: {b: ${X}}\n", "DC102", "quote it"),
        ("a: @x\n", "DC102 1:4", "quotes"),
        ("a: `x`\n", "DC102 1:4", "quotes"),
        ('a: "C:\\dir"\n', "DC102 1:8", "backslash"),
        ('a: "\\xZZ"\n', "DC102 1:7", "backslash"),
        ('a: "\\UFFFFFFFF"\n', "DC102 1:1", "cannot be read"),
        ("%YAML 3.0\n---\na: 1\n", "DC102 1:1", "directive"),
        ("a: *x\n", "DC119 1:4", "names nothing"),
        ("a: &a [*a]\n", "DC107 1:8", "never end"),
        ("a: &a {b: {<<: *a}}\n", "DC107 1:16", "never end"),
        ("a: !!python/object:os.system {x: 1}\n", "DC108 1:4", "python/object"),
        ("a: !local 1\n", "DC108 1:4", "!local"),
        ("a: !!set {x}\n", "DC108 1:4", "set"),
        ("a: .inf\n", "DC109 1:4", "not a finite number"),
        ("a: [-.Inf, .nan]\n", "DC109 1:5", "not a finite number"),
        ("a: 1e999\n", "DC109 1:4", "not a finite number"),
        (f"a: {'9' * 100}\n", "DC109 1:4", "more than 64"),
        ("1: x\n", "DC110 1:1", "a number"),
        ("true: x\n", "DC110 1:1", "true or false"),
        ("~: x\n", "DC110 1:1", "nothing"),
        ("? [a, b]\n: x\n", "DC110 1:3", "cannot be a key"),
        ("a: &k x\n*k : 1\n", "DC110 2:1", "alias"),
        ("a: {<<: 3}\n", "DC111 1:9", "takes the alias of a map"),
        ("a: &a {x: 1}\nb: &b {x: 2}\nc:\n  <<: *a\n  <<: *b\n", "DC105 5:3", "line 4"),
        ("a: x\x01y\n", "DC112 1:5", "U+0001"),
        ("a: 1\nb: x\x00y\n", "DC112 2:5", "U+0000"),
        ("a: 1\r\nb: x\u202ey\r\n", "DC112 2:5", "right-to-left"),
        ("a: x\u200b\n", "DC112 1:5", "zero width"),
        ('a: "x\\0"\n', "DC112 1:4", "NUL"),
        ('a: "\\uD800"\n', "DC112 1:4", "surrogate"),
        ("a: " + "x" * 20_001, "DC118 1:1", "20,000 characters"),
        ("a: " + "[" * 100, "DC103 1:67", "64 levels"),
        ("a: 1\n" + "b:\n" + "".join(" " * n + "x:\n" for n in range(1, 80)), "DC103 65:64", "64 levels"),
        ("a: [" + "1," * 9_000 + "]\n" + "b: [" + "1, " * 6_000 + "]\nc: [" + "1, " * 6_000 + "]\n", "DC106", "20,000"),
    ],
)
def test_odd_text(tmp_path: Path, text: str, expected: str, said: str) -> None:
    _, report = read(tmp_path, text)
    assert places(report)[0].startswith(expected), [(str(d.at), d.detail) for d in report]
    assert said in report.ordered()[0].detail + report.ordered()[0].fix
    assert all(d.fix for d in report)


def test_alias_bomb_is_bounded(tmp_path: Path) -> None:
    text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
    text += "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
    began = time.monotonic()
    document, report = read(tmp_path, text)
    assert document is None and places(report)[0].startswith("DC106")
    assert time.monotonic() - began < 60  # a blink on an idle machine; what is unbounded takes hours


@pytest.mark.parametrize(
    "text",
    ["[" * LIMIT, "{" * LIMIT, "- " * (LIMIT // 2), "a: " + "!" * LIMIT, "[1]\n" * (LIMIT // 4), "a: 1\n" * 20_000,
     "".join(f"a{i}: &a{i} 1\n" for i in range(50_000)), "a: " + "${A:-" * 3_900, "${\n" * 300_000,
     ("[" * 900 + "，\n") * 1_000, "# x\n" * (LIMIT // 4), "".join(f"k{i}: token token: \n" for i in range(20_000))],
    ids=range(12),
)  # fmt: skip
def test_large_nonsense_takes_no_time(tmp_path: Path, text: str) -> None:
    began = time.monotonic()
    _, report = read(tmp_path, text[:LIMIT])
    assert report.errors
    assert time.monotonic() - began < 60  # some seconds at most on a slow, busy machine; unbounded ones take hours


@pytest.mark.parametrize(
    ("make", "expected", "said"),
    [
        (lambda p: p.with_name("other").touch(), "DC100", "no such file"),
        (lambda p: p.mkdir(), "DC100", "folder"),
        (os.mkfifo, "DC100", "regular file"),
        (lambda p: p.symlink_to(p), "DC100", "symbolic link"),
        (lambda p: p.write_bytes(b"a: 1\n" * (10 * LIMIT // 5)), "DC118", "more than 1 MiB"),
        (lambda p: p.write_bytes(b"a: 1\nname: \xd6\xd0\xce\xc4\n"), "DC101", "0xd6 at offset 11"),
        (lambda p: p.write_bytes("a: 1\n".encode("utf-16")), "DC101", "UTF-16"),
        (lambda p: p.write_bytes(b"a: \xff\xff\xff\n"), "DC101", "0xff"),
    ],
)
def test_odd_files(tmp_path: Path, make: Any, expected: str, said: str) -> None:
    file = tmp_path / "deploy.yaml"
    make(file)
    document, report = load(file, {})
    assert document is None
    assert [d.code for d in report] == [expected]
    assert said in report.diagnostics[0].detail and report.diagnostics[0].at is not None


def test_not_utf8_names_line_and_column(tmp_path: Path) -> None:
    _, report = read(tmp_path, b"a: 1\nname: \xe4\xb8\xad\xd6\xd0\n")
    assert places(report) == ["DC101 2:8"]
    _, report = read(tmp_path, "name: 中文\n".encode("gbk"))
    assert "iconv -f GB18030" in report.diagnostics[0].fix


def test_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "deploy.yaml").write_text("a: 1\n")
    monkeypatch.setattr(Path, "open", refused)
    _, report = load(tmp_path / "deploy.yaml", {})
    assert "permission denied" in report.diagnostics[0].detail


def test_path_that_no_file_can_have() -> None:
    document, report = load(Path("a\0b"), {})
    assert document is None and [d.code for d in report] == ["DC100"]
    document, report = load(Path("x" * 5000), {})
    assert document is None and "name too long" in report.diagnostics[0].detail


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("no", "no"), ("yes", "yes"), ("on", "on"), ("off", "off"), ("y", "y"), ("true", True), ("False", False),
        ("010", 10), ("0o10", 8), ("0x1F", 31), ("1_000", "1_000"), ("-3", -3), ("+3", 3), ("1e3", 1000.0),
        ("1.5", 1.5), (".5", 0.5), ("1.", 1.0), ("2026-01-02", "2026-01-02"), ("12:30", "12:30"), ("0.33.0", "0.33.0"),
        ("null", None), ("~", None), ("", None), ("'1'", "1"), ('"true"', "true"), ("!!str 1", "1"), ("! 1", "1"),
        ('!!int "1"', 1), ("!!float 1", 1), ("24GiB", "24GiB"), ("9007199254740993", 9007199254740993),
        ("1e400x", "1e400x"), ("=", "="), ("a # c", "a"), ("'it''s'", "it's"), ('"\\u4e2d"', "中"),
        ("|\n  x\n  y", "x\ny\n"), (">-\n  x\n  y", "x y"), ("[1, a, ~]", [1, "a", None]), ("{a: 1}", {"a": 1}),
    ],
)  # fmt: skip
def test_scalars_by_yaml_1_2(tmp_path: Path, written: str, value: Any) -> None:
    found = values(tmp_path, f"a: {written}\n")["a"]
    assert found == value and type(found) is type(value)


def test_yaml_1_1_directive_changes_nothing(tmp_path: Path) -> None:
    assert values(tmp_path, "%YAML 1.1\n---\na: no\nb: 010\n") == {"a": "no", "b": 10}


def test_byte_order_mark_and_line_ends(tmp_path: Path) -> None:
    document, report = read(tmp_path, b"\xef\xbb\xbfa: 1\r\nb:\r\n  c: 2\r\n")
    assert document is not None and not report.errors
    assert document.values == {"a": 1, "b": {"c": 2}}
    assert str(document.spans["a",]) == "deploy.yaml:1:4"
    assert document.spans["b", "c"].excerpt == "  c: 2"


def test_anchors_aliases_and_merge_keys(tmp_path: Path) -> None:
    text = (
        "x-base: &base {a: 1, b: 2}\nx-more: &more {b: 3, c: 4}\nm: {<<: [*base, *more], b: 5, d: *base}\ny: [*base]\n"
    )
    assert values(tmp_path, text) == {"m": {"b": 5, "a": 1, "c": 4, "d": {"a": 1, "b": 2}}, "y": [{"a": 1, "b": 2}]}


def test_anchor_may_be_written_anew(tmp_path: Path) -> None:
    assert values(tmp_path, "a: &x 1\nb: *x\nc: &x 2\nd: *x\n") == {"a": 1, "b": 1, "c": 2, "d": 2}


def test_free_keys_are_dropped_at_the_top_only(tmp_path: Path) -> None:
    assert values(tmp_path, "x-a: ${UNSET}\na: {x-b: 1}\n") == {"a": {"x-b": 1}}


def test_every_value_and_key_has_its_place(tmp_path: Path) -> None:
    document, _ = read(tmp_path, "a: 1\nb:\n  - x: yes\n    y: [1, '二']\n  - z\n")
    assert document is not None
    shown = {".".join(map(str, path)): f"{s.line}:{s.column}-{s.end_column}" for path, s in document.spans.items()}
    assert shown == {
        "": "1:1-5", "a": "1:4-5", "b": "3:3-11", "b.0": "3:5-11", "b.0.x": "3:8-11", "b.0.y": "4:8-16",
        "b.0.y.0": "4:9-10", "b.0.y.1": "4:12-15", "b.1": "5:5-6",
    }  # fmt: skip
    assert {".".join(map(str, p)): f"{s.line}:{s.column}-{s.end_column}" for p, s in document.keys.items()} == {
        "a": "1:1-2", "b": "2:1-2", "b.0.x": "3:5-6", "b.0.y": "4:5-6",
    }  # fmt: skip


def test_an_alias_stands_where_it_is_used_and_its_inside_where_it_was_written(tmp_path: Path) -> None:
    document, _ = read(tmp_path, "a: &a {x: 1}\nb: *a\n")
    assert document is not None
    assert (document.spans["b",].line, document.spans["b", "x"].line, document.keys["b", "x"].line) == (2, 1, 1)


def test_several_errors_at_once(tmp_path: Path) -> None:
    _, report = read(tmp_path, "a: .nan\nb: 1\nb: 2\n3: x\nc: !odd y\nd: ${NOPE}\n")
    assert places(report) == ["DC109 1:4", "DC105 3:1", "DC110 4:1", "DC108 5:4", "DC120 6:4"]
