"""The demo trusts only what was finished, says which step failed and how to go on, and asks what it did not teach."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

DEMO = Path(__file__).resolve().parents[2] / "examples" / "smollm2-cpu"
MODULES = ("steps", "product", "ask", "model", "train", "serve", "demo")


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    """The demo's modules as its own folder sees them, forgotten afterwards."""
    monkeypatch.syspath_prepend(str(DEMO))
    yield {name: importlib.import_module(name) for name in MODULES}
    for name in MODULES:
        sys.modules.pop(name, None)


def test_an_output_is_trusted_only_when_finished_from_the_same_inputs(
    modules: dict[str, ModuleType], tmp_path: Path
) -> None:
    steps, output = modules["steps"], tmp_path / "adapter"
    assert not steps.finished(output, "a")
    with steps.making(output, "a") as part:
        (part / "weights").write_text("first")
        assert not output.exists()
    assert steps.finished(output, "a")
    assert not steps.finished(output, "b"), "other inputs make it afresh"
    assert (output / "weights").read_text() == "first"


@pytest.mark.parametrize("stop", [KeyboardInterrupt, RuntimeError])
def test_a_half_made_output_is_made_afresh(
    modules: dict[str, ModuleType], tmp_path: Path, stop: type[BaseException]
) -> None:
    steps, output = modules["steps"], tmp_path / "model"
    with steps.making(output, "a") as part:
        (part / "old").touch()
    with pytest.raises(stop), steps.making(output, "a") as part:
        (part / "half").touch()
        raise stop
    assert not steps.finished(output, "a"), "the older output went with the first attempt to replace it"
    with steps.making(output, "a") as part:
        assert list(part.iterdir()) == []
    assert steps.finished(output, "a")
    assert list(output.iterdir()) == []


def test_a_folder_without_its_marker_is_not_trusted(modules: dict[str, ModuleType], tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    assert not modules["steps"].finished(tmp_path / "model", "a")


def test_what_is_asked_was_not_taught_word_by_word(modules: dict[str, ModuleType]) -> None:
    product = modules["product"]
    taught = {question for question, _ in product.training_pairs()}
    assert len(taught) == len(product.training_pairs())
    for fact in (*product.FACTS, product.STILL_KNOWN):
        assert not taught & set(fact.held_out)
        assert fact.known(fact.answer)
        assert not any(fact.known(question) for question in fact.held_out), "the question gives the answer away"


@pytest.mark.parametrize(
    ("stop", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "Interrupted in [2/9] Model"),
        ("no route", 1, "The demo stopped in [2/9] Model"),
        (OSError(28, "No space left on device"), 1, "why:    OSError: [Errno 28] No space left on device"),
    ],
)
def test_a_stop_names_the_step_and_how_to_go_on(
    modules: dict[str, ModuleType],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    stop: BaseException | str,
    code: int,
    said: str,
) -> None:
    def fail(_: Path) -> Path:
        raise modules["steps"].StepFailed(stop) if isinstance(stop, str) else stop

    monkeypatch.setattr(modules["demo"], "CHECKOUT", tmp_path)
    monkeypatch.setattr(modules["demo"], "WORK", tmp_path / "work")
    monkeypatch.setattr(modules["demo"], "environment", lambda: None)
    monkeypatch.setattr(modules["model"], "obtain", fail)
    assert modules["demo"].main() == code
    out = capsys.readouterr().out
    assert said in out
    assert "go on:  make demo" in out
    assert "take it down" not in out, "no server was started yet"


def test_after_apply_a_stop_says_how_to_take_the_server_down(
    modules: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def deployc(command: str, *_: str, capture: bool = False) -> str:
        if command == "apply":
            raise modules["steps"].StepFailed("the engine died")
        return "{}" if capture else ""

    demo = modules["demo"]
    monkeypatch.setattr(demo, "environment", lambda: None)
    monkeypatch.setattr(modules["model"], "obtain", lambda _: Path("model"))
    monkeypatch.setattr(demo, "base_answers", lambda _: [])
    monkeypatch.setattr(modules["train"], "train", lambda *_: None)
    monkeypatch.setattr(demo, "deployc", deployc)
    assert demo.main() == 1
    out = capsys.readouterr().out
    assert "[6/9] deployc apply" in out
    assert "the engine died" in out
    assert "deployc destroy -f examples/smollm2-cpu/deploy.yaml" in out
