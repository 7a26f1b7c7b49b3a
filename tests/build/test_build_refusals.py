"""What must not be built: each fault one diagnostic, nothing left in the store, and what was there untouched."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import adapted
import pytest
from adapted import LLAMA, Small, overwrite

from deployc.diagnostics import Stop
from deployc.types.bundle import Recipe
from deployc.types.facts import DTYPE_BYTES
from deployc.types.groups import Tensor

pytestmark = [pytest.mark.build, pytest.mark.usefixtures("inline")]

B = "base_model.model.model.layers.1.mlp.down_proj.lora_B.weight"
A = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"
NAN, INFINITY = struct.pack("<f", float("nan")), struct.pack("<f", float("-inf"))


def refused(small: Small, recipe: Recipe | None = None) -> list[tuple[str, str]]:
    with pytest.raises(Stop) as stop:
        small.build(recipe)
    left = list(small.store.iterdir()) if small.store.exists() else []
    assert [p for p in left if not p.name.startswith(".building-")] == []
    assert [p for folder in left for p in folder.rglob("*") if p.suffix != ".journal" and p.name != ".journal"] == []
    return [(d.code, d.detail) for d in stop.value.report.errors]


def put(path: Path, **change: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | change))


@pytest.mark.parametrize(("tensor", "value"), [(A, NAN), (B, INFINITY)])
def test_not_a_number_in_the_adapter(small: Small, tensor: str, value: bytes) -> None:
    overwrite(small.root / "qa/adapter_model.safetensors", tensor, value)
    ((code, detail),) = refused(small)
    assert code == "DC274"
    assert tensor in detail


def test_an_adapter_that_was_never_trained(small: Small) -> None:
    for module, (out, _) in small.modules().items():
        overwrite(
            small.root / "qa/adapter_model.safetensors", f"base_model.model.{module}.lora_B.weight", bytes(out * 8 * 4)
        )
    ((code, detail),) = refused(small)
    assert code == "DC239"
    assert "lora_B" in detail


def test_a_weight_of_zero_changes_nothing(small: Small) -> None:
    small.adapters["qa"] = 0.0
    assert [code for code, _ in refused(small)] == ["DC239"]


def test_a_base_that_is_not_finite_is_named(small: Small) -> None:
    name = "model.layers.0.self_attn.q_proj.weight"
    for shard in (small.root / "model").glob("*.safetensors"):
        try:
            overwrite(shard, name, b"\xc0\x7f")
        except ValueError:
            continue
    ((code, detail),) = refused(small)
    assert (code, name in detail, "base" in detail) == ("DC275", True, True)


def test_too_large_for_float16(tmp_path: Path) -> None:
    small = Small(tmp_path).model().adapter("qa", weight=1e7)
    ((code, detail),) = refused(small, small.recipe(dtype="float16"))
    assert code == "DC275"
    assert "F16" in detail


def truncated(small: Small) -> None:
    path = small.root / "qa/adapter_model.safetensors"
    os.truncate(path, path.stat().st_size - 8)


def truncated_model(small: Small) -> None:
    path = next((small.root / "model").glob("*.safetensors"))
    os.truncate(path, path.stat().st_size - 8)


def pickle_only(small: Small) -> None:
    (small.root / "qa/adapter_model.safetensors").rename(small.root / "qa/adapter_model.bin")


def rank(small: Small) -> None:
    put(small.root / "qa/adapter_config.json", r=4)


def no_alpha(small: Small) -> None:
    put(small.root / "qa/adapter_config.json", lora_alpha=-1)


def dora(small: Small) -> None:
    put(small.root / "qa/adapter_config.json", use_dora=True)


def other_base(small: Small) -> None:
    for path in (small.root / "model").iterdir():
        path.unlink()
    (small.root / "model").rmdir()
    small.model(config=LLAMA | {"num_hidden_layers": 1})


def other_width(small: Small) -> None:
    for path in (small.root / "model").iterdir():
        path.unlink()
    (small.root / "model").rmdir()
    small.model(config=LLAMA | {"intermediate_size": 128})


def quantized(small: Small) -> None:
    put(small.root / "model/config.json", quantization_config={"quant_method": "gptq"})


def no_weights(small: Small) -> None:
    for path in (small.root / "model").glob("*model*"):
        path.unlink()


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (truncated, "DC204"), (truncated_model, "DC204"), (pickle_only, "DC232"), (rank, "DC237"),
        (no_alpha, "DC230"), (dora, "DC240"),
        (other_base, "DC235"), (other_width, "DC236"), (quantized, "DC276"), (no_weights, "DC285"),
    ],
)  # fmt: skip
def test_refused_before_a_weight_is_read(small: Small, spoil: Callable[[Small], None], code: str) -> None:
    spoil(small)
    assert [found for found, _ in refused(small)] == [code]


@pytest.mark.parametrize("dtype", ["F8_E4M3", "I8", "I64", "BOOL"])
@pytest.mark.parametrize("side", ["model", "adapter"])
def test_what_is_no_plain_number_is_not_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str, side: str
) -> None:
    real, known = adapted.save, adapted.values
    stems = "_proj.weight" if side == "model" else "lora_A.weight"

    def save(path: Path, tensors: list[Tensor], seed: int) -> None:
        real(path, [(n, dtype if n.endswith(stems) else d, shape) for n, d, shape in tensors], seed)

    def values(kind: str, count: int, *how: Any) -> bytes:
        return bytes([1]) * round(count * DTYPE_BYTES[dtype]) if kind == dtype else known(kind, count, *how)

    monkeypatch.setattr(adapted, "save", save)
    monkeypatch.setattr(adapted, "values", values)
    ((code, detail),) = refused(Small(tmp_path).model().adapter("qa"))
    assert (code, dtype in detail, "proj" in detail) == ("DC288", True, True)


def test_all_that_is_wrong_is_said_at_once(small: Small) -> None:
    small.adapter("other", use_dora=True)
    truncated(small)
    quantized(small)
    assert {code for code, _ in refused(small)} >= {"DC204"}
    (small.root / "qa/adapter_model.safetensors").unlink()
    pickle = small.root / "qa/adapter_model.bin"
    pickle.write_bytes(b"x")
    assert [code for code, _ in refused(small)] == ["DC232"]


@pytest.mark.parametrize("file", ["qa/adapter_model.safetensors", "qa/adapter_config.json", "model/tokenizer.json"])
def test_an_input_that_changed_since_the_recipe(small: Small, file: str) -> None:
    recipe = small.recipe()
    content = (small.root / file).read_bytes()
    (small.root / file).write_bytes(content[:-1] + (b" }" if file.endswith(".json") else bytes([content[-1] ^ 1])))
    ((code, detail),) = refused(small, recipe)
    assert code == "DC277"
    assert file.partition("/")[2] in detail


def test_a_model_that_was_trained_further(small: Small) -> None:
    recipe = small.recipe()
    shard = next((small.root / "model").glob("*.safetensors"))
    content = shard.read_bytes()
    shard.write_bytes(content[:-2] + bytes(b ^ 1 for b in content[-2:]))
    assert [code for code, _ in refused(small, recipe)] == ["DC277"]


def test_hand_written_facts_pin_nothing(small: Small) -> None:
    from dataclasses import replace

    assert [code for code, _ in refused(small, replace(small.recipe(), model_files={}))] == ["DC287"]


def test_a_template_of_the_adapter_is_taken_and_told(small: Small) -> None:
    (small.root / "qa/tokenizer.json").write_bytes((small.root / "model/tokenizer.json").read_bytes() + b"\n")
    assert small.build().notes == ()
    template = "{% for message in messages %}[{{ message.content }}]</s>{% endfor %}"
    (small.root / "qa/chat_template.jinja").write_text(template)
    artifact = small.build()
    (note,) = artifact.notes
    assert (note.code, "chat template" in note.detail) == ("DC279", True)
    assert (artifact.path / "chat_template.jinja").read_text() == template
    assert {"qa/chat_template.jinja", "qa/tokenizer.json", "model/tokenizer.json"} <= artifact.manifest.inputs.keys()


def test_a_broken_template_is_refused_before_a_weight_is_read(small: Small) -> None:
    (small.root / "qa/chat_template.jinja").write_text("{% for message in messages %}")
    ((code, detail),) = refused(small)
    assert (code, "line 1" in detail) == ("DC297", True)
