"""Real llm-compressor on a tiny model: what it writes is what was planned, loads, and is near the 16-bit model."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import spoken
import tiny

from deployc.build.calibrated.run import Calibrated, Merged, calibrate, ready
from deployc.build.quantize import layers
from deployc.build.weights.safetensors_file import Reader, sha256
from deployc.diagnostics import Stop
from deployc.types.bundle import Recipe, Text
from deployc.types.manifest import Progress

pytestmark = pytest.mark.build
KINDS = ("int4-gptq", "int4-awq", "int8")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`model/`, `c.jsonl`, and what is made of them."""
    folder = tmp_path_factory.mktemp("calibrated")
    spoken.llama(folder / "model")
    spoken.spoken(folder / "c.jsonl")
    return folder


def recipe(work: Path, kind: str, **changes: Any) -> Recipe:
    text = Text("./c.jsonl", "", 16, 64)
    size, strength = (0, 0.8) if kind == "int8" else (32, 0.0)
    plain = tiny.recipe(work / "model", weights=kind)
    return replace(plain, **{"group_size": size, "smoothquant": strength, "calibration": text, **changes})


def merged(work: Path, wanted: Recipe) -> Merged:
    with Reader(work / "model" / "model.safetensors", "test") as reader:
        tensors = [(slot.name, slot.dtype, slot.shape) for slot in reader.slots]
    alone = layers.left_alone(tensors, wanted.ignore)
    return Merged(work / "model", "tiny", ["model.safetensors"], layers.schemes(tensors, wanted), alone)


def run(work: Path, into: Path, python: Path, wanted: Recipe, watch: Callable[[Progress], None]) -> Calibrated:
    into.mkdir(exist_ok=True)
    with (work / "lock").open("a") as lock:
        return calibrate(wanted, merged(work, wanted), into, folder=work, python=python, lock=lock.fileno(),
                         progress=watch, threads=2)  # fmt: skip


@pytest.fixture(scope="module")
def made(work: Path, python: Path) -> dict[str, tuple[Calibrated, list[Progress]]]:
    """Every kind, built once; the folder of each is complete as the build would make it."""
    found = {}
    for kind in KINDS:
        seen: list[Progress] = []
        result = run(work, work / kind, python, recipe(work, kind), seen.append)
        found[kind] = (result, seen)
        assert sorted(path.name for path in (work / kind).iterdir()) == sorted(result.shards), "nothing else is left"
        for path in (work / "model").iterdir():
            if path.suffix != ".safetensors":
                shutil.copy(path, work / kind)
        tiny.edited(work / kind / "config.json", {"quantization_config": dict(result.quantization_config)})
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_what_it_says_is_what_lies_there(kind: str, work: Path, made: dict[str, Any]) -> None:
    result, seen = made[kind]
    for name, content in result.shards.items():
        path = work / kind / name
        assert (path.stat().st_size, sha256(path)) == (content.bytes, content.sha256)
        assert path.stat().st_mode & 0o044 == 0o044, "the engine's user may read it"
    assert set(result.versions) == {"llmcompressor", "compressed_tensors", "torch", "transformers"}
    assert [(p.phase, p.total) for p in seen] == [("calibrate", 3)] * len(seen) and seen[-1].done == 3
    assert result.threads == 2 and set(result.seconds) == {"read", "calibrate", "write"} and not list(result.notes)
    (group,) = result.quantization_config["config_groups"].values()
    assert result.quantization_config["ignore"] == ["lm_head"]
    wanted = {"int4-gptq": (4, True, 32), "int4-awq": (4, False, 32), "int8": (8, True, None)}[kind]
    assert tuple(group["weights"][key] for key in ("num_bits", "symmetric", "group_size")) == wanted


def test_each_loads_and_is_near_the_16_bit_model(work: Path, python: Path, made: dict[str, Any]) -> None:
    """In the quantizer's own transformers: compressed-tensors 0.20 does not load packed zero points."""
    program, folders = Path(__file__).with_name("distances.py"), [str(work / kind) for kind in made]
    argv = [str(python), str(program), str(work / "model"), str(work / "c.jsonl"), "32", *folders]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    far = json.loads(said.splitlines()[-1])
    gptq, awq, int8 = (far[str(work / kind)] for kind in KINDS)
    assert int8 < gptq < far["rtn"], "text that was looked at helps"
    assert int8 < awq < far["rtn"], far


