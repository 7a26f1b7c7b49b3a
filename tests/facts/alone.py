"""Tests that depend on nothing outside: fixed cards and engine, no proxy, no token of whoever runs them."""

from __future__ import annotations

import os
from collections.abc import Mapping

import pytest

from deployc.diagnostics import Report
from deployc.facts import resolution, web
from deployc.spec.deploy import Deploy
from deployc.types.facts import EngineFacts, Flag, GpuFacts, Spec
from deployc.types.runner import RunnerRule

GPU = GpuFacts("rtx-4090", Spec(25.3e9, "test", "vendor"), Spec(1008e9, "test", "vendor"), (8, 9), {}, "pcie")
ENGINE = EngineFacts(
    "vllm", "0.33.0", {"max-model-len": Flag("max-model-len", "int"), "dtype": Flag("dtype", "str", ("auto",), "auto")},
    0.92, ({"tokens": 2048, "seqs": 256},), (RunnerRule("V1"),), ("V1",),
    "vllm/vllm-openai:v0.33.0", "13.0", "vllm serve", "test",
)  # fmt: skip


def stand_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """For an autouse fixture: cards and engine as fixed facts, hubs on loopback only, no long pauses."""

    def devices(deploy: Deploy, env: Mapping[str, str], report: Report) -> tuple[GpuFacts, ...]:
        return (GPU,) * deploy.hardware.count

    def engine(deploy: Deploy, report: Report) -> EngineFacts:
        return ENGINE

    monkeypatch.setattr(resolution, "_devices", devices)
    monkeypatch.setattr(resolution, "_engine", engine)
    be_patient(monkeypatch, timeout=10.0, whole=30.0)
    for name in [n for n in os.environ if n.lower().endswith("_proxy") or n.startswith(("HF_", "MODELSCOPE_"))]:
        monkeypatch.delenv(name)


def be_patient(monkeypatch: pytest.MonkeyPatch, timeout: float, whole: float) -> None:
    """Set the times, in seconds, that a hub is given."""

    def patience(env: Mapping[str, str]) -> web.Patience:
        return web.Patience(timeout, whole, attempts=3, pause=0.01)

    monkeypatch.setattr(web, "patience", patience)
