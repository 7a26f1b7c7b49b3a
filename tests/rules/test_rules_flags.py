"""Flags: when they came and went, where their value goes, and what of the deployment they contradict."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from configured import H200, card, facts_of
from versioned import args, codes_of, env, said

from deployc.facts.engine import load
from deployc.types.facts import AdapterFacts

TWO = "{gpu: h200-sxm, count: 2}"


def test_a_flag_that_came_later_says_from_when_on() -> None:
    (found,) = [d for d in said(args("structured-outputs-config: {backend: xgrammar}"), "0.9.2") if d.code == "DC507"]
    assert "came in vLLM 0.11.0" in found.detail and "engine.version: 0.11.0" in found.fix


@pytest.mark.parametrize(
    ("written", "version", "put"),
    [
        ("guided-decoding-backend: xgrammar", "0.12.0", 'structured-outputs-config: {backend: "xgrammar"}'),
        (
            "rope-scaling: {rope_type: yarn, factor: 4}",
            "0.13.0",
            "set model.context: {rope: yarn, factor: N}; for another kind model.overrides: {rope_parameters: ",
        ),
        ("enable-reasoning: true", "0.10.2", "set api.reasoning_parser"),
        ("task: generate", "0.13.0", "set engine.args.runner: generate"),
        ("num-speculative-tokens: 5", "0.9.2", "speculative-config: {num_speculative_tokens: 5}"),
    ],
)
def test_a_flag_that_went_says_where_its_value_goes(written: str, version: str, put: str) -> None:
    (found,) = [d for d in said(args(written), version) if d.code == "DC502"]
    assert put in found.fix


def test_a_flag_that_goes_says_where_its_value_goes_as_soon_as_it_can_go_there() -> None:
    for version, fix in (("0.11.2", 'structured-outputs-config: {backend: "outlines"}'), ("0.10.2", "remove it")):
        found = [d for d in said(args("guided-decoding-backend: outlines"), version) if d.code == "DC505"]
        assert version == "0.10.2" or (fix in found[0].fix and "went in 0.12.0" in found[0].detail)
    (later,) = [d for d in said(args("structured-outputs-config: {backend: xgrammar}"), "0.10.2") if d.code == "DC507"]
    assert "set guided-decoding-backend" in later.fix


def test_yarn_and_overrides_of_the_flag_are_one_thing() -> None:
    rope = "hf-overrides: {rope_parameters: {rope_type: yarn, factor: 2.0}}"
    yarn = {"model": "{source: org/model, context: {rope: yarn, factor: 4}}"}
    assert codes_of(said(args(rope), "0.33.0", sections=yarn))["DC503"] == "error"
    assert "DC503" not in codes_of(said(args(rope), "0.33.0"))


def test_quantized_by_us_is_quantized() -> None:
    """The artifact is in compressed-tensors, whatever its source was in."""
    ours = {"quantization": "{weights: fp8}"}
    assert "DC510" in codes_of(said(args("quantization: fp8"), "0.33.0", sections=ours))
    assert "DC510" not in codes_of(said(args("quantization: compressed-tensors"), "0.33.0", sections=ours))


def test_cards_decide_what_harms() -> None:
    nvlink, single = facts_of(cards=(H200, H200), version="0.33.0"), facts_of(cards=(H200,), version="0.33.0")
    pcie = facts_of(cards=(card(), card()), version="0.33.0")
    both, alone = {"hardware": TWO, "target": "{kind: docker}"}, {"hardware": "{gpu: h200-sxm}"}
    split = "parallel: {tensor: 2}, "
    for setting in (args("disable-custom-all-reduce: true"), env("NCCL_P2P_DISABLE: '1'")):
        assert {"DC509", "DC516"} & codes_of(said(split + setting, "0.33.0", facts=nvlink, sections=both)).keys()
        assert not {"DC509", "DC516"} & codes_of(said(split + setting, "0.33.0", facts=pcie, sections=both)).keys()
        assert not {"DC509", "DC516"} & codes_of(said(setting, "0.33.0", facts=single, sections=alone)).keys()


def test_adapters_that_lora_is_turned_off_for() -> None:
    adapter = AdapterFacts("a", "./a", None, {}, 16, "org/model", ("q_proj",), (), {})
    facts = replace(facts_of(version="0.33.0"), adapters=(adapter,))
    served = {"adapters": "[{name: a, source: ./a, mode: serve}]"}
    off, on = args("enable-lora: false"), args("max-lora-rank: 16")
    assert codes_of(said(off, "0.33.0", facts=facts, sections=served))["DC512"] == "error"
    assert not {"DC508", "DC512"} & codes_of(said(on, "0.33.0", facts=facts, sections=served)).keys()


def test_holes_that_callers_need_count_where_others_call() -> None:
    for bind, expected in (("0.0.0.0", "note"), ("127.0.0.1", None)):
        target = f"{{kind: docker, bind: {bind}, api_key: {{env: KEY}}}}"
        assert codes_of(said(args("seed: 1"), "0.29.0", sections={"target": target})).get("DC519") == expected


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("kv-cache-dtype: true", "needs a value"), ("revision: false", "needs a value"),
        ("compilation-config: true", "needs a value"), ("middleware: false", "needs a value"),
        ("all2all-backend: [naive, pplx]", "takes one value"), ("revision: [a]", "takes one value"),
        ("all2all-backend: {a: 1}", "choices"), ("ignore-patterns: []", "empty list"),
        ("collect-detailed-traces: [model, nothing]", "'nothing'"),
        ("revision: ''", "empty text"), ("enable-lora: 'yes'", "switch"), ("enable-lora: [true]", "takes one value"),
    ],
)  # fmt: skip
def test_values_of_a_kind_that_no_command_line_carries(written: str, says: str) -> None:
    (found,) = [d for d in said(args(written), "0.33.0") if d.code == "DC501"]
    assert says in found.detail


@pytest.mark.parametrize(
    "written",
    ["kv-cache-dtype: null", "hf-token: true", "allowed-local-media-path: ''", "allowed-origins: ['*']",
     "allowed-origins: []", "pt-load-map-location: 'cuda:0'", "kv-cache-dtype-skip-layers: []",
     "collect-detailed-traces: [model, worker]", "middleware: [a, b]", "enable-lora: false",
     "dbo-decode-token-threshold: 32"],
)  # fmt: skip
def test_values_that_a_command_line_carries(written: str) -> None:
    assert not {"DC501", "DC164"} & codes_of(said(args(written), "0.33.0")).keys()


OURS = ("config", "host", "model", "port")  # flags of which a key is the only place (DC612)


@pytest.mark.parametrize("version", ["0.8.5", "0.16.0", "0.33.0"])
def test_every_flag_takes_its_own_default(version: str) -> None:
    written = {}
    for flag in load(version).flags.values():
        if flag.default is not None and flag.name not in OURS:
            text = flag.type in ("str", "size") or flag.default == "cpu"
            written[flag.name] = flag.default if text else json.loads(flag.default)
    found = said(f"args: {json.dumps(written)}", version)
    assert [d.detail for d in found if d.code in ("DC164", "DC500", "DC501")] == []


@pytest.mark.parametrize("flag", ["hf-overrides", "speculative-config", "revision"])
def test_json_nested_beyond_all_reason_is_none(flag: str) -> None:
    text = json.dumps('{"a":' * 5000 + "1" + "}" * 5000)
    found = codes_of(said(args(f"{flag}: {text}"), "0.33.0"))
    assert ("DC501" in found) == (flag != "revision")
