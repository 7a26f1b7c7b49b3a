"""docs/codes/: a page for every code, in one form, true to the code it is of; `deployc explain` shows them."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from codes import summaries

from deployc.cli import show
from deployc.cli.main import run
from deployc.data import pages
from deployc.diagnostics import Report, error, note, warning
from deployc.views import pages as view

ROOT = Path(__file__).resolve().parent.parent
Capture = pytest.CaptureFixture[str]
FILES = sorted(path for path in pages().iterdir() if path.name != "zh")
IN_ALL_LANGUAGES = [*FILES, *sorted((pages() / "zh").iterdir())]
IN_TREE = re.compile(r"(?<![\w./-])((?:deployc|profiles)/[\w./-]*\w)")


@pytest.fixture(autouse=True)
def _english(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the locale of who runs the tests; Chinese is in test_pages_zh.py."""
    monkeypatch.setenv("DEPLOYC_LANG", "en")


def python_lines(path: Path) -> list[str]:
    """The Python that a page has typed: `python3 -c '…'`."""
    return re.findall(r"(?:python3?|PYTHON) -c '([^']*)'", path.read_text(encoding="utf-8"))


def on_a_config(line: str) -> bool:
    """Whether it needs nothing but a model's config.json."""
    return "config.json" in line and "adapter_config" not in line and "tokenizer" not in line


def test_every_code_has_a_page_and_every_page_a_code() -> None:
    assert {path.name for path in FILES} == {f"{code}.md" for code in summaries()}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_page_says_all_five_things(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    page = view.read(text)
    assert page.code == path.stem
    assert {page.summary} == summaries().get(page.code)
    assert all(getattr(page, part) for part in view.PARTS)
    assert re.findall(r"^\*\*([^*]+)\*\*", text, re.MULTILINE) == list(view.PARTS.values())
    assert view.room(page.code)


@pytest.mark.parametrize("path", IN_ALL_LANGUAGES, ids=lambda path: path.stem)
def test_what_a_page_points_to_is_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", prose) if "://" not in link]
    assert [link for link in links if not (path.parent / link.partition("#")[0]).exists()] == []
    assert [name for name in IN_TREE.findall(text) if not (ROOT / name).exists()] == []
    assert set(re.findall(r"\bDC\d{3}\b", text)) <= summaries().keys()


@pytest.mark.parametrize("path", IN_ALL_LANGUAGES, ids=lambda path: path.stem)
def test_what_is_to_be_typed_is_well_formed(path: Path) -> None:
    """A shell parses every block of code, and Python every one-liner."""
    for block in re.findall(
        r"^```(?:sh|bash)?\n(.*?)^```$", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    ):
        done = subprocess.run(["bash", "-n"], input=block, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
    for line in python_lines(path):
        compile(line, path.name, "exec")


@pytest.mark.parametrize(
    "path", [path for path in FILES if any(map(on_a_config, python_lines(path)))], ids=lambda p: p.stem
)
def test_sums_on_a_models_config_can_be_done(path: Path) -> None:
    """What a page does with config.json, done with a real model's: it gives figures, and DC302's are as it says."""
    folder = ROOT / "examples" / "written_by_hand" / "qwen2.5-7b-instruct"
    for line in filter(on_a_config, python_lines(path)):
        command = [sys.executable, "-c", line]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.stderr == ""
        assert done.stdout.strip()
        if path.stem == "DC302":
            assert done.stdout == f"{56 * 1024} bytes a token\n"


def test_the_page_of_a_code_is_shown(capsys: Capture) -> None:
    for written in ("DC302", "dc302", "302", "error[DC302]:"):
        assert run(["explain", written]) == 0
        shown = capsys.readouterr().out
        assert shown.startswith("DC302: a request of full length does not fit into the KV cache\n\nWhat\n  One request")
        assert all(f"\n{words}\n  " in shown for words in view.PARTS.values())
        assert "**" not in shown
        prose = [line for line in shown.splitlines() if not line.startswith(" " * 6)]
        assert max(map(len, prose)) <= 80


def test_a_page_is_one_json_document(capsys: Capture) -> None:
    assert run(["explain", "DC302", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert list(document) == ["format_version", "code", "language", "summary", *view.PARTS]
    assert all(document.values())


def test_all_codes_are_listed_by_room(capsys: Capture) -> None:
    assert run(["explain"]) == 0
    shown = capsys.readouterr().out
    assert re.findall(r"^  (DC\d{3})  ", shown, re.MULTILINE) == [path.stem for path in FILES]
    assert shown.startswith("reading the file\n  DC100  the file cannot be read\n")
    assert run(["explain", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [one["code"] for one in document["codes"]] == [path.stem for path in FILES]


@pytest.mark.parametrize(
    ("written", "named"),
    [("DC999", FILES[-1].stem), ("DC299x", "DC299"), ("3022", "DC302"), ("DC31", "DC310"), ("kv", "")],
)
def test_what_is_no_code_is_wrong_usage_and_names_near_ones(written: str, named: str, capsys: Capture) -> None:
    assert run(["explain", written]) == 64
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "is no code" in shown.err
    assert named in shown.err
    assert ("Near it" in shown.err) == bool(named)


def test_markdown_becomes_plain_text() -> None:
    text = (
        "# DC302: a summary\n\n**What** one `two` **three**\nfour.\n\n- a [link](https://x.example/y)\n- b\n\n"
        "**Why** y\n\n**Check by hand**\n\n```\nprint(  1 )\n\n# two\n```\n\nmore\n\n**Fix** f\n\n**Source** s\n"
    )
    page = view.read(text)
    assert page.check == "```\nprint(  1 )\n\n# two\n```\n\nmore"
    assert view.shown(page) == (
        "DC302: a summary\n\nWhat\n  one `two` three four.\n\n  - a link (https://x.example/y)\n  - b\n\nWhy\n  y\n\n"
        "Check by hand\n      print(  1 )\n\n      # two\n\n  more\n\nFix\n  f\n\nSource\n  s\n"
    )
    colored = view.shown(page, color=True)
    assert "\x1b[1mWhat\x1b[0m" in colored
    assert "`" not in colored


def test_a_page_without_its_heading_is_refused() -> None:
    with pytest.raises(ValueError, match="DC302"):
        view.read("DC302 a summary\n")


class Terminal(io.StringIO):
    """A stream that a person reads."""

    def isatty(self) -> bool:
        return True


def test_only_a_terminal_is_told_where_the_first_finding_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read by a program, or kept in a file, is the report alone."""
    monkeypatch.setenv("NO_COLOR", "1")
    found = Report([note("DC221", "n"), warning("DC306", "w"), error("DC302", "e")])
    read, kept = Terminal(), io.StringIO()
    show.report(found, stream=read)
    show.report(found, stream=kept)
    assert read.getvalue() == kept.getvalue() + "More: `deployc explain DC302`\n"
    of_notes = Terminal()
    show.report(Report([note("DC221", "n")]), stream=of_notes)
    assert "explain" not in of_notes.getvalue()
