"""Tests marked `build` need torch, transformers, peft, safetensors and compressed-tensors in this interpreter."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from adapted import Small

from deployc.apply.quantizer import locate_quantizer
from deployc.build import process

NEEDED = ("torch", "transformers", "peft", "safetensors", "compressed_tensors")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what cannot run here; with DEPLOYC_REQUIRE_BUILD=1 that is a failure."""
    if item.get_closest_marker("build") is None:
        return
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing and os.environ.get("DEPLOYC_REQUIRE_BUILD") == "1":
        pytest.fail(f"required here, but not installed: {', '.join(missing)}", pytrace=False)
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The worker's code in this process: importing torch once is enough for tests of what it computes."""

    def run(job: Mapping[str, Any], _: Callable[..., None]) -> dict[str, Any]:
        from deployc.build.worker import run as work
        from deployc.diagnostics import Stop
        from deployc.facts.faults import Fault

        result: dict[str, Any] = {}

        class Events:
            def send(self, _: str, **values: Any) -> None:
                result.update(values)

            def progress(self, _: str, done: int, total: int, *__: str) -> None:
                assert 0 <= done <= total

        try:
            work(job, Events())  # type: ignore[arg-type]
        except Fault as fault:
            raise Stop(fault.diagnostic) from None
        return result

    begun = SimpleNamespace(run=run)
    monkeypatch.setattr(process, "begun", lambda *_: nullcontext(begun))
    yield


@pytest.fixture
def small(tmp_path: Path) -> Small:
    """A small random llama in two shards with an adapter."""
    return Small(tmp_path).model(shards=2).adapter("qa")


@pytest.fixture(scope="session")
def python() -> Path:
    """The quantizer's interpreter; with DEPLOYC_REQUIRE_QUANTIZER=1 its absence is a failure."""
    named = os.environ.get("DEPLOYC_QUANTIZER_PYTHON")
    found = Path(named) if named else locate_quantizer(os.environ)
    if found is None and os.environ.get("DEPLOYC_REQUIRE_QUANTIZER") == "1":
        pytest.fail("required here, but not installed: deployc engine install --quantizer", pytrace=False)
    if found is None:
        pytest.skip("not installed: deployc engine install --quantizer")
    return found
