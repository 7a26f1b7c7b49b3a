"""SHAPE under mutations of a good file: a Deploy or diagnostics in place, never an exception, never long."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from deployc.diagnostics import Span
from deployc.pipeline import Analysis
from deployc.pipeline import shape as shape_file
from deployc.source import Document
from deployc.spec import shape

GOOD = """\
version: 1
name: domain-qa
model: {source: Qwen/Qwen2.5-7B-Instruct, context: {rope: yarn, factor: 2}}
adapters:
  - name: domain-qa   # 领域：问答
    source: ./adapters/domain-qa
quantization: {weights: int8}
hardware:
  gpu: [rtx-3090, {memory: 24GiB, bandwidth: 1008GB/s, flops: {bf16: 165TFLOPS}}]
  devices: [0, 1]
  reserved_memory: 2GiB
workload:
  input_tokens: {mean: 1500, p95: 4000}
  output_tokens: 256
  request_rate: 8/s
sla: {ttft_p95: 800ms, full_length_requests: 4}
engine:
  version: 0.33.0
  parallel: {tensor: auto, replicas: 2}
  gpu_memory_utilization: 92%
  env: {OMP_NUM_THREADS: '8'}
  args: {max-num-seqs: 64}
target:
  api_key: {env: DEPLOYC_API_KEY}
rollout: {drain_timeout: 30s}
accept: [{code: DC402, reason: "评审：通过"}]
"""
VALUES: dict[str, Any] = {
    "version": 1, "name": "a", "model": {"source": "./m", "context": {"rope": "yarn", "factor": 2.0}},
    "adapters": [{"name": "a", "source": "./a", "weight": 1.0}], "quantization": {"ignore": ["lm_head"]},
    "hardware": {"gpu": ["rtx-3090", {"memory": "24GiB", "bandwidth": "1008GB/s"}], "devices": [0, "GPU-1"]},
    "workload": {"input_tokens": {"mean": 10, "p95": 20}, "output_tokens": 5, "concurrency": 2},
    "sla": {"ttft_p95": "800ms"}, "engine": {"version": "0.33.0", "parallel": {"tensor": 2}, "env": {"A": "b"}},
    "target": {"port": 80, "api_key": {"env": "A"}, "labels": {}}, "accept": [{"code": "DC402", "reason": "x"}],
}  # fmt: skip
ODD = st.sampled_from(
    ["\t", "：", "，", "“", "　", "'", '"', "{", "]", "&a ", "*a", "!", "${X}", "\x00", "\ufeff", "- ", "é"]
)
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
    | st.sampled_from(["auto", "1GiB", "3%", "8/s", "-1", "1e999", "sk-abcdefghijklmnopqrst", 10**60, -1, 0]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


def paths(node: Any, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [at, *(path for key, value in inner for path in paths(value, (*at, key)))]


def changed(node: Any, at: tuple[str | int, ...], value: Any, drop: bool) -> Any:
    """A copy with the value at a path replaced, or gone."""
    if not at:
        return value
    key, rest = at[0], at[1:]
    items = node.items() if isinstance(node, dict) else enumerate(node)
    kept = {
        k: changed(v, rest, value, drop) if k == key else v for k, v in items if not (drop and k == key and not rest)
    }
    return kept if isinstance(node, dict) else list(kept.values())


def check_text(text: bytes) -> Analysis:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "deploy.yaml"
        file.write_bytes(text)
        began = time.monotonic()
        analysis = shape_file(file, {})
        assert time.monotonic() - began < 30  # of a second at most on an idle machine; what is unbounded takes hours
    assert analysis.deploy is not None or analysis.report.errors
    for found in analysis.report:
        assert found.at is not None and found.summary and found.detail and found.fix
        assert "100" <= found.code.removeprefix("DC") <= "189"
    return analysis


def test_the_file_itself_is_good() -> None:
    analysis = check_text(GOOD.encode())
    assert analysis.deploy is not None and not analysis.report.diagnostics


@settings(max_examples=150, deadline=None)
@given(st.integers(0, len(GOOD.encode())))
def test_cut_off_anywhere(end: int) -> None:
    check_text(GOOD.encode()[:end])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(GOOD)), ODD), min_size=1, max_size=4))
def test_odd_characters_anywhere(insertions: list[tuple[int, str]]) -> None:
    text = GOOD
    for at, odd in insertions:
        text = text[:at] + odd + text[at:]
    check_text(text.encode())


@settings(max_examples=100, deadline=None)
@given(st.integers(0, GOOD.count("\n") - 1), st.integers(0, GOOD.count("\n") - 1), st.booleans())
def test_lines_twice_and_moved(line: int, to: int, keep: bool) -> None:
    lines = GOOD.splitlines(keepends=True)
    moved = lines[line]
    if not keep:
        del lines[line]
    check_text("".join([*lines[:to], moved, *lines[to:]]).encode())


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(paths(VALUES)[1:]), ANY, st.booleans()), min_size=1, max_size=3))
def test_values_of_any_type_anywhere(changes: list[tuple[tuple[str | int, ...], Any, bool]]) -> None:
    values = VALUES
    for at, value, drop in changes:
        if at in paths(values):
            values = changed(values, at, value, drop)
    spans = {at: Span("deploy.yaml", number + 1, 1, 2, "x") for number, at in enumerate(paths(values))}
    document = Document(values, spans, spans, {}, {}, Path())
    deploy, report = shape(document)
    assert deploy is not None or report.errors
    for found in report:
        assert found.at is not None and found.detail and found.fix
    if deploy is not None:
        assert deploy.model_dump(exclude_unset=True).keys() <= values.keys()
