"""`${NAME}` in values: typed anew, all unset ones at once, and no secret ever."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from deployc.diagnostics import Report
from deployc.source import Document, load

KEY = "sk-" + "a1B2" * 8
TOKEN = "hf_" + "a1B2" * 8


def read(folder: Path, text: str, env: dict[str, str]) -> tuple[Document | None, Report]:
    (folder / "deploy.yaml").write_text(text)
    return load(folder / "deploy.yaml", env)


def digest(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("written", "env", "value"),
    [
        ("${PORT}", {"PORT": "8000"}, 8000),
        ("'${PORT}'", {"PORT": "8000"}, "8000"),
        ("${PORT}00", {"PORT": "80"}, 8000),
        ("v${A}-${B}", {"A": "1", "B": "2"}, "v1-2"),
        ("${A:-x}", {}, "x"),
        ("${A:-x}", {"A": ""}, "x"),
        ("${A:-x}", {"A": "y"}, "y"),
        ("${A:-}", {}, None),
        ("${A}", {"A": ""}, None),
        ("${A:-1.5}", {}, 1.5),
        ("$${A}", {}, "${A}"),
        ("$$${A}", {}, "$${A}"),
        ("${A}", {"A": "${B}"}, "${B}"),
        ("${A}", {"A": "no"}, "no"),
        ("${A}", {"A": "x: y # z"}, "x: y # z"),
        ("${A}", {"A": "[1, 2]"}, "[1, 2]"),
        ("${A}", {"A": "*x"}, "*x"),
        ("$A", {"A": "x"}, "$A"),
        ("a$b{c}", {}, "a$b{c}"),
        ("${A:-a:-b}", {}, "a:-b"),
        ("${A:-中文}", {}, "中文"),
        ("['${A:-1}', x]", {}, ["1", "x"]),
        ("|\n  ${A:-x}", {}, "x\n"),
    ],
)
def test_values(tmp_path: Path, written: str, env: dict[str, str], value: Any) -> None:
    document, report = read(tmp_path, f"a: {written}\n", env)
    assert not report.errors and document is not None
    assert document.values["a"] == value and type(document.values["a"]) is type(value)


def test_names_and_digests_of_what_was_used(tmp_path: Path) -> None:
    document, _ = read(tmp_path, "a: ${A}\nb: ${B:-d}${A}\nc: $${C}\nx-d: ${D}\n", {"A": "1"})
    assert document is not None
    assert document.variables == {"A": digest("1"), "B": digest("d")}


def test_all_unset_at_once_each_in_its_place(tmp_path: Path) -> None:
    _, report = read(tmp_path, "a: ${A}\nb:\n  - ${B} ${C}\n", {})
    assert [(d.code, str(d.at), d.detail.split()[0]) for d in report] == [
        ("DC120", "deploy.yaml:1:4", "${A}"),
        ("DC120", "deploy.yaml:3:5", "${B}"),
        ("DC120", "deploy.yaml:3:5", "${C}"),
    ]


@pytest.mark.parametrize("written", ["${", "${A", "${1A}", "${A-b}", "${A:=b}", "${}", "${A:-${B}}", "${A B}", "${Ä}"])
def test_malformed(tmp_path: Path, written: str) -> None:
    _, report = read(tmp_path, f"a: '{written}'\n", {"A": "1", "B": "2"})
    assert "DC122" in [d.code for d in report]


@pytest.mark.parametrize("value", ["a\x1bb", "a\0b", "\udcff"])
def test_values_that_no_text_can_hold(tmp_path: Path, value: str) -> None:
    document, report = read(tmp_path, "a: ${A}\n", {"A": value})
    assert [d.code for d in report] == ["DC123"]
    assert document is not None and document.variables == {}


def test_a_number_that_overflows(tmp_path: Path) -> None:
    _, report = read(tmp_path, "a: ${A}\n", {"A": ".inf"})
    assert [(d.code, str(d.at)) for d in report] == [("DC109", "deploy.yaml:1:4")]


@pytest.mark.parametrize(
    ("text", "env"),
    [
        ("target: {api_key: '${K}'}\n", {"K": "harmless-looking"}),
        ("target:\n  api_key:\n    env: ${K}\n", {"K": "harmless-looking"}),
        ("target: {hub_token: {file: '${K}'}}\n", {"K": "harmless-looking"}),
        *((f"a: ${{{name}}}\n", {name: "harmless-looking"}) for name in (
            "HF_TOKEN", "MY_SECRET", "DB_PASSWORD", "OPENAI_API_KEY", "apikey", "AWS_ACCESS_KEY_ID", "PASSWD",
            "PRIVATE_KEY", "GITHUB_TOKEN_FILE", "CREDENTIALS", "BEARER",
        )),
        ("a: ${X}\n", {"X": TOKEN}),
        ("a: ${X}\n", {"X": "postgres://me:harmless-looking@host/db"}),
        (f"a: ${{X:-{KEY}}}\n", {}),
    ],
)  # fmt: skip
def test_secrets_are_refused_and_appear_nowhere(tmp_path: Path, text: str, env: dict[str, str]) -> None:
    document, report = read(tmp_path, text, env)
    assert [d.code for d in report] == ["DC121"]
    everything = repr((document, report))
    for value in (*env.values(), KEY):
        assert value not in everything and digest(value) not in everything


@pytest.mark.parametrize("name", ["MAX_TOKENS", "TOKENIZER", "PWD", "HOME", "MONKEY", "EOS_TOKEN", "KEYS", "TOKEN_ID"])
def test_names_that_are_no_secrets(tmp_path: Path, name: str) -> None:
    document, report = read(tmp_path, f"a: ${{{name}}}\n", {name: "x"})
    assert not report.errors and document is not None and document.values == {"a": "x"}
