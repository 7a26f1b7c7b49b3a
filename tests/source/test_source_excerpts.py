"""The line that a diagnostic quotes: never a secret's characters, nothing unprintable, carets in place."""

from __future__ import annotations

from pathlib import Path

import pytest

from deployc.source import load
from deployc.source.secrets import masked, secret_name, secret_value

KEY = "sk-" + "a1B2" * 8


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("api_key: abc", "api_key: ***"),
        ("  api_key: 'a b'  # why", "  api_key: *****  # why"),
        ('target: {api_key: "a, b", port: 1}', "target: {api_key: ******, port: 1}"),
        ("HF_TOKEN: 123456", "HF_TOKEN: ******"),
        ("api_key：abc", "api_key：***"),
        ("args: {api-key: abc}", "args: {api-key: ***}"),
        (f"x: {KEY}", f"x: {'*' * len(KEY)}"),
        ("url: https://me:pw@host/", "url: https://*****@host/"),
        ("api_key: {env: NAME}", "api_key: {env: NAME}"),
        ("api_key: [a]", "api_key: [a]"),
        ("max_tokens: 10", "max_tokens: 10"),
        ("input_tokens: 1500", "input_tokens: 1500"),
        ("tokens_per_second: 2500", "tokens_per_second: 2500"),
        ("tokenizer: x", "tokenizer: x"),
        ("source: Qwen/Qwen2.5-7B-Instruct", "source: Qwen/Qwen2.5-7B-Instruct"),
        ("hub_token: # none", "hub_token: # none"),
    ],
)
def test_masked(line: str, shown: str) -> None:
    assert masked(line) == shown


@pytest.mark.parametrize(
    "text", ["a: b: c", "b: [", "b: 'x", "\tb: 1", "b: !!odd 1", "b: .nan", "b：1", "b: ${NOPE}", "b: 1"]
)
def test_a_broken_line_shows_no_secret(tmp_path: Path, text: str) -> None:
    file = tmp_path / "deploy.yaml"
    file.write_text(f"b: 2\napi_key: {KEY}-and-more # {text}\n{text} # password: hunter2\n", encoding="utf-8")
    document, report = load(file, {})
    assert report.errors
    everything = repr((report, dict(document.spans) if document else None))
    assert KEY not in everything and "and-more" not in everything and "hunter2" not in everything


def test_control_characters_do_not_reach_the_terminal(tmp_path: Path) -> None:
    file = tmp_path / "deploy.yaml"
    file.write_bytes(b"a: \x1b[31mred\n")
    _, report = load(file, {})
    assert report.diagnostics[0].at is not None and report.diagnostics[0].at.excerpt == "a: \ufffd[31mred"


def test_names_and_values() -> None:
    assert all(map(secret_name, ("HF_TOKEN", "api-key", "apiKey", "password", "client_secret", "x.token")))
    assert not any(
        map(secret_name, ("tokens", "tokenizer", "eos_token", "max_num_batched_tokens", "key", "keys", "PWD"))
    )
    numbers = ("dbo-decode-token-threshold", "VLLM_SHARED_EXPERTS_STREAM_TOKEN_THRESHOLD", "max-prompt-adapter-token")
    assert not any(map(secret_name, numbers))
    assert masked(f"{numbers[0]}: 32") == f"{numbers[0]}: 32"
    assert all(map(secret_value, (KEY, "hf_" + "x" * 20, "ghp_" + "x" * 20, "-----BEGIN RSA PRIVATE KEY-----")))
    assert not any(map(secret_value, ("sk-learn", "hf_model", "Qwen/Qwen2.5-7B", "https://host:80/x", "")))
