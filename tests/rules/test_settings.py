"""Flags and variables against this very version: what fires, beside a neighbour on which it must not."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from configured import QWEN_7B
from versioned import args, codes_of, env, said

from deployc.facts.engine import load
from deployc.facts.lore import all_remarks
from deployc.rules.remarks import KINDS
from deployc.rules.settings import holds

AWQ = QWEN_7B | {
    "quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}
}
GPTQ = QWEN_7B | {
    "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": True}
}
FP8 = QWEN_7B | {"quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic"}}
HALF = {"torch_dtype": "float16"}


class Row(NamedTuple):
    """A setting that is spoken of, and a neighbour that is not: of another version or model, where those are given."""

    code: str
    severity: str
    fires: tuple[str, str, dict[str, Any]]
    neighbour: tuple[str, str, dict[str, Any]]


def row(
    code: str, severity: str, fires: str, neighbour: str, at: str = "0.33.0", other: str = "",
    config: dict[str, Any] = QWEN_7B, of: dict[str, Any] | None = None,
) -> Row:  # fmt: skip
    return Row(code, severity, (fires, at, config), (neighbour, other or at, of or config))


SEGMENTS = env("PYTORCH_CUDA_ALLOC_CONF: 'expandable_segments:True'")
ROWS = [
    row("DC500", "error", args("continuous-batching: true"), args("seed: 1")),
    row("DC502", "error", args("enable-reasoning: true"), args("enable-reasoning: true"), at="0.11.2", other="0.9.2"),
    row("DC502", "error", args("swap-space: 4"), args("swap-space: 4"), at="0.18.1", other="0.17.1"),
    row(
        "DC507",
        "error",
        args("cudagraph-capture-sizes: [1, 2]"),
        args("cudagraph-capture-sizes: [1, 2]"),
        at="0.9.2",
        other="0.33.0",
    ),
    row("DC507", "error", args("async-scheduling: true"), args("async-scheduling: true"), at="0.9.2", other="0.11.2"),
    row(
        "DC508",
        "note",
        args("enable-chunked-prefill: true"),
        args("enable-chunked-prefill: false, max-num-batched-tokens: 8192"),
    ),
    row("DC508", "note", args("enable-prefix-caching: true"), args("no-enable-prefix-caching: true"), at="0.9.2"),
    row("DC508", "note", args("async-scheduling: true"), args("async-scheduling: true"), at="0.14.1", other="0.13.0"),
    row("DC508", "note", args("swap-space: 4"), args("seed: 1"), at="0.17.1"),
    row("DC508", "note", args("scheduling-policy: priority"), args("scheduling-policy: fcfs")),
    row("DC508", "note", args("max-lora-rank: 16"), args("max-lora-rank: 16, enable-lora: true")),
    row(
        "DC509", "warning", args("quantization: awq"), args("quantization: awq_marlin"), at="0.23.0", config=AWQ | HALF
    ),
    row(
        "DC509",
        "warning",
        args("quantization: awq"),
        args("quantization: awq"),
        at="0.13.0",
        other="0.24.0",
        config=AWQ | HALF,
    ),
    row(
        "DC509",
        "warning",
        args("quantization: gptq"),
        args("quantization: gptq"),
        at="0.21.0",
        other="0.22.1",
        config=GPTQ | HALF,
    ),
    row("DC509", "warning", args("num-scheduler-steps: 8"), args("num-scheduler-steps: 1"), at="0.9.2"),
    row("DC509", "warning", args("max-logprobs: 100"), args("max-logprobs: 20")),
    row("DC509", "warning", args("max-logprobs: -1"), args("max-logprobs: 5")),
    row(
        "DC509",
        "warning",
        args("compilation-config: {cudagraph_mode: NONE}"),
        args("compilation-config: {cudagraph_mode: PIECEWISE}"),
    ),
    row("DC509", "warning", args("compilation-config.cudagraph_mode: NONE"), args("compilation-config.mode: 3")),
    row("DC510", "error", args("quantization: awq"), args("quantization: awq"), of=AWQ),
    row("DC510", "error", args("quantization: fp8"), args("quantization: fp8"), config=AWQ, of=QWEN_7B),
    row(
        "DC510",
        "error",
        args("quantization: gptq"),
        args("quantization: gptq"),
        at="0.13.0",
        config=AWQ | HALF,
        of=GPTQ | HALF,
    ),
    row("DC511", "error", args("quantization: awq"), args("quantization: awq"), at="0.23.0", config=AWQ, of=AWQ | HALF),
    row(
        "DC511",
        "error",
        args("quantization: gptq"),
        args("quantization: gptq"),
        at="0.21.0",
        other="0.22.1",
        config=GPTQ,
    ),
    row(
        "DC512",
        "warning",
        args("enforce-eager: true, max-cudagraph-capture-size: 64"),
        args("max-cudagraph-capture-size: 64"),
    ),
    row(
        "DC512",
        "error",
        args("async-scheduling: true, speculative-config: {method: ngram, num_speculative_tokens: 3}"),
        args("speculative-config: {method: ngram, num_speculative_tokens: 3}"),
        at="0.15.1",
    ),
    row(
        "DC512",
        "error",
        args("enable-auto-tool-choice: true"),
        args("enable-auto-tool-choice: true, tool-call-parser: hermes"),
    ),
    row(
        "DC512", "error", args("enable-log-outputs: true"), args("enable-log-outputs: true, enable-log-requests: true")
    ),
    row("DC512", "error", args("max-num-partial-prefills: 2"), args("max-num-partial-prefills: 1"), at="0.13.0"),
    row(
        "DC512",
        "error",
        args("enable-sleep-mode: true") + ", " + env("PYTORCH_CUDA_ALLOC_CONF: 'expandable_segments:True'"),
        args("enable-sleep-mode: true") + ", " + env("PYTORCH_CUDA_ALLOC_CONF: 'expandable_segments:True'"),
        at="0.13.0",
        other="0.33.0",
    ),
    row("DC512", "error", args("kv-cache-dtype: fp8_e5m2"), args("kv-cache-dtype: fp8_e5m2"), config=FP8, of=QWEN_7B),
    row("DC512", "warning", args("enable-eplb: true"), args("enable-eplb: true, enable-expert-parallel: true")),
    row("DC512", "error", args("data-parallel-external-lb: true"), args("data-parallel-size: 2")),
    row(
        "DC512",
        "error",
        args("api-server-count: 2") + ", " + env("VLLM_ALLOW_RUNTIME_LORA_UPDATING: '1'"),
        env("VLLM_ALLOW_RUNTIME_LORA_UPDATING: '1'"),
    ),
    row(
        "DC513",
        "warning",
        args("attention-backend: FLASHINFER") + ", " + env("VLLM_ATTENTION_BACKEND: FLASH_ATTN"),
        env("VLLM_ATTENTION_BACKEND: FLASH_ATTN"),
        at="0.13.0",
    ),
    row("DC515", "warning", env("MAX_SEQUENCE_LENGTH: '20000'"), env("VLLM_LOGGING_LEVEL: INFO")),
    row("DC515", "warning", env("SGLANG_ANYTHING: '1'"), env("SGLANGUAGE: '1'")),
    row("DC515", "warning", env("CUDA_MEMORY_BANDWIDTH: '900'"), env("CUDA_CACHE_PATH: /x")),
    row("DC516", "warning", env("CUDA_LAUNCH_BLOCKING: '1'"), env("CUDA_LAUNCH_BLOCKING: '0'")),
    row("DC516", "warning", env("VLLM_USE_V1: '0'"), env("VLLM_USE_V1: '1'"), at="0.9.2"),
    row("DC516", "warning", env("HF_HUB_OFFLINE: '1'"), env("HF_HUB_OFFLINE: '0'")),
    row("DC517", "error", env("VLLM_SERVER_DEV_MODE: 'true'"), env("VLLM_SERVER_DEV_MODE: '1'")),
    row("DC516", "error", env("VLLM_USE_V1: '0'"), env("VLLM_USE_V1: '1'"), at="0.11.0"),
    row("DC517", "error", env("VLLM_PORT: 'tcp://10.0.0.1:80'"), env("VLLM_PORT: '8100'"), at="0.10.0"),
    row("DC517", "error", env("VLLM_KV_CACHE_LAYOUT: NDH"), env("VLLM_KV_CACHE_LAYOUT: NHD")),
    row("DC518", "warning", args("seed: 1"), args("seed: 1"), at="0.9.2", other="0.32.0"),
    row("DC519", "warning", args("seed: 1"), args("seed: 1"), at="0.13.0", other="0.33.0"),
    row("DC522", "warning", "image: 'vllm/vllm-openai:latest'", "image: 'vllm/vllm-openai:v0.33.0'"),
    row("DC522", "warning", "image: 'host:5000/vllm-openai'", "image: 'host:5000/own:v1'"),
    row("DC522", "warning", "image: 'x/y:nightly-cu130'", f"image: 'x/y@sha256:{'a' * 64}'"),
    row("DC523", "error", args("hf-overrides: \"'{}'\""), args("hf-overrides: '{}'")),
    row("DC523", "warning", args("tool-call-parser: \"'hermes'\""), args("tool-call-parser: hermes")),
    row("DC523", "warning", env("HF_HOME: '\"/x\"'"), env("HF_HOME: /x")),
    row("DC529", "error", args("quantization: int8"), args("quantization: fp8")),
    row("DC529", "error", args("quantization: bogus"), args("quantization: experts_int8"), at="0.25.1"),
    row("DC537", "error", args("attention-backend: XFORMERS"), args("attention-backend: FLASHINFER")),
    row("DC537", "error", args("attention-config: {backend: FLASH}"), args("attention-config: {backend: FLASH_ATTN}")),
    row(
        "DC537",
        "error",
        env("VLLM_ATTENTION_BACKEND: XFORMERS"),
        env("VLLM_ATTENTION_BACKEND: XFORMERS"),
        at="0.13.0",
        other="0.9.2",
    ),
    row(
        "DC537",
        "error",
        env("VLLM_ATTENTION_BACKEND: NONE_SUCH"),
        env("VLLM_ATTENTION_BACKEND: FLASH_ATTN_VLLM_V1"),
        at="0.12.0",
    ),
    row("DC538", "error", args("compilation-config: {level: 3}"), args("compilation-config: {mode: 3}")),
    row("DC538", "error", args("compilation-config.levl: 3"), args("compilation-config.mode: 3")),
    row("DC538", "warning", args("compilation-config: {mode: 3}"), args("compilation-config: {level: 3}"), at="0.10.2"),
    row(
        "DC538",
        "error",
        args("speculative-config: {method: ngram, tokens: 3}"),
        args("speculative-config: {method: ngram, num_speculative_tokens: 3}"),
    ),
    row(
        "DC538",
        "error",
        args("kv-transfer-config: '{\"kv_rank\": 0}'"),
        args("kv-transfer-config: '{\"kv_rank\": 0}'"),
        other="0.31.0",
    ),
    row("DC527", "error", args("load-format: dummy"), args("load-format: safetensors")),
    row("DC531", "error", args("block-size: 20"), args("block-size: 32")),
    row("DC503", "error", args("tp: 1, tensor-parallel-size: 1"), args("tp: 1")),
    row("DC503", "error", args("enforce-eager: true, no-enforce-eager: true"), args("no-enforce-eager: true")),
    row("DC501", "error", args("tool-call-parser: ''"), args("tool-call-parser: hermes")),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.code}-{row.fires[0][:40]}")
def test_it_is_said_and_not_of_its_neighbour(row: Row) -> None:
    assert codes_of(said(*row.fires)).get(row.code) == row.severity
    assert row.code not in codes_of(said(*row.neighbour))


@pytest.mark.parametrize(
    ("value", "wanted", "expected"),
    [
        ("21", (">20",), True), ("20", (">20",), False), ("20", (">=20",), True), ("many", (">20",), False),
        ("-1", ("<0",), True), ("20", ("!%16",), True), ("32", ("!%16",), False), ("auto", ("!%16",), False),
        ("a:b", ("*:*",), True), ("NONE", ("!none",), False), ("FULL", ("!NONE",), True), ("x", (), True),
        ("x", ("y", "x"), True),
    ],
)  # fmt: skip
def test_values_that_a_remark_is_about(value: str, wanted: tuple[str, ...], expected: bool) -> None:
    assert holds(value, wanted) is expected


def test_every_remark_has_a_kind_a_source_and_flags_that_exist() -> None:
    ever = {name for v in ("0.8.5", "0.9.2", "0.13.0", "0.20.2", "0.33.0") for name in load(v).flags}
    for remark in all_remarks():
        assert remark.code in KINDS and remark.source
        for name in (remark.name, *remark.beside, *remark.unless):
            flag, _, key = name.partition(".")
            assert name.isupper() or flag in ever or key, name
        assert "{value}" not in remark.says.format(value="1", version="vLLM 1") + remark.fix.format(value="1")
