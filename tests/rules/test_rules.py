"""Every rule: a file on which it fires, beside a neighbour on which it must not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from configured import A100, GIB, HOST, QWEN_7B, SMOLLM2, card, case_of, codes, facts_of
from handmade import deploy_of

from deployc.diagnostics import Report, error
from deployc.rules import accept, sla
from deployc.rules.cards import cards_suffice
from deployc.rules.memory import longest_request_fits
from deployc.types.facts import AdapterFacts, Facts

LOAD = "{input_tokens: 1500, output_tokens: 256, concurrency: 8, max_context: %s}"
FIRES: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("DC520", "error", {"workload": LOAD % 131072}, {"workload": LOAD % 32768}),
    (
        "DC520",
        "error",
        {"workload": LOAD % 131073, "model": "{source: org/model, context: {rope: yarn, factor: 4}}"},
        {"workload": LOAD % 65536, "model": "{source: org/model, context: {rope: yarn, factor: 4}}"},
    ),
    (
        "DC521",
        "warning",
        {"workload": "{input_tokens: {mean: 1500, p95: 4000}, output_tokens: 256, concurrency: 8, max_context: 2048}"},
        {"workload": "{input_tokens: {mean: 1500, p95: 4000}, output_tokens: 256, concurrency: 8, max_context: 16384}"},
    ),
    ("DC521", "warning", {"workload": LOAD % 1600}, {"workload": LOAD % 1756}),
    ("DC504", "error", {"engine": "{version: 0.32.0, args: {max-num-seqs: 64, max-num-batched-tokens: 32}}"}, {}),
    ("DC500", "error", {"engine": "{version: 0.32.0, args: {max-num-sequences: 64}}"}, {}),
    (
        "DC500",
        "error",
        {"engine": "{version: 0.32.0, args: {no-such-flag: true}}"},
        {"engine": "{version: 0.32.0, args: {no-enforce-eager: true}}"},
    ),
    ("DC502", "error", {"engine": "{version: 0.32.0, args: {swap-space: 4}}"}, {}),
    ("DC502", "error", {"engine": "{version: 0.32.0, args: {max_seq_len_to_capture: 8192}}"}, {}),
    (
        "DC506",
        "error",
        {"engine": "{version: 0.32.0, args: {no-enable-chunked-prefill: true}}"},
        {"engine": "{version: 0.32.0, args: {no-enable-chunked-prefill: true, max-num-batched-tokens: 8192}}"},
    ),
    (
        "DC506",
        "error",
        {"engine": "{version: 0.32.0, args: {enable-chunked-prefill: false}}"},
        {"engine": "{version: 0.32.0, args: {enable-chunked-prefill: true}}"},
    ),
    (
        "DC501",
        "error",
        {"engine": "{version: 0.32.0, args: {max-num-seqs: many}}"},
        {"engine": "{version: 0.32.0, args: {max-num-seqs: 64}}"},
    ),
    (
        "DC501",
        "error",
        {"engine": "{version: 0.32.0, args: {enforce-eager: 'yes'}}"},
        {"engine": "{version: 0.32.0, args: {enforce-eager: false}}"},
    ),
    (
        "DC503",
        "error",
        {"engine": "{version: 0.32.0, parallel: {tensor: 1}, args: {tensor_parallel_size: 1}}"},
        {"engine": "{version: 0.32.0, args: {tensor_parallel_size: 1}}"},
    ),
    ("DC600", "warning", {"target": "{kind: docker, bind: 0.0.0.0}"}, {"target": "{kind: docker, bind: 127.0.0.1}"}),
    (
        "DC600",
        "warning",
        {"target": "{kind: docker, bind: 10.0.0.1}"},
        {"target": "{kind: docker, bind: 10.0.0.1, api_key: {env: KEY}}"},
    ),
    ("DC401", "error", {"sla": "{ttft_p95: 1ms}"}, {"sla": "{ttft_p95: 60s}"}),
    (
        "DC401",
        "error",
        {"workload": "{input_tokens: 1500, output_tokens: 256, request_rate: 900}", "sla": "{ttft_p95: 60s}"},
        {"workload": "{input_tokens: 1500, output_tokens: 256, request_rate: 0.5}", "sla": "{ttft_p95: 60s}"},
    ),
    ("DC402", "error", {"sla": "{tpot_p95: 1ms}"}, {"sla": "{tpot_p95: 1s}"}),
    ("DC402", "warning", {"sla": "{tpot_p95: 22ms}"}, {"sla": "{tpot_p95: 1s}"}),
    ("DC403", "error", {"sla": "{e2e_p95: 10ms}"}, {"sla": "{e2e_p95: 10min}"}),
    ("DC404", "error", {"sla": "{requests_per_second: 1000}"}, {"sla": "{requests_per_second: 0.1}"}),
    ("DC405", "error", {"sla": "{tokens_per_second: 100000}"}, {"sla": "{tokens_per_second: 10}"}),
    ("DC406", "error", {"sla": "{full_length_requests: 100}"}, {"sla": "{full_length_requests: 2}"}),
    (
        "DC410",
        "error",
        {"workload": "{input_tokens: 1500, output_tokens: 256, request_rate: 900}"},
        {"workload": "{input_tokens: 1500, output_tokens: 256, request_rate: 0.5}"},
    ),
    (
        "DC302",
        "error",
        {"model": "{source: org/model, context: {rope: yarn, factor: 8}}", "workload": LOAD % 262144},
        {},
    ),
    (
        "DC303",
        "error",
        {
            "hardware": "{gpu: rtx-4090, reserved_memory: 6GiB}",
            "engine": "{version: 0.32.0, gpu_memory_utilization: 0.92}",
        },
        {"hardware": "{gpu: rtx-4090, reserved_memory: 1GiB}"},
    ),
    (
        "DC303",  # nobody else is on the card, but the engine's own context is
        "error",
        {"engine": "{version: 0.32.0, gpu_memory_utilization: 1.0}"},
        {"engine": "{version: 0.32.0, gpu_memory_utilization: 0.96}"},
    ),
    ("DC303", "warning", {"engine": "{version: 0.32.0, gpu_memory_utilization: 0.98}"}, {}),
    (
        "DC306",
        "warning",
        {"workload": "{input_tokens: 6000, output_tokens: 256, concurrency: 64}"},
        {"workload": "{input_tokens: 600, output_tokens: 256, concurrency: 16}"},
    ),
    ("DC308", "warning", {"engine": "{version: 0.32.0, args: {block_size: 32}}"}, {}),
    (
        "DC308",
        "warning",
        {"engine": "{version: 0.32.0, args: {enable-expert-parallel: true}}"},
        {"engine": "{version: 0.32.0, args: {enable-expert-parallel: false, pipeline-parallel-size: 1}}"},
    ),
    (
        "DC308",
        "warning",
        {"engine": "{version: 0.32.0, env: {VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS: '1'}}"},
        {"engine": "{version: 0.32.0, env: {VLLM_LOGGING_LEVEL: DEBUG}}"},
    ),
    (
        "DC540",
        "warning",
        {"engine": "{version: 0.32.0, args: {max-num-seqs: 4}}"},
        {"engine": "{version: 0.32.0, args: {max-num-seqs: 8}}"},
    ),
]


@pytest.mark.parametrize(
    ("code", "severity", "wrong", "right"), FIRES, ids=[f"{f[0]}-{i}" for i, f in enumerate(FIRES)]
)
def test_fires_and_does_not(code: str, severity: str, wrong: dict[str, Any], right: dict[str, Any]) -> None:
    assert codes(**wrong).get(code) == severity
    assert code not in codes(**right)


FOUR = (card(),) * 4
_PLAIN = facts_of()
GPTQ = replace(_PLAIN, model=replace(_PLAIN.model, config=QWEN_7B | {"quantization_config": {"quant_method": "gptq"}}))
TP4 = {"engine": "{version: 0.32.0, parallel: {tensor: 4}}"}
BUSY = "{input_tokens: 1500, output_tokens: 256, concurrency: 128, max_context: 8192}"
SHORT = "{input_tokens: 64, output_tokens: 32, concurrency: 2, max_context: 2048}"
ON_CARDS: list[tuple[str, str, Facts, dict[str, str], Facts, dict[str, str]]] = [
    (
        "DC530", "error", facts_of(cards=(card(),) * 8), {"engine": "{version: 0.32.0, parallel: {tensor: 8}}"},
        facts_of(cards=FOUR), {"engine": "{version: 0.32.0, parallel: {tensor: 4}}"},
    ),
    (
        "DC530", "error", facts_of(cards=(card(),) * 7), {"engine": "{version: 0.32.0, parallel: {tensor: 7}}"},
        facts_of(cards=(card(),) * 7), {},
    ),
    (
        "DC255", "warning", facts_of(cards=(card("rtx-3090", capability=(8, 6)),)),
        {"quantization": "{kv_cache: fp8}"}, facts_of(), {"quantization": "{kv_cache: fp8}"},
    ),
    (
        "DC533", "warning", facts_of(cards=FOUR), TP4 | {"workload": BUSY},
        facts_of(cards=(A100,) * 4), TP4 | {"workload": BUSY},
    ),
    (
        "DC534", "warning", facts_of(cards=FOUR), {"engine": "{version: 0.32.0, parallel: {tensor: 2, replicas: 1}}"},
        facts_of(cards=FOUR), {},
    ),
    (
        "DC532", "warning", facts_of(cards=(card(), card("rtx-3070", 8 * GIB))),
        {"engine": "{version: 0.32.0, parallel: {tensor: 2}}"},
        facts_of(cards=(card(), card())), {"engine": "{version: 0.32.0, parallel: {tensor: 2}}"},
    ),
    (
        "DC535", "error", facts_of(cards=(card("v100-32", 32 * GIB, capability=(7, 0)),)), {},
        facts_of(cards=(card("t4", 32 * GIB, capability=(7, 5)),)), {},
    ),
    (
        "DC252", "warning", facts_of(cards=(card("t4", 32 * GIB, capability=(7, 5)),)), {}, facts_of(), {},
    ),
    (
        "DC253", "error", facts_of(cards=(card("t4", 32 * GIB, capability=(7, 5)),)),
        {"model": "{source: org/model, dtype: bfloat16}"},
        facts_of(cards=(card("t4", 32 * GIB, capability=(7, 5)),)), {"model": "{source: org/model, dtype: float16}"},
    ),
    (
        "DC251", "error", facts_of(cards=(card("rtx-5090", 31 * GIB, capability=(12, 0)),)),
        {"quantization": "{weights: int8}"}, facts_of(), {"quantization": "{weights: int8}"},
    ),
    (
        "DC250", "error", GPTQ,
        {"quantization": "{weights: int8}"},
        GPTQ, {"quantization": "{weights: checkpoint}"},
    ),
    (
        "DC300", "error", facts_of(cards=(card("rtx-3070", 8 * GIB),)), {}, facts_of(), {},
    ),
    (
        "DC301", "error", facts_of(cards=(card("odd", 15.6 * GIB),)), {}, facts_of(), {},
    ),
    (
        "DC254", "error", facts_of(SMOLLM2, (HOST,)), {"quantization": "{kv_cache: fp8}"},
        facts_of(), {"quantization": "{kv_cache: fp8}"},
    ),
    (
        "DC310", "error", facts_of(SMOLLM2, (replace(HOST, memory=replace(HOST.memory, value=2 * GIB)),)), {},
        facts_of(SMOLLM2, (HOST,)), {"workload": SHORT},
    ),
    (
        "DC305", "warning", facts_of(cards=(card(),)), {"engine": "{version: 0.32.0, gpu_memory_utilization: 0.995}"},
        facts_of(cards=(card(),), graphs_in_budget=True),
        {"engine": "{version: 0.32.0, gpu_memory_utilization: 0.995}"},
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "severity", "bad", "wrong", "good", "right"), ON_CARDS, ids=[f"{f[0]}-{i}" for i, f in enumerate(ON_CARDS)]
)
def test_cards(code: str, severity: str, bad: Facts, wrong: dict[str, str], good: Facts, right: dict[str, str]) -> None:
    assert codes(bad, **wrong).get(code) == severity
    assert code not in codes(good, **right)


def test_idle_cards_that_no_more_engines_fill() -> None:
    """Of three cards in pairs one stays idle whatever `replicas` says; with `replicas: 1` on four cards it decides."""
    for cards, replicas, says in (((card(),) * 3, "auto", False), ((card(),) * 4, "1", True)):
        sections = {"engine": f"{{version: 0.32.0, parallel: {{tensor: 2, replicas: {replicas}}}}}",
                    "hardware": f"{{gpu: rtx-4090, count: {len(cards)}}}"}  # fmt: skip
        case = case_of(facts_of(cards=cards), **sections)
        (found,) = cards_suffice(case)
        assert ("replicas: auto" in found.fix) == says and "hardware.count to 2" in found.fix


def test_ranks_beyond_all_cards_are_judged_at_once() -> None:
    many = "{version: 0.32.0, args: {tensor-parallel-size: 100000000000000000000}}"
    assert codes(engine=many)["DC530"] == "error"


def with_adapter(rank: int = 16) -> Facts:
    adapter = AdapterFacts("a", "./a", None, {"r": rank}, rank, "org/model", ("q_proj",), (), {})
    return replace(facts_of(), adapters=(adapter,))


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("max-num-seqs: -5", "max-num-seqs: 1"),
        ("max-num-seqs: 0", "max-num-seqs: 5"),
        ("block-size: 0", "block-size: 16"),
        ("max-model-len: -7", "max-model-len: -1"),
        ("max-num-batched-tokens: 0", "max-num-batched-tokens: 2k"),
    ],
)
def test_counts_that_no_engine_takes(wrong: str, right: str) -> None:
    assert codes(engine=f"{{version: 0.32.0, args: {{{wrong}}}}}")["DC501"] == "error"
    assert "DC501" not in codes(engine=f"{{version: 0.32.0, args: {{{right}}}}}")


@pytest.mark.parametrize("share", ["5", "0", "-0.5"])
def test_a_share_of_the_card_is_a_share(share: str) -> None:
    assert codes(engine=f"{{version: 0.32.0, args: {{gpu-memory-utilization: {share}}}}}")["DC501"] == "error"
    assert "DC501" not in codes(engine="{version: 0.32.0, args: {gpu-memory-utilization: 1}}")


def test_one_adapter_served_unmerged_costs_and_is_said() -> None:
    assert codes(with_adapter(), adapters="[{name: a, source: ./a, mode: serve}]")["DC245"] == "warning"
    assert "DC245" not in codes(with_adapter(), adapters="[{name: a, source: ./a}]")


def test_a_rank_above_the_ladder_can_be_merged_but_not_served() -> None:
    assert codes(with_adapter(1024), adapters="[{name: a, source: ./a, mode: serve}]")["DC246"] == "error"
    assert "DC246" not in codes(with_adapter(1024), adapters="[{name: a, source: ./a}]")
    assert "DC246" not in codes(with_adapter(512), adapters="[{name: a, source: ./a, mode: serve}]")


def test_modes_are_not_mixed() -> None:
    facts = replace(with_adapter(), adapters=(*with_adapter().adapters,) * 2)
    mixed = "[{name: a, source: ./a, mode: serve}, {name: b, source: ./b, mode: merge}]"
    assert codes(facts, adapters=mixed)["DC247"] == "error"
    assert "DC247" not in codes(facts, adapters=mixed.replace("mode: merge", "mode: serve"))


def test_the_first_complaint_fits_and_says_so() -> None:
    """Qwen2.5-7B on one RTX 4090: FP16 fits, some 6 GiB are left, over 100,000 KV tokens at 56 KiB each."""
    case = case_of()
    bill = case.prediction.memory
    assert codes() == {}
    assert bill.weights.value / GIB == pytest.approx(14.29, abs=0.01)  # as vLLM 0.25.1 logs it
    assert 5.5 < bill.kv_cache.value / GIB < 6.5
    assert case.prediction.kv_cache_tokens.value > 100_000
    assert case.prediction.kv_bytes_per_token.value == 56 * 1024


def test_a_refusal_says_the_longest_that_fits() -> None:
    model = "{source: org/model, context: {rope: yarn, factor: 5}}"
    found = next(d for d in longest_request_fits(case_of(model=model, workload=LOAD % 163840)) if d.code == "DC302")
    fits = int(found.fix.split("max_context to ")[1].split(";")[0])
    assert "DC302" not in codes(model=model, workload=LOAD % fits)
    assert "fp8" in found.fix


def test_accept_lowers_a_prediction_and_nothing_else() -> None:
    deploy = deploy_of(
        "version: 1\nname: a\nmodel: {source: x}\nhardware: {gpu: y}\nengine: {version: 1.0.0}\n"
        "workload: {input_tokens: 1, output_tokens: 1, concurrency: 1}\n"
        "accept: [{code: DC402, reason: known}, {code: DC300, reason: hope}, {code: DC999, reason: none}]\n"
    )
    report = Report([error("DC402", "s", basis="modelled"), error("DC300", "w", basis="exact")])
    judged = {d.code: str(d.severity) for d in accept(deploy, report) if d.code != "DC605"}
    assert judged == {"DC402": "warning", "DC300": "error"}
    assert sum(d.code == "DC605" for d in accept(deploy, report)) == 2
    assert all("known" in d.detail for d in accept(deploy, report) if d.code == "DC402")


def test_sla_lines_carry_limit_band_verdict_and_place() -> None:
    case = case_of(sla="{tpot_p95: 1s, ttft_p95: 1ms, full_length_requests: 2}")
    lines = {line.name: line for line in sla.lines(case.deploy, case.prediction)}
    assert [lines[n].verdict for n in ("ttft_p95", "tpot_p95", "full_length_requests")] == ["misses", "meets", "meets"]
    assert lines["tpot_p95"].limit.value == 1.0
    assert lines["tpot_p95"].at.startswith("deploy.yaml:")
