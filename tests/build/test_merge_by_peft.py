"""Kinds that only peft merges: its own result, rounded once; the memory is said beforehand; what fails is said."""

from __future__ import annotations

import builtins
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import tiny

from deployc.facts.adapter import adapter_facts
from deployc.facts.faults import Fault
from deployc.facts.folder import Folder
from deployc.facts.model import model_facts
from deployc.rules.adapter_shapes import adapter_shapes, cannot_be_served
from deployc.rules.adapter_shapes.in_memory import LIBRARIES, by_peft, memory, too_little
from deployc.types.facts import AdapterFacts, ModelFacts

if find_spec("torch"):  # else the marker says whether that is a failure
    import torch

pytestmark = pytest.mark.build

ON = {"target_modules": ["q_proj", "down_proj"], "task_type": "CAUSAL_LM"}
KINDS: dict[str, dict[str, Any]] = {
    "IA3": {**ON, "feedforward_modules": ["down_proj"]},
    "LoHa": {**ON, "r": 4},
    "LoKr": {**ON, "r": 4},
    "Vera": {**ON, "r": 4},
    "OFT": {**ON, "oft_block_size": 8},
    "Lora": {**ON, "r": 4, "init_lora_weights": "pissa"},
}


def made(folder: Path, name: str) -> tuple[Path, Path]:
    import peft

    base = tiny.model(folder / "base", tied=False)
    return base, tiny.trained(folder / "qa", base, getattr(peft, f"{name}Config")(**KINDS[name]))


def facts(base: Path, adapter: Path) -> tuple[ModelFacts, AdapterFacts]:
    return model_facts(Folder(base, "./base"), "./base", {})[0], adapter_facts("qa", Folder(adapter, "./qa"), "./qa")


class Events:
    def __init__(self) -> None:
        self.said: dict[str, Any] = {}

    def send(self, _: str, **values: Any) -> None:
        self.said |= json.loads(json.dumps(values))

    def progress(self, _: str, done: int, total: int, __: str) -> None:
        assert 0 < done <= total


def run(base: Path, adapter: Path, into: Path) -> dict[str, Any]:
    from deployc.build.merge import by_peft as worker

    into.mkdir()
    events = Events()
    job = {
        "into": str(into), "model": str(base), "source": "base", "shards": ["model.safetensors"], "dtype": "bfloat16",
        "adapter": {"name": "qa", "path": str(adapter / "adapter_model.safetensors")}, "threads": 1,
    }  # fmt: skip
    worker.run(job, events)  # type: ignore[arg-type]
    return events.said


@pytest.mark.parametrize("name", KINDS)
def test_merged_as_peft_merges(name: str, tmp_path: Path) -> None:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    base, adapter = made(tmp_path, name)
    said = run(base, adapter, tmp_path / "merged")
    found, before = tiny.weights(tmp_path / "merged"), tiny.weights(base)
    plain = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    wanted = PeftModel.from_pretrained(plain, adapter).merge_and_unload().state_dict()
    assert found.keys() == before.keys() == wanted.keys()
    for tensor, values in found.items():
        assert torch.equal(values, wanted[tensor].bfloat16())
        assert torch.equal(values, before[tensor]) == (not tensor.endswith(("q_proj.weight", "down_proj.weight")))
    assert said["shards"].keys() == {"model.safetensors"}
    assert said["model"]["model.safetensors"]["bytes"] == (base / "model.safetensors").stat().st_size
    model, own = facts(base, adapter)
    assert adapter_shapes(model, own, None) == []
    (warned,) = by_peft(model, [own], [1.0], None)
    assert (warned.code, warned.severity.value) == ("DC249", "warning")
    assert [d.code for d in cannot_be_served(own, None)] == ["DC242"]


def test_memory_is_said_beforehand(tmp_path: Path) -> None:
    model, adapter = facts(*made(tmp_path, "LoHa"))
    needed = memory(model, [adapter])
    assert needed - LIBRARIES > 4 * model.parameters
    assert too_little(model, [adapter], needed) == []
    (wrong,) = too_little(model, [adapter], needed - 1)
    assert (wrong.code, wrong.severity.value, "LOHA" in wrong.detail) == ("DC249", "error", True)


