"""Who reaches the engine, whether it is seen to start, where it may write: firing cases beside their neighbours."""

from __future__ import annotations

from typing import Any

import pytest
from configured import case_of, codes, facts_of

from deployc.facts.engine import versions
from deployc.facts.exposure import exposure
from deployc.rules.exposure import beside_the_key, key_on_disk
from deployc.rules.health import can_be_asked, start_has_time
from deployc.rules.places import CACHES, caches_can_be_written
from deployc.types.exposure import Exposure

KEYED = "{kind: docker, bind: %s, api_key: {env: KEY}}"
OPEN: dict[str, Any] = {"target": KEYED % "0.0.0.0"}
FIRES: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("DC602", "warning", OPEN, {"target": KEYED % "127.0.0.1"}),
    ("DC602", "warning", {"target": KEYED % "'::'"}, {"target": KEYED % "'::1'"}),
    ("DC602", "warning", OPEN, {"target": "{kind: docker, bind: 0.0.0.0}"}),
    (
        "DC604",
        "error",
        {"engine": "{version: 0.32.0, image: vllm/vllm-openai:v0.28.0}"},
        {"engine": "{version: 0.32.0, image: vllm/vllm-openai:v0.32.0-cu129}"},
    ),
    (
        "DC604",
        "error",
        {"engine": "{version: 0.32.0, image: 'mirror:5000/vllm/vllm-openai:v0.9.1@sha256:00'}"},
        {"engine": "{version: 0.32.0, image: vllm/vllm-openai:nightly}"},
    ),
    (
        "DC604",
        "warning",
        {"engine": "{version: 0.32.0, image: vllm/vllm-openai:v0.32.1}"},
        {"engine": "{version: 0.32.0, image: vllm/vllm-openai:v0.28.0}", "target": "{kind: systemd}"},
    ),
    (
        "DC604",
        "warning",
        {"engine": "{version: 0.32.0, image: registry/us/serving:1.4.2}"},
        {"engine": "{version: 0.32.0, image: registry/us/serving:2026-05}"},
    ),
    (
        "DC606",
        "error",
        {"rollout": "{health_timeout: 5s}"},
        {"rollout": "{health_timeout: 30min}"},
    ),
    (
        "DC607",
        "error",
        {"engine": "{version: 0.32.0, args: {headless: true}}"},
        {"engine": "{version: 0.32.0, args: {headless: false}}"},
    ),
    (
        "DC603",
        "error",
        {"engine": "{version: 0.32.0, env: {VLLM_CACHE_ROOT: /vllm-workspace}}"},
        {"engine": "{version: 0.32.0, env: {VLLM_CACHE_ROOT: /home/deployc/.cache/v}}"},
    ),
    (
        "DC603",
        "error",
        {"engine": "{version: 0.32.0, env: {HF_HOME: /data}}", "target": "{kind: systemd}"},
        {"engine": "{version: 0.32.0, env: {HF_HOME: /var/cache/deployc/test/hf}}", "target": "{kind: systemd}"},
    ),
    (
        "DC603",
        "error",
        {"engine": "{version: 0.32.0, env: {HF_HOME: /home/deployc/../x}}"},
        {"engine": "{version: 0.32.0, env: {HF_HOME: /data}}", "target": "{kind: process}"},
    ),
    (
        "DC603",
        "warning",
        {"engine": "{version: 0.32.0, image: mine:1, env: {TRITON_CACHE_DIR: /opt/triton}}"},
        {"engine": "{version: 0.32.0, image: mine:1, env: {TRITON_CACHE_DIR: /tmp/triton}}"},
    ),
]


@pytest.mark.parametrize(("code", "severity", "fires", "neighbour"), FIRES)
def test_each_fires_and_its_neighbour_does_not(
    code: str, severity: str, fires: dict[str, Any], neighbour: dict[str, Any]
) -> None:
    assert codes(**fires).get(code) == severity
    assert code not in codes(**neighbour)


