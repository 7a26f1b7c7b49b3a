"""A secret typed as a literal: refused wherever it can be typed, and repeated nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from deployc import pipeline
from deployc.plan.document import partial_document
from deployc.views.diagnostics import diagnostics as view

CANARY = "c4nary-9f8e7d6c"
BASE = """\
version: 1
name: domain-qa
model: {source: ./model%s}
hardware: {gpu: rtx-4090}
workload: {input_tokens: 1500, output_tokens: 256, concurrency: 8}
engine: {version: 0.33.0%s}
%s
"""
REFUSED = {
    "api_key": ("", "", f"target: {{api_key: {CANARY}}}"),
    "number": ("", "", "target: {api_key: 4815162342}"),
    "hub_token": ("", "", f"target:\n  hub_token: {CANARY}\n  port: 0"),
    "quoted": ("", "", f"target: {{port: x, api_key: \"{CANARY}\", bind: 'y'}}"),
    "single-quoted": ("", "", f"target:\n  api_key: '{CANARY} and ''more'\n"),
    "list": ("", "", f"target: {{hub_token: [{CANARY}]}}"),
    "map": ("", "", f"target: {{api_key: {{value: {CANARY}}}}}"),
    "in-env": ("", "", f"target: {{api_key: {{env: '{CANARY}!'}}}}"),
    "block": ("", "", f"target:\n  api_key: |\n    {CANARY}\n  port: x"),
    "folded": ("", "", f"target: {{api_key: 'begin\n  {CANARY}', port: x}}"),
    "engine-env": ("", f", env: {{MY_API_KEY: {CANARY}, OTHER: 1}}", ""),
    "engine-env-password": ("", f", env: {{DB_PASSWORD: '{CANARY}'}}", "target: {kind: x}"),
    "engine-args": ("", f", args: {{api-key: {CANARY}, 'a b': 1}}", ""),
    "engine-args-list": ("", f", args: {{api_key: [a, {CANARY}]}}", ""),
    "labels": ("", "", f"target: {{labels: {{x.token: {CANARY}}}}}"),
    "unknown-key": ("", "", f"target: {{password: {CANARY}}}"),
    "unknown-section": ("", "", f"secrets:\n  access_key: {CANARY}"),
    "twice": ("", "", f"target:\n  api_key: {CANARY}\n  api_key: {CANARY}"),
    "endpoint": (f", endpoint: 'https://me:{CANARY}@mirror.example/x'", "", ""),
    "endpoint-token": (f", endpoint: 'https://{CANARY}@mirror.example/x'", "", ""),
    "endpoint-odd": (f", endpoint: 'https://me:{CANARY}@@h/x', hub: nowhere", "", ""),
    "docker-host": ("", "", f"target: {{docker_host: 'ssh://me:{CANARY}@host'}}"),
    "proxy": ("", f", env: {{http_proxy: 'http://me:{CANARY}@proxy:3128'}}", "target: {http_proxy: 1}"),
    "speculative": ("", f", speculative: {{token: {CANARY}}}", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_and_repeated_nowhere(tmp_path: Path, name: str) -> None:
    file = tmp_path / "deploy.yaml"
    file.write_text(BASE % REFUSED[name])
    analysis = pipeline.shape(file, {})
    assert "DC164" in [d.code for d in analysis.report.errors]
    spans = [*analysis.deploy._spans.values()] if analysis.deploy else []
    everything = "\n".join(
        [repr(analysis.report), view(analysis.report), repr(partial_document(None, analysis.report)), repr(spans)]
    )
    assert CANARY not in everything and "4815162342" not in everything


@pytest.mark.parametrize(
    "rest",
    [
        ("", "", "target: {api_key: {env: DEPLOYC_API_KEY}, hub_token: {file: ./hub-token}}"),
        ("", ", env: {HF_TOKEN_PATH: /run/secrets/hub, TOKENIZERS_PARALLELISM: 'false', MAX_TOKENS: '8'}", ""),
        ("", ", args: {max-num-batched-tokens: 8192, enable-prompt-tokens-details: true, ssl-keyfile: ./key.pem}", ""),
        (", overrides: {bos_token: '<s>', eos_token_id: 2}", "", ""),
        (", endpoint: 'https://mirror.example:8443/a@b'", "", ""),
    ],
)
def test_what_is_no_secret_passes(tmp_path: Path, rest: tuple[str, str, str]) -> None:
    file = tmp_path / "deploy.yaml"
    file.write_text(BASE % rest)
    analysis = pipeline.shape(file, {})
    assert [(d.code, d.detail) for d in analysis.report.errors] == []


def test_the_rest_of_the_line_is_still_shown(tmp_path: Path) -> None:
    file = tmp_path / "deploy.yaml"
    file.write_text(BASE % REFUSED["api_key"])
    (only,) = pipeline.shape(file, {}).report
    assert only.at is not None and only.at.excerpt == f"target: {{api_key: {'*' * len(CANARY)}}}"