@pytest.mark.parametrize(("count", "weight"), [(2, 1.0), (1, 0.5)])
def test_only_alone_and_whole(count: int, weight: float, tmp_path: Path) -> None:
    model, adapter = facts(*made(tmp_path, "IA3"))
    found = by_peft(model, [adapter] * count, [weight] * count, None)
    assert [(d.code, d.severity.value) for d in found] == [("DC238", "error"), ("DC249", "warning")]


def test_libraries_that_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base, adapter = made(tmp_path, "IA3")
    real = builtins.__import__

    def without_peft(name: str, *rest: Any) -> Any:
        if name == "peft":
            raise ModuleNotFoundError("No module named 'peft'", name="peft")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_peft)
    with pytest.raises(Fault) as fault:
        run(base, adapter, tmp_path / "merged")
    assert (fault.value.diagnostic.code, "peft" in fault.value.diagnostic.detail) == ("DC248", True)


def test_an_adapter_that_changes_nothing(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    base, adapter = made(tmp_path, "LoHa")
    weights = {name: values * 0 for name, values in tiny.weights(adapter).items()}
    save_file(weights, adapter / "adapter_model.safetensors")
    with pytest.raises(Fault) as fault:
        run(base, adapter, tmp_path / "merged")
    assert fault.value.diagnostic.code == "DC239"


def test_values_that_are_not_finite(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    base, adapter = made(tmp_path, "IA3")
    weights = tiny.weights(adapter)
    name = next(iter(weights))
    weights[name][0] = float("nan")
    save_file(weights, adapter / "adapter_model.safetensors")
    with pytest.raises(Fault) as fault:
        run(base, adapter, tmp_path / "merged")
    assert (fault.value.diagnostic.code, name in fault.value.diagnostic.detail) == ("DC274", True)


def test_what_peft_cannot_do_is_said(tmp_path: Path) -> None:
    base, adapter = made(tmp_path, "IA3")
    tiny.edited(adapter / "adapter_config.json", {"target_modules": ["nothing"]})
    with pytest.raises(Fault) as fault:
        run(base, adapter, tmp_path / "merged")
    assert (fault.value.diagnostic.code, "cannot merge it" in fault.value.diagnostic.detail) == ("DC238", True)


@pytest.mark.parametrize("pickled", [False, True])
def test_a_build_goes_through_peft(pickled: bool, tmp_path: Path) -> None:
    """Two processes: peft's merge, then the pass that quantizes it; the folder between them is gone."""
    base, adapter = made(tmp_path, "LoKr")
    merged = tmp_path / "merged"
    run(base, adapter, merged)
    if pickled:
        torch.save(tiny.weights(adapter), adapter / "adapter_model.bin")
        (adapter / "adapter_model.safetensors").unlink()
    artifact = tiny.built(tiny.recipe(base, [adapter], weights="int8"), tmp_path / "store")
    wanted = tiny.built(tiny.recipe(merged_model(base, merged), weights="int8"), tmp_path / "store")
    ours, its = tiny.weights(artifact.path), tiny.weights(wanted.path)
    assert ours.keys() == its.keys()
    assert all(torch.equal(values, its[name]) for name, values in ours.items())
    assert not [path for path in artifact.path.iterdir() if path.is_dir()]
    manifest = json.loads((artifact.path / "manifest.json").read_text())
    file = "adapter_model.bin" if pickled else "adapter_model.safetensors"
    assert manifest["inputs"][f"adapters/qa/{file}"]["bytes"] == (adapter / file).stat().st_size
    assert manifest["inputs"]["model/model.safetensors"]["bytes"] == (base / "model.safetensors").stat().st_size
    assert "peft" in manifest["versions"]
    assert {d.code for d in artifact.notes} >= {"DC249"} | ({"DC233"} if pickled else set())


def merged_model(base: Path, merged: Path) -> Path:
    """With the files that transformers' `save_pretrained` of a model alone leaves out."""
    for path in base.iterdir():
        if path.suffix == ".json" and not (merged / path.name).exists():
            (merged / path.name).write_bytes(path.read_bytes())
    return merged
