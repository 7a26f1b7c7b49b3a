"""Templates are programs from a hub: what is broken is named with its line, what does not end is ended."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizer_folders import carried, codes, model, said

from deployc.build.tokenizer import sandbox
from deployc.build.tokenizer.rendering import render

TOKENS = {"<|endoftext|>": 151643, "<|im_start|>": 151644, "<|im_end|>": 151645}
CHAT = {"messages": [{"role": "user", "content": "Grüße, 你好 <b>&</b>"}], "tools": None}


def text(template: str, **variables: object) -> str:
    (result,) = render([(template, {**CHAT, **variables})])
    assert result.error == ""
    assert result.text is not None
    return result.text


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (
            "{% for m in messages %}\n  {% if true %}\n{{ m.content }}\n  {% endif %}\n{% endfor %}\n",
            "Grüße, 你好 <b>&</b>\n",
        ),
        ("{{ messages | tojson }}", '[{"role": "user", "content": "Grüße, 你好 <b>&</b>"}]'),
        ("{{ {'b': 1, 'a': none} | tojson(indent=2) }}", '{\n  "b": 1,\n  "a": null\n}'),
        (
            "{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}"
            "{% if i == 4 %}{% break %}{% endif %}{{ i }}{% endfor %}",
            "013",
        ),
        ("{{ strftime_now('%Y') | length }}", "4"),
        ("{% set ns = namespace(n=1) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}", "2"),
        ("{% generation %}{{ messages[0].role }}{% endgeneration %}!", "user!"),
        ("{% macro say(x) %}<{{ x }}>{% endmacro %}{{ say('a') }}{{ nothing }}", "<a>"),
        ("{{ dict(a=1).items() | list | length }}", "1"),
    ],
)  # fmt: skip
def test_what_chat_templates_count_on(template: str, expected: str) -> None:
    assert text(template) == expected


@pytest.mark.parametrize(
    ("template", "line", "message"),
    [
        ("{% for m in messages %}\n{{ m.content }}\n{% endfo %}", 3, "endfo"),
        ("a\n{{ messages | nofilter }}", 2, "nofilter"),
        ("a\nb\n{{ messages.nothing.more }}", 3, "nothing"),
        ("a\n{{ nothing() }}", 2, "nothing"),
        ("{{ 'a' + 1 }}", 1, "TypeError"),
        ("a\n{{ messages.append(1) }}", 2, "append"),
        ("{{ ''.__class__.__mro__ }}", 1, "__class__"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", 1, "without end"),
        ("{{ range(999999) | length }}", 1, "Range too big"),
        ("{% include 'secrets' %}", 1, "loader"),
    ],
)
def test_a_fault_is_named_with_its_line(tmp_path: Path, template: str, line: int, message: str) -> None:
    model(tmp_path, TOKENS, "<|im_end|>", template, {"eos_token_id": 151645})
    result = carried(tmp_path)
    assert [d.code for d in result.report.errors] == ["DC297"]
    detail = said(result, "DC297").detail
    assert f"line {line}: " in detail
    assert message in detail


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ 'x' * 99999999 }}", "characters"),
        ("{% for i in range(99999) %}{{ 'x' * 99 }}{% endfor %}", "characters"),
        ("{% set x = 'x' * 9999999999 %}", "MiB of memory"),
        (
            "{% set ns = namespace(s='xx') %}{% for i in range(64) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
            "MiB of memory",
        ),
    ],
)
def test_what_grows_without_end_is_ended(template: str, message: str) -> None:
    (result,) = render([(template, CHAT)])
    assert result.text is None
    assert message in result.error


def test_a_loop_without_end_is_ended_and_alone_is_blamed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`sandbox.SECONDS` is read by the child from the file: a copy with one second spares the wait."""
    from deployc.build.tokenizer import rendering

    quick = tmp_path / "sandbox.py"
    source = Path(sandbox.__file__).read_text()
    assert "SECONDS, MEMORY, CHARACTERS = 10, " in source
    quick.write_text(source.replace("SECONDS, MEMORY, CHARACTERS = 10, ", "SECONDS, MEMORY, CHARACTERS = 1, "))
    monkeypatch.setattr(rendering, "_SANDBOX", quick)
    loop = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    ended, fine = render([(loop, CHAT), ("{{ messages[0].role }}", CHAT)])
    assert (ended.text, fine.text) == (None, "user")
    assert "processor time" in ended.error


def test_special_tokens_are_the_templates_variables(tmp_path: Path) -> None:
    ended = "{% for m in messages %}{{ image_token }}{{ m.content }}{{ eos_token }}{% endfor %}"
    model(tmp_path, TOKENS, "<|im_end|>", ended, {"eos_token_id": 151645})
    assert codes(carried(tmp_path)) == []
