"""docs/codes/zh/: pages in Chinese, each held against its English one; `deployc explain` shows them by the locale."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from translated import blocks, figures, links, spans

from deployc.cli.main import run
from deployc.data import pages
from deployc.views import pages as view
from deployc.views.layout import joined, width, wrap

Capture = pytest.CaptureFixture[str]
FILES = sorted((pages() / "zh").iterdir())
CHINESE = re.compile(r"[\u4e00-\u9fff]")
CODE = re.compile(r"\bDC\d{3}\b")
each_page = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def both(path: Path) -> tuple[str, str]:
    """The page in English and in Chinese."""
    return (pages() / path.name).read_text(encoding="utf-8"), path.read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def _no_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DEPLOYC_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)


def test_the_commonest_codes_are_there() -> None:
    assert len(FILES) >= 20
    assert {"DC300", "DC301", "DC302", "DC303", "DC402", "DC500", "DC502", "DC520"} <= {path.stem for path in FILES}


@each_page
def test_a_page_has_its_first_line_and_five_parts(path: Path) -> None:
    _, text = both(path)
    page = view.read(text, "zh")
    assert page.code == path.stem
    assert CHINESE.search(page.summary)
    assert re.findall(r"^\*\*([^*]+)\*\*", text, re.MULTILINE) == list(view.IN_CHINESE.values())
    assert all(CHINESE.search(getattr(page, part)) for part in ("what", "why", "fix"))
    assert page.check and page.source


@each_page
def test_a_page_keeps_blocks_codes_and_links(path: Path) -> None:
    english, chinese = both(path)
    assert blocks(chinese) == blocks(english)
    assert set(CODE.findall(chinese)) == set(CODE.findall(english))
    assert links(chinese) == links(english)


@each_page
@pytest.mark.parametrize("part", view.PARTS)
def test_a_part_names_what_the_english_one_names(path: Path, part: str) -> None:
    """Keys, values and commands as they are, every figure; and no figure that the English page does not have."""
    texts = both(path)
    english, chinese = (
        getattr(view.read(text, language), part) for text, language in zip(texts, view.HEADINGS, strict=True)
    )
    assert spans(english).keys() - spans(chinese).keys() == set()
    assert figures(english) - figures(chinese) == {}
    large = {figure for figure in figures(chinese) if len(figure) > 1}
    assert large - figures(texts[0]).keys() == set()


@pytest.mark.parametrize(
    ("environ", "language"),
    [
        ({}, "en"),
        ({"DEPLOYC_LANG": "zh"}, "zh"),
        ({"DEPLOYC_LANG": "zh-Hans", "LANG": "en_US.UTF-8"}, "zh"),
        ({"DEPLOYC_LANG": "en", "LC_ALL": "zh_CN.UTF-8"}, "en"),
        ({"DEPLOYC_LANG": "", "LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.GB18030"}, "zh"),
        ({"LC_ALL": "C", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LC_MESSAGES": "en_US.UTF-8", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LC_ALL": "", "LC_MESSAGES": "zh_TW.UTF-8", "LANG": "C"}, "zh"),
        ({"LC_CTYPE": "zh_CN.UTF-8", "LANG": "de_DE.UTF-8"}, "en"),
    ],
    ids=str,
)
def test_the_language_is_that_of_the_locale(environ: dict[str, str], language: str) -> None:
    assert view.language(environ) == language


@each_page
@pytest.mark.parametrize("columns", [40, 80])
def test_a_page_fits_the_terminal(path: Path, columns: int) -> None:
    """Two columns a character; no line begins with a comma. Code alone is as wide as it is."""
    page = view.read(path.read_text(encoding="utf-8"), "zh")
    shown = view.shown(page, "zh", width=columns)
    prose = [line for line in shown.splitlines() if not line.startswith(" " * 6)]
    assert max(map(width, prose)) <= columns
    assert [line for line in prose if re.match(r"\s*[，。、；：）]", line)] == []
    assert all(f"\n{words}\n  " in shown for words in view.IN_CHINESE.values())
    assert "**" not in shown


def test_explain_shows_chinese_where_the_locale_is(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    assert run(["explain", "DC302"]) == 0
    english = capsys.readouterr().out
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    assert run(["explain", "DC302"]) == 0
    assert capsys.readouterr().out.startswith("DC302: 一个最大长度的请求放不进 KV cache\n\n是什么\n  ")
    monkeypatch.setenv("DEPLOYC_LANG", "en")
    assert run(["explain", "DC302"]) == 0
    assert capsys.readouterr().out == english


def test_a_page_that_is_not_in_chinese_is_shown_in_english_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    assert run(["explain", "DC100"]) == 0
    english = capsys.readouterr().out
    monkeypatch.setenv("DEPLOYC_LANG", "zh")
    assert run(["explain", "DC100"]) == 0
    assert capsys.readouterr().out == f"{view.NOT_IN_CHINESE.format(code='DC100')}\n\n{english}"


def test_json_says_its_language(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("DEPLOYC_LANG", "zh")
    for code, language in (("DC302", "zh"), ("DC100", "en")):
        assert run(["explain", code, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["language"] == language


def test_a_listing_names_the_pages_in_chinese(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    assert run(["explain"]) == 0
    english = capsys.readouterr().out
    monkeypatch.setenv("DEPLOYC_LANG", "zh")
    assert run(["explain"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(english)
    assert CODE.findall(shown.removeprefix(english)) == [path.stem for path in FILES]


def test_lines_of_chinese_are_joined_without_spaces_between_characters() -> None:
    assert joined(["模型放不进", "这张卡，", "KV cache", "也是：", "`fp8`"]) == "模型放不进这张卡，KV cache 也是：`fp8`"
    assert joined(["one", "two"]) == "one two"
    assert joined([]) == ""


def test_chinese_punctuation_neither_begins_nor_ends_a_line_wrongly() -> None:
    assert wrap("这个模型放不下，换卡", 14) == ["这个模型放不", "下，换卡"]
    assert wrap("这个模型放（不下）", 12) == ["这个模型放", "（不下）"]
