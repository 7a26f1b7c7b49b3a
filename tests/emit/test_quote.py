"""Each format gives back what was quoted for it, read by that format's own rules."""

from __future__ import annotations

import json
import re
import shlex
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from readback import dockerfile_value, systemd_words
from ruamel.yaml import YAML

from deployc.emit import quote

NO_NUL = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
NASTY = st.text(st.sampled_from(list("$%\\\"'`{}()|&;<>*?~#! \t\n=:,-@[]é中😀")), max_size=20)
TEXT = NO_NUL | NASTY
NO_FORM_IN_A_UNIT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]|[\U0001fffe-\U0010ffff]")


@given(TEXT)
def test_a_shell_word_is_read_back_whole(text: str) -> None:
    assert shlex.split(quote.shell(text)) == [text] or quote.PLACEHOLDER.search(text)


@settings(max_examples=20, deadline=None)
@given(st.lists(TEXT, min_size=1, max_size=5))
def test_a_real_shell_reads_the_same_words(words: list[str]) -> None:
    line = "printf '%s\\0' " + " ".join(quote.shell(word) for word in words)
    printed = subprocess.run(["sh", "-c", line], capture_output=True, check=True).stdout.decode()
    assert printed.split("\0")[:-1] == words


def test_a_placeholder_is_expanded_by_the_shell_and_nothing_else_is() -> None:
    word = quote.shell("a b=${DEPLOYC_ADAPTER_0}/$HOME")
    run = subprocess.run(
        ["sh", "-c", f"printf %s {word}"],
        capture_output=True,
        text=True,
        env={"DEPLOYC_ADAPTER_0": "/x  y", "HOME": "h"},
    )
    assert run.stdout == "a b=/x  y/$HOME"


@given(TEXT)
def test_yaml_reads_the_same_text(text: str) -> None:
    assert YAML(typ="safe", pure=True).load("key: " + quote.yaml(text))["key"] == text


@given(TEXT)
def test_compose_undoubles_the_dollars(text: str) -> None:
    scalar = YAML(typ="safe", pure=True).load("key: " + quote.compose(text))["key"]
    assert not re.search(r"(?<!\$)(\$\$)*\$(?!\$)", scalar), "a lone $ is interpolated"
    assert scalar.replace("$$", "$") == text


@given(st.lists(TEXT, max_size=4))
def test_a_unit_reads_the_same_words(words: list[str]) -> None:
    try:
        line = " ".join(quote.systemd_word(word) for word in words)
    except quote.Unquotable:
        assert NO_FORM_IN_A_UNIT.search("".join(words))
        return
    assert "\n" not in line
    assert systemd_words(line, exec_line=True) == words


@given(TEXT)
def test_a_unit_value_keeps_dollars_single(text: str) -> None:
    try:
        value = quote.systemd_value(text)
    except quote.Unquotable:
        return
    assert systemd_words(value, exec_line=False) == [text]


@given(TEXT)
def test_a_dockerfile_value_is_read_back(text: str) -> None:
    try:
        quoted = quote.dockerfile(text)
    except quote.Unquotable:
        assert re.search(r"[\x00-\x1f\x7f-\x9f]", text)
        return
    assert dockerfile_value(quoted) == text


@given(st.lists(TEXT, max_size=4))
def test_the_exec_form_is_one_line_of_json(words: list[str]) -> None:
    line = quote.exec_form(words)
    assert json.loads(line) == words
    assert "\n" not in line


@given(TEXT)
def test_a_comment_stays_on_its_line(text: str) -> None:
    assert len(("# " + quote.comment(text)).splitlines()) == 1


@pytest.mark.parametrize(
    ("filter_one", "bad"),
    [
        (quote.variable, "A B"),
        (quote.variable, "1A"),
        (quote.variable, "A$(x)"),
        (quote.plain, "/var/lib/a b"),
        (quote.plain, ""),
        (quote.image, "image\nRUN x"),
        (quote.image, "--platform=x"),
        (quote.image, "a$B"),
        (quote.shell, "a\0b"),
        (quote.dockerfile, "a\nb"),
        (quote.systemd_word, "a\x1bb"),
        (quote.systemd_word, "a\ufdd0b"),
        (quote.systemd_value, "a\U0010ffff"),
        (quote.dockerfile, "a" * 65_000),
        (quote.value, "--trust-remote-code"),
        (quote.value, "-"),
        (quote.lora_name, "a=b"),
        (quote.lora_source, "./a,b"),
        (quote.folder, "state"),
        (quote.folder, "/srv/../etc"),
    ],
)
def test_what_has_no_form_is_refused(filter_one: object, bad: str) -> None:
    with pytest.raises(quote.Unquotable):
        filter_one(bad)  # type: ignore[operator]


def test_secrets_are_named_by_reference() -> None:
    assert quote.shell_secret("env:KEY") == '"${KEY:?}"'
    assert quote.shell_secret("file:/run/k ey") == "\"$(cat '/run/k ey')\""
    assert quote.shell_secret("file:keys/a") == '"$(cat "$DEPLOYC_FOLDER"/keys/a)"'
    assert quote.shell_secret("file:~/a b") == '"$(cat "$HOME"/\'a b\')"'
    assert quote.compose_secret("file:~/a") == 'file: "${HOME:?}/a"'
    assert quote.compose_secret("env:KEY") == 'environment: "KEY"'
    assert quote.compose_secret("file:/run/k$") == 'file: "/run/k$$"'
    assert quote.compose_secret("file:keys/a") == 'file: "${DEPLOYC_FOLDER:?}/keys/a"'