@pytest.mark.parametrize(
    ("version", "stored"), [("0.11.2", False), ("0.12.0", True), ("0.28.0", True), ("0.29.0", False)]
)
def test_the_key_is_stored_by_some_versions(version: str, stored: bool) -> None:
    said = list(key_on_disk(case_of(facts_of(version=version), **OPEN)))
    assert [d.severity for d in said] == ["warning"] * stored
    assert all("0.29.0" in d.fix for d in said)


def test_a_key_is_not_stored_without_a_compile_cache_or_a_key() -> None:
    facts = facts_of(version="0.28.0")
    eager = "{version: 0.28.0, args: {enforce-eager: true}}"
    assert not list(key_on_disk(case_of(facts, engine=eager, target=KEYED % "127.0.0.1")))
    assert not list(key_on_disk(case_of(facts, target="{kind: docker}")))


@pytest.mark.parametrize(
    ("version", "guards", "beside", "guarded"),
    [
        ("0.8.5", "/v1.", "/invocations", "/cohere"),
        ("0.15.1", "/v1.", "/pause (stops all generation)", "/v2"),
        ("0.21.0", "/v1.", "/inference/v1/generate", "/v2"),
        ("0.22.0", "/v1, /v2 or /inference.", "/generative_scoring", "/inference/v1/generate"),
        ("0.33.0", "/v1, /v2, /inference or /cohere.", "/scale_elastic_ep", "/pause"),
    ],
)
def test_the_routes_are_those_of_the_version(version: str, guards: str, beside: str, guarded: str) -> None:
    (said,) = beside_the_key(case_of(facts_of(version=version), **OPEN))
    assert guards in said.detail
    assert beside in said.detail and guarded not in said.detail


def test_developer_routes_are_named_where_they_are_switched_on() -> None:
    on, off = (f"{{version: 0.32.0, env: {{VLLM_SERVER_DEV_MODE: '{value}'}}}}" for value in "10")
    (said,) = beside_the_key(case_of(engine=on, **OPEN))
    assert "/collective_rpc (calls any method of the workers)" in said.detail and "VLLM_SERVER_DEV_MODE" in said.detail
    (quiet,) = beside_the_key(case_of(engine=off, **OPEN))
    assert "/collective_rpc" not in quiet.detail


@pytest.mark.parametrize("version", versions())
def test_every_version_guards_v1_and_leaves_invocations_open(version: str) -> None:
    known = exposure(version)
    assert "/v1" in known.guarded
    assert "/invocations" in {route.path for route in known.open}
    assert not [route for route in known.open if route.path.startswith(known.guarded)]
    assert Exposure() != known


@pytest.mark.parametrize("seconds", [None, "low", "high"])
def test_a_start_s_time_is_judged_against_the_band(seconds: str | None) -> None:
    predicted = case_of().prediction.startup_seconds
    assert predicted.low < predicted.value < predicted.high
    limit = {"low": predicted.low * 0.5, "high": predicted.high * 1.1, None: predicted.value}[seconds]
    said = list(start_has_time(case_of(rollout=f"{{health_timeout: {limit:.1f}s}}")))
    assert [str(d.severity) for d in said] == {"low": ["error"], "high": [], None: ["warning"]}[seconds]
    assert all(d.basis == predicted.basis for d in said)


def test_a_flag_that_the_version_lacks_is_left_to_others() -> None:
    case = case_of(engine="{version: 0.32.0, args: {uds: /run/x.sock}}")
    assert ("uds" in case.facts.engine.flags) == bool(list(can_be_asked(case)))


@pytest.mark.parametrize("name", CACHES)
def test_every_cache_is_known_by_its_variable(name: str) -> None:
    (said,) = caches_can_be_written(case_of(engine=f"{{version: 0.32.0, env: {{{name}: /.cache}}}}"))
    assert said.code == "DC603" and name in said.detail and f"engine.env.{name}" in said.fix
