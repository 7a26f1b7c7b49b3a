"""What a source brings beside its shapes, how cards reach each other, and types and ranks that are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from configured import A100, GIB, HOST, QWEN_05B, QWEN_7B, SMOLLM2, card, case_of, facts_of

from deployc.diagnostics import Diagnostic
from deployc.rules import adapters, cards, context, dtypes, formats, links, sources
from deployc.rules.case import Rule
from deployc.types.facts import AdapterFacts, Facts

CODE = {"auto_map": {"AutoConfig": "configuration_x.XConfig"}}
PLAIN = facts_of()


def said(rule: Rule, facts: Facts | None = None, **sections: str) -> list[Diagnostic]:
    return list(rule(case_of(facts, **sections)))


def one(rule: Rule, facts: Facts | None = None, **sections: str) -> tuple[str, str] | None:
    found = said(rule, facts, **sections)
    return (found[0].code, str(found[0].severity)) if found else None


def model(**changes: Any) -> Facts:
    return replace(PLAIN, model=replace(PLAIN.model, **changes))


@pytest.mark.parametrize(
    ("kind", "version", "found"),
    [
        ("internvl_chat", "0.32.0", True), ("internvl_chat", "0.8.5", False), ("internlm2", "0.8.5", True),
        ("kimi_k2", "0.16.0", True), ("kimi_k2", "0.32.0", False), ("deepseek_v3", "0.32.0", False),
    ],
)  # fmt: skip
def test_code_of_a_repository_is_allowed_by_name(kind: str, version: str, found: bool) -> None:
    facts = facts_of(version=version)
    facts = replace(facts, model=replace(facts.model, config=QWEN_7B | CODE | {"model_type": kind}))
    engine = f"{{version: {version}}}"
    assert one(sources.code_is_allowed, facts, engine=engine) == (("DC590", "error") if found else None)
    allowed = "{source: org/model, trust_remote_code: true}"
    assert one(sources.code_is_allowed, facts, engine=engine, model=allowed) is None
    without = replace(facts, model=replace(facts.model, config=QWEN_7B | {"model_type": kind}))
    assert one(sources.code_is_allowed, without, engine=engine) is None


def test_a_model_without_a_chat_template() -> None:
    bare = model(chat_template=False)
    assert one(sources.template_is_there, bare) == ("DC589", "warning")
    assert one(sources.template_is_there, bare, api="{tool_call_parser: hermes}") == ("DC589", "error")
    assert one(sources.template_is_there, bare, api="{chat_template: ./chat.jinja}") is None
    assert one(sources.template_is_there, model(chat_template=True)) is None
    assert one(sources.template_is_there, model(chat_template=False, provenance="written by hand")) is None
    brings = AdapterFacts("a", "./a", None, {"r": 8}, 8, "", ("q_proj",), (), {"chat_template.jinja": "sha256:1"})
    assert (
        one(sources.template_is_there, replace(bare, adapters=(brings,)), adapters="[{name: a, source: ./a}]") is None
    )


def test_a_gated_model_that_the_engine_downloads() -> None:
    gated = model(gated=True)
    assert one(sources.gate_is_open, gated) == ("DC591", "error")
    assert one(sources.gate_is_open, gated, target="{kind: docker, hub_token: {env: HF_TOKEN}}") is None
    assert one(sources.gate_is_open, gated, quantization="{weights: fp8}") is None  # an artifact is mounted
    assert one(sources.gate_is_open, PLAIN) is None


def test_weights_that_are_pickles() -> None:
    pickled = model(
        files={"pytorch_model-00001-of-00002.bin": "sha256:1", "pytorch_model-00002-of-00002.bin": "sha256:2"}
    )
    assert one(sources.weights_are_no_pickles, pickled) == ("DC592", "warning")
    assert one(sources.weights_are_no_pickles, pickled, quantization="{weights: fp8}") == ("DC592", "error")
    assert one(sources.weights_are_no_pickles, model(files={"model.safetensors": "size:1"})) is None
    both = model(files={"model.safetensors": "size:1", "pytorch_model.bin": "sha256:1"})
    assert one(sources.weights_are_no_pickles, both) is None


def parallel(ranks: int, more: str = "") -> dict[str, str]:
    return {
        "engine": f"{{version: 0.32.0, parallel: {{tensor: {ranks}}}{more}}}",
        "hardware": f"{{gpu: x, count: {ranks}}}",
    }


def test_cards_that_may_wait_for_ever() -> None:
    two, four = facts_of(cards=(card(),) * 2), facts_of(cards=(card(),) * 4)
    (found,) = said(links.peers_may_hang, two, **parallel(2))
    assert (found.code, str(found.severity)) == ("DC593", "warning")
    assert "NCCL_P2P_DISABLE: '1'" in found.fix and "disable-custom-all-reduce: true" in found.fix
    assert one(links.peers_may_hang, four, **parallel(4)) == ("DC593", "note")  # NCCL alone
    assert one(links.peers_may_hang, facts_of(cards=(A100,) * 2), **parallel(2)) is None  # NVLink
    assert one(links.peers_may_hang, two, **parallel(1)) is None
    assert one(links.peers_may_hang, facts_of(SMOLLM2, (HOST,))) is None
    off = ", env: {NCCL_P2P_DISABLE: '1'}, args: {disable-custom-all-reduce: true}"
    assert one(links.peers_may_hang, _with_flag(two), **parallel(2, off)) is None
    assert one(links.peers_may_hang, four, **parallel(4, ", env: {NCCL_P2P_DISABLE: '1'}")) is None


def _with_flag(facts: Facts) -> Facts:
    from deployc.types.facts import Flag

    flags = {**facts.engine.flags, "disable-custom-all-reduce": Flag("disable-custom-all-reduce", "bool")}
    return replace(facts, engine=replace(facts.engine, flags=flags))


GEMMA2 = QWEN_7B | {
    "architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2", "hidden_size": 2304, "num_hidden_layers": 26,
    "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "intermediate_size": 9216,
    "vocab_size": 256000, "max_position_embeddings": 8192, "sliding_window": 4096, "tie_word_embeddings": True,
    "query_pre_attn_scalar": 256, "hidden_activation": "gelu_pytorch_tanh",
}  # fmt: skip
TURING = card("t4", 15 * GIB, capability=(7, 5))


def test_models_that_overflow_in_float16() -> None:
    half = "{source: org/model, dtype: float16}"
    (written,) = said(dtypes.model_bears_float16, facts_of(GEMMA2), model=half)
    assert (written.code, str(written.severity), written.fix) == ("DC588", "error", "set model.dtype: bfloat16")
    (forced,) = said(dtypes.model_bears_float16, facts_of(GEMMA2, (TURING,)))
    assert "has no bfloat16" in forced.detail and "8.0 or newer" in forced.fix
    assert one(dtypes.model_bears_float16, facts_of(GEMMA2)) is None
    assert one(dtypes.model_bears_float16, facts_of(QWEN_7B), model=half) is None
    assert one(dtypes.model_bears_float16, facts_of(GEMMA2, version="0.8.5"), model=half) is None  # not refused yet


@pytest.mark.parametrize(
    ("version", "severity"), [("0.10.2", "warning"), ("0.11.0", "error"), ("0.11.1", "warning"), ("0.32.0", "warning")]
)
def test_an_fp8_cache_below_its_units(version: str, severity: str) -> None:
    ampere = facts_of(cards=(card("rtx-3090", capability=(8, 6)),), version=version)
    asked = {"quantization": "{kv_cache: fp8}", "engine": f"{{version: {version}}}"}
    assert one(formats.fp8_kv_has_a_kernel, ampere, **asked) == ("DC255", severity)
    assert one(formats.fp8_kv_has_a_kernel, facts_of(version=version), **asked) is None


@pytest.mark.parametrize(
    ("factor", "length", "found"),
    [(4, 32768, "warning"), (4, 8192, "warning"), (4, 40000, None), (4, 131072, None)],
)
def test_positions_scaled_for_nothing(factor: int, length: int, found: str | None) -> None:
    load = f"{{input_tokens: 1500, output_tokens: 256, concurrency: 1, max_context: {length}}}"
    asked = f"{{source: org/model, context: {{rope: yarn, factor: {factor}}}}}"
    facts = facts_of(QWEN_05B, (A100,))
    assert one(context.scaled_for_nothing, facts, model=asked, workload=load) == (("DC594", found) if found else None)
    assert one(context.scaled_for_nothing, facts) is None


def with_adapter(rank: int) -> Facts:
    adapter = AdapterFacts("a", "./a", None, {"r": rank}, rank, "org/model", ("q_proj",), (), {})
    return replace(PLAIN, adapters=(adapter,))


SERVED = "[{name: a, source: ./a, mode: serve}]"


def ranked(limit: int) -> str:
    return f"{{version: 0.32.0, args: {{max-lora-rank: {limit}}}}}"


def test_a_limit_below_an_adapters_rank() -> None:
    from deployc.types.facts import Flag

    def facts(rank: int) -> Facts:
        known = with_adapter(rank)
        flags = {**known.engine.flags, "max-lora-rank": Flag("max-lora-rank", "int")}
        return replace(known, engine=replace(known.engine, flags=flags))

    rule = adapters.rank_within_ladder
    (found,) = said(rule, facts(64), adapters=SERVED, engine=ranked(16))
    assert (found.code, str(found.severity)) == ("DC595", "error")
    assert "64 is chosen then" in found.fix
    assert one(rule, facts(64), adapters=SERVED, engine=ranked(64)) is None
    assert one(rule, facts(64), adapters=SERVED) is None
    assert one(rule, facts(64), adapters="[{name: a, source: ./a, mode: merge}]", engine=ranked(16)) is None
    (odd,) = said(rule, facts(24), adapters=SERVED, engine=ranked(16))
    assert "32 is chosen then" in odd.fix


def test_the_ladder_is_the_versions_own() -> None:
    known = with_adapter(320)
    short = replace(known, engine=replace(known.engine, lora_ranks=(8, 16, 32, 64, 128, 256)))
    assert one(adapters.rank_within_ladder, short, adapters=SERVED) == ("DC246", "error")
    assert one(adapters.rank_within_ladder, known, adapters=SERVED) is None


def test_a_division_that_fails_names_one_that_holds_and_what_the_other_cards_do() -> None:
    (found,) = said(cards.model_divides, facts_of(cards=(card(),) * 8), **parallel(8))
    assert found.fix == "set engine.parallel: {tensor: 4, replicas: 2} (it divides over 1, 2, 4)"
    (seven,) = said(cards.model_divides, facts_of(cards=(card(),) * 7), **parallel(7))
    assert seven.fix == "set engine.parallel: {tensor: 1, replicas: 7} (it divides over 1, 2, 4)"
