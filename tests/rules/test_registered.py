"""The model's class and the parsers, against the registries of this very version."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from configured import QWEN_7B, codes, facts_of
from versioned import args, codes_of, said

from deployc.facts.registries import registries
from deployc.types.facts import AdapterFacts, Facts

QWEN3 = QWEN_7B | {"architectures": ["Qwen3ForCausalLM"]}
OWN = QWEN_7B | {"architectures": ["SomebodysOwnForCausalLM"]}
BOTH = QWEN_7B | {"architectures": ["Qwen3ForCausalLM", "Qwen2ForCausalLM"]}
GONE = QWEN_7B | {"architectures": ["BambaForCausalLM"]}
NONE = QWEN_7B | {"architectures": []}
LACKING = [
    (QWEN3, "0.8.2", "error", "0.8.4"),
    (QWEN3, "0.8.3", "warning", "0.8.4"),  # its transformers has one
    (GONE, "0.24.0", "error", "0.24.0"),
]
THERE = [(QWEN3, "0.8.4"), (OWN, "0.8.2"), (BOTH, "0.8.2"), (NONE, "0.8.2")]


def of_class(config: dict[str, Any], version: str) -> Facts:
    """Facts of a Qwen2.5-7B whose config.json says that it is of another class."""
    known = facts_of(QWEN_7B, version=version)
    return replace(known, model=replace(known.model, config=config))


@pytest.mark.parametrize(("config", "version", "severity", "named"), LACKING)
def test_a_class_that_the_version_lacks(config: dict[str, Any], version: str, severity: str, named: str) -> None:
    found = [d for d in said("args: {}", version, facts=of_class(config, version)) if d.code == "DC525"]
    assert [str(d.severity) for d in found] == [severity] and named in found[0].fix


@pytest.mark.parametrize(
    ("sections", "severity"),
    [
        ({"target": "{kind: compose}"}, "error"),
        ({"target": "{kind: process}"}, "warning"),
        ({"target": "{kind: systemd}"}, "warning"),
        ({"engine": "{version: 0.8.2, image: 'registry.example/our-vllm:1'}", "target": "{kind: docker}"}, "warning"),
    ],
)
def test_beside_libraries_of_ones_own_it_may_start(sections: dict[str, str], severity: str) -> None:
    found = codes(of_class(QWEN3, "0.8.2"), **{"engine": "{version: 0.8.2}", **sections})
    assert found["DC525"] == severity


@pytest.mark.parametrize(("config", "version"), THERE)
def test_a_class_that_it_has_or_that_no_version_has(config: dict[str, Any], version: str) -> None:
    assert "DC525" not in codes_of(said("args: {}", version, facts=of_class(config, version)))


def test_what_the_user_asked_of_transformers_is_theirs() -> None:
    assert "DC525" not in codes_of(said(args("model-impl: transformers"), "0.8.3", facts=of_class(QWEN3, "0.8.3")))


@pytest.mark.parametrize(
    ("version", "mode", "refused"),
    [("0.10.1", "serve", True), ("0.10.2", "serve", False), ("0.10.1", "merge", False)],
)
def test_adapters_on_a_class_that_serves_none(version: str, mode: str, refused: bool) -> None:
    config = QWEN_7B | {"architectures": ["OlmoForCausalLM"]}
    adapter = AdapterFacts("a", "./a", None, {"r": 8}, 8, "", (), (), {})
    known = of_class(config, version)
    sections = {"adapters": f"[{{name: a, source: ./a, mode: {mode}}}]"}
    found = said("args: {}", version, facts=replace(known, adapters=(adapter,)), sections=sections)
    assert any(d.code == "DC242" and "0.10.2" in d.fix for d in found) == refused


@pytest.mark.parametrize(
    ("settings", "version", "sections", "fix"),
    [
        (args("tool-call-parser: hermez"), "0.33.0", {}, "did you mean hermes?"),
        (args("tool-call-parser: xlam"), "0.8.5", {}, "set engine.version"),
        ("args: {}", "0.33.0", {"api": "{tool_call_parser: hermez}"}, "did you mean hermes?"),
        ("args: {}", "0.33.0", {"api": "{reasoning_parser: deepseek-r1}"}, "did you mean deepseek_r1?"),
        ("args: {}", "0.9.2", {"api": "{reasoning_parser: qwen-3}"}, "did you mean qwen3?"),
    ],
)
def test_a_parser_that_the_version_lacks(settings: str, version: str, sections: dict[str, str], fix: str) -> None:
    found = [d for d in said(settings, version, sections=sections) if d.code == "DC524"]
    assert len(found) == 1 and found[0].fix.startswith(fix)


@pytest.mark.parametrize("version", ["0.8.0", "0.9.2", "0.11.0", "0.12.0", "0.33.0"])
def test_every_parser_that_it_has_is_taken(version: str) -> None:
    for flag, names in registries(version).parsers.items():
        for name in names:
            found = codes_of(said("args: {}", version, sections={"api": f"{{{flag.replace('-', '_')}: {name}}}"}))
            assert "DC524" not in found and "DC501" not in found, name


def test_a_plugin_may_bring_a_name_of_its_own() -> None:
    settings = args("tool-call-parser: mine, tool-parser-plugin: ./mine.py")
    assert "DC524" not in codes_of(said(settings, "0.33.0"))


@pytest.mark.parametrize(
    ("settings", "version", "words"),
    [
        (args("load-format: gguf"), "0.33.0", "it went in vLLM 0.24.0"),
        (args("load-format: bitsandbytes"), "0.28.0", "it went in vLLM 0.28.0"),
        (args("load-format: safetensor"), "0.11.0", "stops"),
        (args("kv-cache-dtype: int8"), "0.33.0", "stops"),
        (args("kv-cache-dtype: int8"), "0.32.0", "choices"),
        (args("speculative-config: {method: n-gram, num_speculative_tokens: 4}"), "0.11.0", "stops"),
        (args("speculative-config: {method: suffix, num_speculative_tokens: 4}"), "0.11.0", "it came in vLLM"),
        (args("compilation-config: {cudagraph_mode: FULL_DECODE}"), "0.11.0", "stops"),
    ],
)
def test_a_value_of_an_open_flag_that_the_engine_itself_lacks(settings: str, version: str, words: str) -> None:
    found = [d for d in said(settings, version) if d.code == "DC501"]
    assert len(found) == 1 and words in found[0].detail


@pytest.mark.parametrize("version", ["0.9.2", "0.11.0", "0.25.0", "0.33.0"])
def test_every_value_that_it_has_is_taken_and_planned(version: str) -> None:
    for flag, names in registries(version).values.items():
        whole, _, key = flag.partition(".")
        for name in names:
            value = f"{{{key}: {name}}}" if key else name
            assert "DC501" not in codes_of(said(args(f"{whole}: {value}"), version)), name


@pytest.mark.parametrize("mode", ["full", "Full_Decode_Only", "2", "NONE"])
def test_modes_of_graphs_are_taken_in_any_case(mode: str) -> None:
    assert "DC501" not in codes_of(said(args(f"compilation-config: {{cudagraph_mode: {mode}}}"), "0.11.0"))


def test_an_image_of_ones_own_may_have_more() -> None:
    settings = f"image: 'registry.local/vllm-gguf:1', {args('load-format: gguf')}"
    assert "DC501" not in codes_of(said(settings, "0.33.0"))


@pytest.mark.parametrize(("name", "unfollowed"), [("int4_per_token_head", True), ("fp8", False), ("auto", False)])
def test_a_cache_whose_size_is_not_known_is_counted_in_full_and_said(name: str, unfollowed: bool) -> None:
    assert ("DC308" in codes_of(said(args(f"kv-cache-dtype: {name}"), "0.33.0"))) == unfollowed


@pytest.mark.parametrize(("kept", "refused"), [(2, True), (3, False), (8, False)])
def test_the_host_keeps_every_adapter_that_a_card_holds(kept: int, refused: bool) -> None:
    adapters = tuple(AdapterFacts(name, f"./{name}", None, {"r": 8}, 8, "", (), (), {}) for name in "abc")
    listed = ", ".join(f"{{name: {one.name}, source: {one.source}, mode: serve}}" for one in adapters)
    facts = replace(facts_of(QWEN_7B, version="0.33.0"), adapters=adapters)
    found = said(args(f"max-cpu-loras: {kept}"), "0.33.0", facts=facts, sections={"adapters": f"[{listed}]"})
    assert any(d.code == "DC512" and "max-cpu-loras: 3" in d.fix for d in found) == refused
