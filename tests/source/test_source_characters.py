"""Look-alikes of YAML's punctuation: named where they stand, and the rest of the file still read as it was meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deployc.source import load


def found(folder: Path, text: str) -> tuple[dict[str, Any] | None, list[str]]:
    file = folder / "deploy.yaml"
    file.write_text(text, encoding="utf-8")
    document, report = load(file, {})
    return document.values if document else None, [
        f"{d.code} {d.at.line}:{d.at.column}" for d in report.ordered() if d.at is not None
    ]


@pytest.mark.parametrize(
    ("text", "places", "meant"),
    [
        ("name：a\nb: 1\nc：d\n", ["1:5", "3:2"], None),
        ("a: {b：1}\n", ["1:6"], None),
        ("model:\n  source： x\n", ["2:9"], {"model": {"source": "x"}}),
        ("m:\n  - name： x\n    b: 1\n", ["2:9"], {"m": [{"name": "x", "b": 1}]}),
        ("name:　a\n", ["1:6"], {"name": "a"}),
        ("m:\n　　a: 1\n", ["2:1", "2:2"], {"m": {"a": 1}}),
        ("m:\n\u00a0 a: 1\n", ["2:1"], {"m": {"a": 1}}),
        ("m:\n  － a\n  － b\n", ["2:3", "3:3"], {"m": ["a", "b"]}),
        ("m:\n  – a\n", ["2:3"], {"m": ["a"]}),
        ("a: “x y”\n", ["1:4", "1:8"], {"a": "x y"}),
        ("a: ‘x’\n", ["1:4", "1:6"], {"a": "x"}),
        ("a: ＂x＂\n", ["1:4", "1:6"], {"a": "x"}),
        ("a: [1，2， 3]\n", ["1:6", "1:8"], {"a": [1, 2, 3]}),
        ("a: [1、2]\n", ["1:6"], {"a": [1, 2]}),
        ("a: {b： 1, c: 2}\n", ["1:6"], {"a": {"b": 1, "c": 2}}),
        ("a: ｛b: 1｝\n", ["1:4", "1:9"], {"a": {"b": 1}}),
        ("a: ［1, 2］\n", ["1:4", "1:9"], {"a": [1, 2]}),
        ("a: 【1, 2】\n", ["1:4", "1:9"], {"a": [1, 2]}),
        ("a: 1 ＃ why\n", ["1:6"], {"a": 1}),
        ("＃ only\na: 1\n", ["1:1"], {"a": 1}),
        ("a: {env： “X”, file： Y}\n", ["1:8", "1:10", "1:12", "1:19"], {"a": {"env": "X", "file": "Y"}}),
        ("a: |\n  b：c\nd： 1\n", ["3:2"], {"a": "b：c\n", "d": 1}),
        ("a: “x” # “注释”\n", ["1:4", "1:6"], {"a": "x"}),
        ("a: [lm_head，embed］\n", ["1:12", "1:18"], {"a": ["lm_head", "embed"]}),
    ],
)
def test_slip_is_named_and_read_as_meant(tmp_path: Path, text: str, places: list[str], meant: Any) -> None:
    values, said = found(tmp_path, text)
    assert said[: len(places)] == [f"DC113 {place}" for place in places]
    assert values == meant and len(said) == len(places)


@pytest.mark.parametrize(
    "text",
    [
        "a: 你好，世界：“引号”【注】\n",
        'a: "名称：值，“x”"\n',
        "a: '名称：值'\n",
        "a: [\"你好，世界\", 'a：b']\n",
        "a: 1 # 注释：“说明”，［x］\n",
        "# ＃：，\na: 1\n",
        "a: |\n  name：x\n  “y”，［z］\n  － b\nb: 1\n",
        "a: >-\n  key： value\n",
        'a: "x\n  名称：“y”\n  z"\n',
        "a: 中文\u3000中文\n",
        "a: x—y\n",
        "名称: 1\n",
        "a: “高峰”时段可以\n",
        "a: {b: “高峰”时段可以, c: 1}\n",
        "a: {reason: 高峰，可以接受}\n",
        "a: [{code: DC402, reason: 高峰：可以，已评审}]\n",
        "a: [中文、说明，另一个]\n",
        "a: {b: 中文［x］}\n",
        "a: 见 ＃12\n",
        "a: {b: 见 ＃1, c: 2}\n",
        "a:\n  - |\n    你是：助手，“请”回答\n\n      ｛缩进｝\n  - x\n",
        "a: |+2\n    name：x\n\nb: 1\n",
        "a: >  # 说明：折叠\n  {x：1}\nb: 1\n",
        '"k": |\n  a：b\nb: 1\n',
        "a: 10：30\n",
    ],
)
def test_chinese_text_is_left_alone(tmp_path: Path, text: str) -> None:
    values, said = found(tmp_path, text)
    assert values is not None and said == []


def test_says_which_character_and_what_to_type(tmp_path: Path) -> None:
    (tmp_path / "deploy.yaml").write_text("name：a\n", encoding="utf-8")
    _, report = load(tmp_path / "deploy.yaml", {})
    (only,) = report
    assert "U+FF1A" in only.detail and "fullwidth colon" in only.detail
    assert only.fix.startswith("type a colon and a space in its place")


def test_other_errors_of_the_file_are_said_as_well(tmp_path: Path) -> None:
    values, said = found(tmp_path, "name： a\nb: 1\nb: 2\nc: .nan\n")
    assert said == ["DC113 1:5", "DC105 3:1", "DC109 4:4"]
    assert values is not None and values["name"] == "a"


def test_a_page_of_them_is_cut_short(tmp_path: Path) -> None:
    _, said = found(tmp_path, "".join(f"k{i}： 1\n" for i in range(200)))
    assert said.count("DC113 1:3") == 1 and len(said) == 20
