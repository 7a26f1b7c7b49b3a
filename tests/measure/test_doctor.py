"""`deployc doctor --describe`: mistakes in a description, figures that cannot be, causes and their neighbours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from configured import A100, QWEN_7B, facts_of

from deployc.cli.main import run
from deployc.diagnostics import Report
from deployc.measure.doctor.description import Described, Description, described
from deployc.measure.doctor.effects import effects
from deployc.measure.doctor.expected import deploy_of, expected
from deployc.measure.doctor.judge import Diagnosis, document, judge
from deployc.measure.doctor.patient import Patient
from deployc.types.facts import Facts

Capture = pytest.CaptureFixture[str]
ON_4090, ON_A100 = facts_of(), facts_of(cards=(A100,))
STREAM: dict[str, Any] = {"concurrency": 1, "tokens_per_second": 10}
LOAD: dict[str, Any] = {"input_tokens": 1500, "output_tokens": 100}


def diagnosis(facts: Facts = ON_4090, **said: Any) -> Diagnosis:
    """Of a Qwen2.5-7B on an RTX 4090, or on what `facts` has."""
    values = Description.model_validate({"gpu": facts.smallest.name, "model": "org/model", "version": "0.32.0", **said})
    known = expected(values, deploy_of(values, "0.32.0"), facts)
    return judge(Patient(Described(values, {}), known), effects())


def found(result: Diagnosis) -> dict[str, str]:
    """Code -> severity, of causes "stated" or "perhaps"."""
    causes = {cause.code: "stated" if cause.stated else "perhaps" for cause in result.causes}
    return {d.code: str(d.severity) for d in result.diagnostics} | causes


SPEAKS: list[tuple[str, str, Facts, dict[str, Any], dict[str, Any]]] = [
    ("DC740", "error", ON_4090, {"gpu_utilization": "108%"}, {"gpu_utilization": "100%"}),
    ("DC740", "error", ON_4090, {"gpu_utilization": 180}, {"gpu_utilization": 0.8}),
    ("DC740", "error", ON_4090, {"prefix_cache_hits": "120%"}, {"prefix_cache_hits": "90%"}),
    ("DC741", "warning", ON_4090, {"quantization": "int8", "memory_used": "14GiB"},
     {"quantization": "none", "memory_used": "14GiB"}),
    ("DC741", "warning", ON_4090, {"quantization": "awq", "memory_used": "14.5GiB"},
     {"quantization": "awq", "memory_used": "21.2GiB"}),
    ("DC742", "note", ON_4090, {"memory_used": "21.5GiB"}, {"memory_used": "12GiB"}),
    ("DC742", "note", ON_A100, {"memory_used": "71GiB", "args": {"gpu_memory_utilization": 0.9}},
     {"memory_used": "71GiB", "args": {"gpu_memory_utilization": 0.7}}),
    ("DC743", "warning", ON_4090, {"memory_used": "12GiB"}, {"memory_used": "12GiB", "engine": "other"}),
    ("DC743", "warning", ON_4090, {"memory_used": "12GiB"},
     {"memory_used": "16.6GiB", "args": {"--gpu-memory-utilization": 0.7}}),
    ("DC744", "error", ON_A100, {**LOAD, "requests_per_second": 10, "gpu_utilization": "30%"},
     {**LOAD, "requests_per_second": 10, "gpu_utilization": "80%"}),
    ("DC744", "error", ON_A100, {**LOAD, "requests_per_second": 20}, {**LOAD, "requests_per_second": 10}),
    ("DC744", "error", ON_A100, {**LOAD, "requests_per_second": 10, "gpu_utilization": "30%"},
     {**LOAD, "requests_per_second": 10, "gpu_utilization": "30%", "prefix_cache_hits": "60%"}),
    ("DC745", "error", ON_4090, {"concurrency": 1, "tokens_per_second": 90},
     {"concurrency": 1, "tokens_per_second": 60}),
    ("DC745", "error", ON_4090, {"output_tokens": 8000, "latency": "3s"}, {"output_tokens": 100, "latency": "3s"}),
    ("DC747", "warning", ON_A100, {**LOAD, "requests_per_second": 4, "tokens_per_second": 2000},
     {**LOAD, "requests_per_second": 4, "tokens_per_second": 420}),
    ("DC748", "error", ON_A100, {**LOAD, "requests_per_second": 8, "latency": "2s", "concurrency": 8},
     {**LOAD, "requests_per_second": 4, "latency": "2s", "concurrency": 8}),
    ("DC749", "warning", ON_4090, {**STREAM, "batches": [{"concurrency": 4, "tokens_per_second": 8}]},
     {**STREAM, "batches": [{"concurrency": 4, "tokens_per_second": 38}]}),
    ("DC759", "warning", ON_4090, {"args": {"swap-spice": 4}}, {"args": {"max_num_seqs": 64}}),
    ("DC750", "stated", ON_4090, {**STREAM, "args": {"enforce_eager": True}}, {"concurrency": 1,
     "tokens_per_second": 60}),
    ("DC750", "perhaps", ON_4090, STREAM, {"concurrency": 1, "tokens_per_second": 55}),
    ("DC750", "stated", ON_4090, {**STREAM, "quantization": "bitsandbytes"}, {"quantization": "int8"}),
    ("DC751", "stated", ON_4090, {**STREAM, "quantization": "bitsandbytes-4bit"}, STREAM),
    ("DC751", "perhaps", ON_4090, {**STREAM, "quantization": "int8"},
     {**STREAM, "quantization": "int8", "engine": "vllm"}),
    ("DC752", "stated", ON_4090, {"adapter": "unmerged"}, {"adapter": "merged"}),
    ("DC752", "perhaps", ON_4090, {"adapter": "unknown"}, {}),
    ("DC753", "perhaps", ON_4090, {"gpu_utilization": "40%", "cpu_utilization": "80%"},
     {"gpu_utilization": "95%", "cpu_utilization": "80%"}),
    ("DC753", "stated", ON_4090, {"cpus": 2}, {"cpus": 8}),
    ("DC754", "stated", ON_A100, {**LOAD, "requests_per_second": 4, "latency": "2s", "concurrency": 8},
     {**LOAD, "requests_per_second": 1, "latency": "2s", "concurrency": 8}),
    ("DC754", "perhaps", ON_A100, {**LOAD, "requests_per_second": 2}, {**LOAD, "requests_per_second": 2,
     "gpu_utilization": "95%"}),
    ("DC755", "stated", ON_A100, {"concurrency": 256, "args": {"max-num-seqs": 64}},
     {"concurrency": 64, "args": {"max-num-seqs": 64}}),
    ("DC756", "perhaps", ON_A100, {**LOAD, "requests_per_second": 8}, {**LOAD, "requests_per_second": 1}),
    ("DC757", "stated", facts_of(cards=(A100,) * 1, config=QWEN_7B | {"num_hidden_layers": 280}),
     {"quantization": "int4", "out_of_memory": "fp16"}, {"quantization": "int4", "out_of_memory": "int4"}),
    ("DC758", "perhaps", ON_4090, {"out_of_memory": "fp16"}, {}),
    ("DC760", "note", ON_A100, {"args": {"max-num-seqs": 256}, "gpu_utilization": "30%", "input_tokens": 1500},
     {"args": {"max-num-seqs": 256}, "gpu_utilization": "95%", "input_tokens": 1500}),
    ("DC761", "note", ON_4090, {"concurrency": 1, "tokens_per_second": 55}, STREAM),
]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "how", "facts", "bad", "good"), SPEAKS, ids=[f"{row[0]}-{i}" for i, row in enumerate(SPEAKS)]
)
def test_speaks_and_does_not(code: str, how: str, facts: Facts, bad: dict[str, Any], good: dict[str, Any]) -> None:
    assert found(diagnosis(facts, **bad))[code] == how
    assert code not in found(diagnosis(facts, **good))


def test_what_is_stated_comes_before_what_may_be_and_more_before_less() -> None:
    causes = diagnosis(**STREAM, quantization="int8", adapter="unmerged", gpu_utilization="40%",
                       cpu_utilization="80%").causes  # fmt: skip
    stated = [cause.stated for cause in causes]
    assert stated == sorted(stated, reverse=True)
    assert causes[0].code == "DC752"
    gains = [cause.gain.value for cause in causes if not cause.stated and cause.gain]
    assert len(gains) >= 3 and gains == sorted(gains, reverse=True)


@pytest.mark.parametrize("tokens", [2.0, 10.0, 40.0])
def test_no_cause_gives_back_more_than_lacks(tokens: float) -> None:
    result = diagnosis(concurrency=1, tokens_per_second=tokens, adapter="unmerged", args={"enforce-eager": True})
    missing = result.patient.predicted.high - tokens
    gains = [cause.gain for cause in result.causes if cause.gain]
    assert len(gains) == 2
    assert all(0 <= gain.low <= gain.value <= gain.high <= missing + 1e-9 for gain in gains)


def test_what_is_expected_is_without_the_faults_that_are_described() -> None:
    """Eager mode is a cause, so that it is no part of what could be had."""
    seen = {**STREAM, "quantization": "int8"}
    plain, slow = diagnosis(**seen), diagnosis(**seen, args={"enforce_eager": True})
    assert plain.patient.predicted == slow.patient.predicted
    assert slow.patient.eager.value < slow.patient.predicted.value


def test_what_was_not_said_is_named_and_no_figure_is_infinite() -> None:
    said = document(diagnosis(ON_A100, **LOAD, requests_per_second=500), Report())
    assert "the memory in use" in said["not_seen"]
    assert json.dumps(said, allow_nan=False)
    bare = document(diagnosis(), Report())
    assert bare["not_seen"][:2] == ["the length of prompts: 1,000 tokens assumed",
                                    "the length of answers: 250 tokens assumed"]  # fmt: skip


MISTAKES = [
    ("model: a/b\n", "DC150", 1, "rtx-4090"),
    ("gpu: {bandwidth: 1TB/s}\nmodel: a/b\n", "DC150", 1, "add memory: 24GiB"),
    ("gpu: {memory: 24GiB}\nmodel: a/b\n", "DC150", 1, "add bandwidth: 1008GB/s"),
    ("gpu: {memory: 24GiB, bandwidth: 1TB/s, bandwith: 1}\nmodel: a/b\n", "DC151", 1, "did you mean bandwidth?"),
    ("gpu: t4\nmodel: a/b\ntoken_per_second: 4\n", "DC151", 3, "did you mean tokens_per_second?"),
    ("gpu: t4\nmodel: a/b\nbatches:\n  - {concurrency: 4, tps: 3, tokens_per_second: 3}\n", "DC151", 4, "known here"),
    ("gpu: t4\nmodel: a/b\nquantization: int9\n", "DC156", 3, "did you mean int8?"),
    ("gpu: t4\nmodel: a/b\nmemory_used: 14\n", "DC153", 3, "GiB"),
    ("gpu: t4\nmodel: a/b\nmemory_used: much\n", "DC153", 3, "24GiB"),
    ("gpu: t4\nmodel: a/b\nconcurrency: four\n", "DC152", 3, ""),
    ("gpu: t4\nmodel: a/b\nlatency: 3\n", "DC153", 3, ""),
    ("gpu: t4\nmodel: a/b\nargs: [a]\n", "DC152", 3, ""),
    ("gpu: t4\nmodel: a/b\nbatches: 4\n", "DC152", 3, ""),
    ("gpu: t4\nmodel: a/b\ngpu_utilization: {a: 1}\n", "DC152", 3, "40%"),
    ("gpu: t4\nmodel: a/b\ngpu: t4\n", "DC105", 3, ""),
]


@pytest.mark.parametrize(("text", "code", "line", "fix"), MISTAKES, ids=range(len(MISTAKES)))
def test_a_mistake_is_named_on_its_line(tmp_path: Path, text: str, code: str, line: int, fix: str) -> None:
    file = tmp_path / "seen.yaml"
    file.write_text(text)
    said, report = described(file, {})
    assert said is None
    assert [(d.code, d.at.line if d.at else 0) for d in report.errors] == [(code, line)]
    assert fix in report.diagnostics[0].fix and report.diagnostics[0].fix


def test_all_mistakes_are_said_at_once(tmp_path: Path) -> None:
    file = tmp_path / "seen.yaml"
    file.write_text("gpu: t4\nconcurrency: 0\nlatency: x\nno_such: 1\n")
    assert sorted(d.code for d in described(file, {})[1].errors) == ["DC150", "DC151", "DC153", "DC154"]


def test_a_flag_that_cannot_have_its_value_is_named_where_it_stands(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text(json.dumps(QWEN_7B))
    file = tmp_path / "seen.yaml"
    file.write_text("gpu: t4\nmodel: ./model\nargs:\n  gpu_memory_utilization: 3.5\n")
    assert run(["doctor", "--describe", str(file), "--offline", "--json"]) == 3
    said = json.loads(capsys.readouterr().out)["diagnostics"]
    assert [(d["code"], d["at"]) for d in said] == [("DC154", "seen.yaml:4:27")]
    assert "gpu-memory-utilization" in said[0]["detail"]


def test_a_folder_s_config_is_enough(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text(json.dumps(QWEN_7B))
    file = tmp_path / "seen.yaml"
    file.write_text("gpu: rtx-4090\nmodel: ./model\nconcurrency: 1\ntokens_per_second: 8\nversion: 0.33.0\n")
    assert run(["doctor", "--describe", str(file), "--offline"]) == 0
    shown = capsys.readouterr().out
    assert "14.3 GiB of weights" in shown
    assert "CUDA graphs are turned off (DC750)" in shown
    assert "Look at next" in shown


def test_what_a_deploy_yaml_says_need_not_be_described(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text(json.dumps(QWEN_7B))
    (tmp_path / "deploy.yaml").write_text(
        "version: 1\nname: qa\nmodel: {source: ./model}\nhardware: {gpu: rtx-4090}\n"
        "workload: {input_tokens: 1500, output_tokens: 256, concurrency: 8}\nengine: {version: 0.33.0}\n"
    )
    file = tmp_path / "seen.yaml"
    file.write_text("tokens_per_second: 30\n")
    assert run(["doctor", "--describe", str(file), "-f", str(tmp_path / "deploy.yaml"), "--offline", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["observed"] == {"tokens_per_second": 30.0, "concurrency": 8}
    assert said["causes"][0]["code"] == "DC750"
    assert not any("assumed" in one for one in said["not_seen"])


@pytest.mark.parametrize("words", [["http://127.0.0.1:8000"], []])
def test_a_running_server_is_not_looked_at_yet(words: list[str], capsys: Capture) -> None:
    assert run(["doctor", *words]) == 64
    assert "--describe" in capsys.readouterr().err


def test_a_card_may_be_described_by_its_figures(tmp_path: Path, capsys: Capture) -> None:
    """What is read of it goes through a deploy.yaml and stays the same."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text(json.dumps(QWEN_7B))
    file = tmp_path / "seen.yaml"
    gpu = '{memory: 24GiB, bandwidth: 1008GB/s, compute_capability: "8.9", flops: {bf16: 165TFLOPS, int8: 660TFLOPS}}'
    file.write_text(f"gpu: {gpu}\nmodel: ./model\nconcurrency: 1\ntokens_per_second: 55\n")
    assert run(["doctor", "--describe", str(file), "--offline", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["predicted"]["memory"]["total"]["value"] == 24 * 2**30
    assert 65 < said["predicted"]["physical_limit"]["value"] < 72


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"args": {"max-model-len": 131072}}, "DC520"),
        ({"input_tokens": 40000}, "DC521"),
        ({"args": {"gpu-memory-utilization": 0.99}}, "DC303"),
        ({"args": {"gpu-memory-utilization": 0.3}}, "DC300"),
        ({"args": {"cpu-offload-gb": 4}}, "DC309"),
        ({"args": {"max-num-seqs": "many"}}, "DC501"),
    ],
)
def test_what_a_plan_would_refuse_or_warn_of_is_said(said: dict[str, Any], code: str) -> None:
    assert code in found(diagnosis(**said))
    assert code not in found(diagnosis(args={"max-num-seqs": 64, "max-model-len": 8192}, input_tokens=1000))


@pytest.mark.parametrize(
    ("example", "codes"),
    [
        ("qwen2.5-7b-lora-rtx4090", {"DC741", "DC749", "DC750", "DC751", "DC752", "DC753", "DC758"}),
        ("qwen2.5-7b-a100", {"DC744", "DC756", "DC760"}),
    ],
)
def test_the_examples_are_diagnosed(example: str, codes: set[str], capsys: Capture) -> None:
    folder = Path(__file__).resolve().parents[2] / "examples" / example
    words = ["--describe", str(folder / "seen.yaml"), "-f", str(folder / "deploy.yaml"), "--offline", "--json"]
    assert run(["doctor", *words]) == 0
    said = json.loads(capsys.readouterr().out)
    assert codes <= {one["code"] for one in (*said["diagnostics"], *said["causes"])}


def test_what_needs_no_facts_is_said_without_them(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "seen.yaml"
    file.write_text("gpu: rtx-4090d\nmodel: a/b\ngpu_utilization: 108%\n")
    assert run(["doctor", "--describe", str(file), "--offline", "--json"]) == 3
    said = json.loads(capsys.readouterr().out)["diagnostics"]
    assert [d["code"] for d in said] == ["DC193", "DC740"]
    assert "-f" in said[0]["fix"]