def test_an_ignored_layer_keeps_its_weight(work: Path, python: Path, tmp_path: Path) -> None:
    shutil.copytree(work / "model", tmp_path / "model")
    shutil.copy(work / "c.jsonl", tmp_path)
    wanted = recipe(tmp_path, "int4-gptq", ignore=("lm_head", "layers.1"))
    result = run(tmp_path, tmp_path / "out", python, wanted, lambda _: None)
    before, after = tiny.weights(tmp_path / "model"), tiny.weights(tmp_path / "out")
    same = {name for name in before if name in after and bool((before[name] == after[name]).all())}
    assert {name for name in before if ".layers.1." in name} <= same
    assert not any(name.endswith("proj.weight") and ".layers.0." in name for name in after)
    assert "model.layers.1.mlp.up_proj" in result.quantization_config["ignore"]


def refused(work: Path, python: Path | None, wanted: Recipe) -> list[tuple[str, str]]:
    into = work / "refused"
    into.mkdir(exist_ok=True)
    with pytest.raises(Stop) as stop, (work / "lock").open("a") as lock:
        calibrate(wanted, merged(work, wanted), into, folder=work, python=python, lock=lock.fileno(),
                  progress=lambda _: None)  # fmt: skip
    assert not list(into.iterdir()), "nothing half-named is left"
    return [(d.code, d.detail) for d in stop.value.report]


def test_without_the_environment_the_command_is_named(work: Path) -> None:
    ((code, detail),) = refused(work, None, recipe(work, "int4-awq"))
    assert code == "DC260" and "int4-awq" in detail


def test_all_that_can_be_known_before_a_merge_is_told_at_once(work: Path) -> None:
    wanted = recipe(work, "int4-gptq", calibration=Text("./nowhere.jsonl", "", 4, 64))
    with pytest.raises(Stop) as stop:
        ready(wanted, folder=work, python=None)
    assert [d.code for d in stop.value.report] == ["DC260", "DC261"]
    changed = recipe(work, "int4-gptq", calibration=Text("./c.jsonl", "sha256:00", 4, 64))
    with pytest.raises(Stop) as stop:
        ready(changed, folder=work, python=work)
    assert [d.code for d in stop.value.report] == ["DC277"]
    few = recipe(work, "int4-gptq", calibration=Text("./c.jsonl", f"sha256:{sha256(work / 'c.jsonl')}", 99, 64))
    python, lines, notes = ready(few, folder=work, python=work)
    assert python == work and len(lines) == 24 and [d.code for d in notes] == ["DC262"]


def test_a_chat_that_the_models_template_refuses_is_named(work: Path, python: Path) -> None:
    chats = [[{"role": role, "content": "x"}] for role in ("user", "tool", "assistant", "tool")]
    spoken.jsonl(work / "tools.jsonl", [{"messages": chat} for chat in chats])
    wanted = recipe(work, "int4-gptq", calibration=Text("tools.jsonl", "", 4, 64))
    ((code, detail),) = refused(work, python, wanted)
    assert code == "DC261" and "tools.jsonl: lines 2, 4" in detail and "no tools here" in detail


def test_layers_that_the_library_does_not_know_by_that_name(work: Path, python: Path) -> None:
    """A model whose module names are not its tensors': what would be written is not what was predicted."""
    wanted = recipe(work, "int4-gptq")
    whole = merged(work, wanted)
    less = {name: scheme for name, scheme in whole.quantized.items() if "down_proj" not in name}
    into = work / "other"
    into.mkdir()
    with pytest.raises(Stop) as stop, (work / "lock").open("a") as lock:
        calibrate(wanted, replace(whole, quantized=less), into, folder=work, python=python, lock=lock.fileno(),
                  progress=lambda _: None)  # fmt: skip
    (told,) = stop.value.report
    assert told.code == "DC264" and "down_proj.weight_packed" in told.detail and not list(into.iterdir())


def test_an_interruption_leaves_nothing(work: Path, python: Path) -> None:
    into, wanted = work / "interrupted", recipe(work, "int4-awq")
    into.mkdir()

    def interrupt(_: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(work, into, python, wanted, interrupt)
    assert not list(into.iterdir())


def test_a_killed_run_is_cleared_by_the_next(work: Path, python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    into, wanted = work / "killed", recipe(work, "int4-gptq")
    started: list[int] = []
    popen = subprocess.Popen

    def remembered(*args: Any, **values: Any) -> Any:
        started.append((child := popen(*args, **values)).pid)
        return child

    monkeypatch.setattr(subprocess, "Popen", remembered)

    def kill(_: Progress) -> None:
        os.kill(started[-1], signal.SIGKILL)

    with pytest.raises(Stop) as stop:
        run(work, into, python, wanted, kill)
    assert [d.code for d in stop.value.report] == ["DC278"]
    assert not [path for path in into.iterdir() if not path.name.startswith(".")], "nothing under a final name"
    run(work, into, python, wanted, lambda _: None)
    assert [path.name for path in into.iterdir()] == ["model.safetensors"]
