"""Cards and engine as fixed facts, so that these tests are about models, adapters and the lockfile."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from small_models import adapter_files, model_files, put

from deployc.diagnostics import Report
from deployc.facts import resolution, web
from deployc.spec.deploy import Deploy
from deployc.types.facts import EngineFacts, Flag, GpuFacts, Spec

GPU = GpuFacts("rtx-4090", Spec(25.3e9, "test", "vendor"), Spec(1008e9, "test", "vendor"), (8, 9), {}, "pcie")
ENGINE = EngineFacts(
    "vllm", "0.33.0", {"max-model-len": Flag("max-model-len", "int"), "dtype": Flag("dtype", "str", ("auto",), "auto")},
    0.92, ({"min_memory": 0, "tokens": 2048, "seqs": 256},), True, "V1", "vllm/vllm-openai:v0.33.0", "13.0",
    "vllm serve", "test",
)  # fmt: skip


@pytest.fixture
def fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    def devices(deploy: Deploy, env: Mapping[str, str], report: Report) -> tuple[GpuFacts, ...]:
        return (GPU,) * deploy.hardware.count

    def engine(deploy: Deploy, report: Report) -> EngineFacts:
        return ENGINE

    monkeypatch.setattr(resolution, "_devices", devices)
    monkeypatch.setattr(resolution, "_engine", engine)


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy between the tests and loopback, no token of whoever runs them, no long pauses."""
    be_patient(monkeypatch, timeout=10.0, whole=30.0)
    for name in [n for n in os.environ if n.lower().endswith("_proxy") or n.startswith(("HF_", "MODELSCOPE_"))]:
        monkeypatch.delenv(name)


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch, alone: None) -> None:
    """Short times, for answers that come too late."""
    be_patient(monkeypatch, timeout=0.2, whole=0.4)


def be_patient(monkeypatch: pytest.MonkeyPatch, timeout: float, whole: float) -> None:
    def patience(env: Mapping[str, str]) -> web.Patience:
        return web.Patience(timeout, whole, attempts=3, pause=0.01)

    monkeypatch.setattr(web, "patience", patience)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with a model and an adapter in it."""
    put(tmp_path / "model", model_files())
    put(tmp_path / "qa", adapter_files())
    return tmp_path
