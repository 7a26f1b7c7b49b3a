"""SHAPE in detail: what is suggested, what stands beside each other at once, and how the engine's flags are spelt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deployc.diagnostics import Report, Severity
from deployc.source import load
from deployc.spec import shape
from deployc.spec.deploy import Deploy
from deployc.spec.keys import paths
from deployc.spec.unsupported import NOT_YET

BASE: dict[str, str] = {
    "version": "1",
    "name": "domain-qa",
    "model": "{source: Qwen/Qwen2.5-7B-Instruct}",
    "hardware": "{gpu: rtx-4090}",
    "workload": "{input_tokens: 1500, output_tokens: 256, concurrency: 8}",
    "engine": "{version: 0.33.0}",
}
SUPPORTED = """\
version name model model.source model.hub model.endpoint model.revision model.dtype model.trust_remote_code
model.context model.context.rope model.context.factor model.overrides
adapters adapters.name adapters.source adapters.revision adapters.mode adapters.weight
quantization quantization.weights quantization.group_size quantization.kv_cache quantization.ignore
quantization.calibration quantization.calibration.data quantization.calibration.samples
quantization.calibration.tokens quantization.calibration.smoothquant quantization.quality quantization.quality.data
quantization.quality.samples quantization.quality.tokens quantization.quality.max_perplexity_increase
quantization.quality.max_mean_kl quantization.quality.min_top1_agreement quantization.quality.min_valid_json
hardware hardware.gpu hardware.gpu.memory hardware.gpu.bandwidth hardware.gpu.compute_capability hardware.gpu.flops
hardware.gpu.flops.bf16 hardware.gpu.flops.fp8 hardware.gpu.flops.int8 hardware.gpu.interconnect hardware.count
hardware.devices hardware.driver hardware.interconnect hardware.reserved_memory hardware.cpus hardware.host_memory
hardware.price
workload workload.input_tokens workload.input_tokens.mean workload.input_tokens.p95 workload.output_tokens
workload.output_tokens.mean workload.output_tokens.p95 workload.concurrency workload.request_rate
workload.shared_prefix_tokens workload.max_context
sla sla.ttft_p95 sla.tpot_p95 sla.e2e_p95 sla.requests_per_second sla.tokens_per_second sla.full_length_requests
engine engine.name engine.version engine.image engine.python engine.parallel engine.parallel.tensor
engine.parallel.replicas engine.gpu_memory_utilization engine.offload engine.env engine.args
api api.served_model_name api.chat_template api.tool_call_parser api.reasoning_parser api.generation api.servers
build build.python build.store
target target.bind target.port target.api_key target.api_key.env target.api_key.file target.hub_token
target.hub_token.env target.hub_token.file target.image_mode target.state
rollout rollout.drain_timeout rollout.health_timeout rollout.keep accept accept.code accept.reason
"""


def shaped(folder: Path, **sections: str) -> tuple[Deploy | None, Report]:
    file = folder / "deploy.yaml"
    file.write_text("".join(f"{key}: {text}\n" for key, text in {**BASE, **sections}.items()), encoding="utf-8")
    document, report = load(file, {})
    assert document is not None and not report.errors
    return shape(document)


def good(folder: Path, **sections: str) -> Deploy:
    deploy, report = shaped(folder, **sections)
    assert deploy is not None and not report.errors, [(d.code, d.detail) for d in report]
    return deploy


@pytest.mark.parametrize(
    ("sections", "fix"),
    [
        ({"max_model_len": "8192"}, "it belongs to workload.max_context"),
        ({"port": "80"}, "it belongs to target.port"),
        ({"tensor_parallel_size": "2"}, "it belongs to engine.parallel.tensor"),
        ({"modle": "x"}, "did you mean model?"),
        ({"engine": "{version: 0.33.0, max_num_seqs: 64}"}, "it belongs to engine.args"),
        ({"engine": "{version: 0.33.0, some_new_flag: 64}"}, "under engine.args, as some-new-flag"),
        ({"engine": "{version: 0.33.0, parallel: {tensr: 2}}"}, "did you mean tensor?"),
        ({"hardware": "{gpu: {memory: 1GiB, bandwidth: 1GB/s, flops: {b16: 1TFLOPS}}}"}, "did you mean bf16?"),
        ({"sla": "{TTFT-p95: 1s}"}, "did you mean ttft_p95?"),
        ({"build": "{zzz: 1}"}, "remove it; known here: python, store"),
        ({"zzz": "1"}, "keys that begin with x- are free"),
        ({"quantization": "{weights: int4}"}, "did you mean int4-gptq or int4-awq or int4-rtn?"),
        ({"model": "{source: ./m, dtype: bf16}"}, "did you mean bfloat16?"),
        ({"model": "{source: ./m, trust_remote_code: no}"}, "write false"),
        ({"quantization": "{group_size: '64'}"}, "write 64 without quotes"),
        ({"hardware": "{gpu: rtx-4090, count: '2'}"}, "write 2 without quotes"),
        ({"hardware": "{gpu: rtx-4090, count: ２}"}, "type 2, without full-width characters"),
        ({"hardware": "{gpu: rtx-4090, reserved_memory: ２GiB}"}, "type 2GiB, without full-width characters"),
        ({"hardware": "{gpu: rtx-4090, reserved_memory: 2}"}, "write 2GiB"),
        ({"hardware": "{gpu: rtx-4090, reserved_memory: 24G}"}, "use MiB, GiB, TiB (powers of 1024) or MB, GB, TB"),
        ({"hardware": "{gpu: 4090}"}, "write a profile, e.g. rtx-4090, or {memory: 24GiB, bandwidth: 1008GB/s}"),
        ({"hardware": "{gpu: {memory: 24GiB}}"}, "add bandwidth: 1008GB/s"),
        ({"engine": "{version: 0.33}"}, "write all three parts, e.g. 0.33.0"),
        ({"engine": "{version: 0.33.0, gpu_memory_utilization: 90}"}, "write 90%, or auto"),
        ({"sla": "{ttft_p95: 800}"}, "write 800ms or 800s"),
        ({"api": "{served_model_name: qa}"}, "write [qa]"),
        ({"engine": "{version: 0.33.0, env: {N: 1}}"}, 'put it in quotes: "1"'),
        ({"model": "{source: ./m, revision: 123}"}, 'put it in quotes: "123"'),
        ({"sla": ""}, "write its keys below it, or remove the key"),
        ({"name": "My_Qa"}, "rename it, e.g. my-qa"),
    ],
)  # fmt: skip
def test_what_to_write_instead(tmp_path: Path, sections: dict[str, str], fix: str) -> None:
    _, report = shaped(tmp_path, **sections)
    assert len(report) == 1
    assert fix in report.diagnostics[0].fix


def test_a_union_is_reported_once_and_inside(tmp_path: Path) -> None:
    _, report = shaped(
        tmp_path,
        hardware="{gpu: [rtx-4090, {memory: much, bandwidth: 1GB/s}, 7], count: x}",
        workload="{input_tokens: {mean: x, p95: 3}, output_tokens: [], concurrency: 1}",
    )
    assert [(d.code, d.detail.split(":")[0]) for d in report.ordered()] == [
        ("DC153", "`hardware.gpu.1.memory`"),
        ("DC152", "`hardware.gpu.2`"),
        ("DC152", "`hardware.count`"),
        ("DC152", "`workload.input_tokens.mean`"),
        ("DC152", "`workload.output_tokens`"),
    ]


def test_whole_numbers_are_taken_where_fractions_are(tmp_path: Path) -> None:
    deploy = good(
        tmp_path,
        model="{source: ./m, context: {rope: yarn, factor: 4}}",
        adapters="[{name: a, source: ./a, weight: 1}]",
        workload="{input_tokens: 1, output_tokens: 1, request_rate: 8}",
    )
    assert deploy.model.context is not None and deploy.model.context.factor == 4.0
    assert (deploy.adapters[0].weight, deploy.workload.request_rate) == (1.0, 8.0)


def test_short_forms_and_maps(tmp_path: Path) -> None:
    deploy = good(
        tmp_path,
        hardware="{gpu: [rtx-4090, {memory: 24GiB, bandwidth: 1008GB/s}]}",
        workload="{input_tokens: {mean: 10, p95: 20}, output_tokens: 5, concurrency: 1}",
    )
    assert isinstance(deploy.hardware.gpu, list) and not isinstance(deploy.hardware.gpu[1], str)
    assert (deploy.hardware.gpu[0], deploy.hardware.gpu[1].memory) == ("rtx-4090", 24 * 2**30)
    assert deploy.workload.model_dump()["input_tokens"] == {"mean": 10, "p95": 20}
    assert deploy.hardware.model_dump()["gpu"][0] == "rtx-4090"


def test_flags_are_spelt_one_way_and_keep_their_places(tmp_path: Path) -> None:
    args = "{--max_num_seqs: 64, kv_cache_dtype: fp8, -O: 3, compilation-config.max_x: [1, {a_b: 2}], seed: null}"
    deploy = good(tmp_path, engine=f"{{version: 0.33.0, args: {args}}}")
    assert deploy.engine.args == {
        "max-num-seqs": 64, "kv-cache-dtype": "fp8", "O": 3, "compilation-config.max_x": [1, {"a_b": 2}], "seed": None,
    }  # fmt: skip
    assert deploy.written("engine.args.max-num-seqs") and not deploy.written("engine.args.max_num_seqs")
    at = deploy.at(("engine", "args", "compilation-config.max_x", 1, "a_b"))
    assert at is not None and at.excerpt[at.column - 1] == "2"


@pytest.mark.parametrize(
    "args", ["{a_b: 1, a-b: 2}", "{--a-b: 1, a_b: 2}", "{'a b': 1}", "{'': 1}", "{--: 1}", "{'a=b': 1}"]
)
def test_flags_that_are_none_or_twice(tmp_path: Path, args: str) -> None:
    _, report = shaped(tmp_path, engine=f"{{version: 0.33.0, args: {args}}}")
    assert [d.code for d in report] == ["DC165"]


@pytest.mark.parametrize("key", ["max-num-seqs=64", "--max_num_seqs 64", "max-num-seqs = 64"])
def test_a_flag_with_its_value_in_the_key_is_taken_apart(tmp_path: Path, key: str) -> None:
    _, report = shaped(tmp_path, engine=f"{{version: 0.33.0, args: {{'{key}': null}}}}")
    assert [(d.code, d.fix) for d in report] == [("DC165", "write max-num-seqs: 64")]


@pytest.mark.parametrize(
    ("model", "adapters", "warned"),
    [
        ("{source: ./m, hub: modelscope}", "[]", ["hub"]),
        ("{source: /m, hub: huggingface, endpoint: 'https://h'}", "[]", ["hub", "endpoint"]),
        ("{source: ./m, hub: modelscope}", "[{name: a, source: org/a}]", []),
        ("{source: org/m, hub: modelscope}", "[{name: a, source: ./a}]", []),
        ("{source: ./m}", "[]", []),
    ],
)
def test_a_hub_for_folders_alone_is_a_warning(tmp_path: Path, model: str, adapters: str, warned: list[str]) -> None:
    deploy, report = shaped(tmp_path, model=model, adapters=adapters)
    assert deploy is not None
    assert [(d.code, d.severity, d.detail.split("`")[1]) for d in report] == [
        ("DC173", Severity.WARNING, f"model.{key}") for key in warned
    ]


def test_every_key_is_supported_or_refused() -> None:
    partly = {
        dotted for dotted, (supported, _) in NOT_YET.items() if len(supported) > 1 and dotted in SUPPORTED.split()
    }
    assert partly == set()
    assert sorted([*SUPPORTED.split(), *NOT_YET]) == sorted(paths())


@pytest.mark.parametrize("dotted", sorted(NOT_YET))
def test_what_is_not_supported_is_refused_in_place(tmp_path: Path, dotted: str) -> None:
    values: dict[str, Any] = {
        "quantization.weights": "fp8", "quantization.group_size": 64, "hardware.nodes": 2,
        "hardware.host": "wsl2", "hardware.display": "true",
        "engine.parallel.pipeline": 2, "engine.parallel.data": 2, "engine.parallel.expert": "true",
        "engine.offload.weights": "4GiB", "engine.offload.kv": "4GiB", "target.kind": "kubernetes",
        "target.docker_host": "unix:///x", "target.volumes": "['a:/b']", "target.networks": "[a]",
        "target.labels": "{a: b}", "target.extra_hosts": "['a:1.2.3.4']", "target.http_proxy": "none",
        "rollout.strategy": "side-by-side", "rollout.edge": "haproxy", "rollout.golden": "./g",
    }  # fmt: skip
    section, *rest = dotted.split(".")
    inner = f"{{{rest[-1]}: {values.get(dotted, '{a: 1}')}}}"
    for key in reversed(rest[:-1]):
        inner = f"{{{key}: {inner}}}"
    if section in BASE:
        inner = f"{BASE[section][:-1]}, {inner[1:]}"
    deploy, report = shaped(tmp_path, **{section: inner})
    assert [d.code for d in report] == ["DC170"], [d.detail for d in report]
    at = report.diagnostics[0].at
    assert deploy is not None and at is not None and f"`{dotted}`" in report.diagnostics[0].detail


def test_zero_in_any_unit_is_no_offload(tmp_path: Path) -> None:
    assert good(tmp_path, engine="{version: 0.33.0, offload: {weights: 0GiB, kv: 0}}").engine.offload.weights == 0


@pytest.mark.parametrize(("cards", "code"), [("gpu: rtx-4090, count: {}", "DC154"), ("gpu: [{}]", "DC167")])
def test_more_cards_than_any_machine_holds(tmp_path: Path, cards: str, code: str) -> None:
    """A search over the cards must not last for ever: the number is bounded where it is read."""

    def hardware(number: int) -> str:
        return "{" + cards.format(number if "count" in cards else ", ".join(["rtx-4090"] * number)) + "}"

    assert not shaped(tmp_path, hardware=hardware(1024))[1].errors
    assert [found.code for found in shaped(tmp_path, hardware=hardware(1025))[1]] == [code]
