"""Every kind of LoRA against peft's merge of it and the same in float64: at most one unit in the last place from it."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import tiny
from test_merge_peft import unit

from deployc.diagnostics import Stop

if find_spec("torch"):  # else the marker says whether that is a failure
    import torch

pytestmark = [pytest.mark.build, pytest.mark.usefixtures("inline")]

UNTIED = {"tied": False}
TWO = {"target_modules": ["q_proj", "down_proj"]}
EXPERTS = {"target_modules": ["q_proj"], "target_parameters": ["mlp.experts.gate_up_proj", "mlp.experts.down_proj"]}
CASES: dict[str, dict[str, Any]] = {
    "DoRA": {"use_dora": True},
    "DoRA, fp16": {"use_dora": True, "dtype": "float16"},
    "DoRA, rsLoRA": {"use_dora": True, "use_rslora": True, "alpha_pattern": {"q_proj": 3}},
    "Conv1D": {"family": "gpt2", "target_modules": ["c_attn", "c_proj"]},
    "Conv1D, square alone": {"family": "gpt2", "target_modules": ["attn.c_proj"]},
    "Conv1D and Linear": {"family": "gpt2", "tied": False, "target_modules": ["c_proj", "lm_head"]},
    "Conv1D, DoRA": {"family": "gpt2", "target_modules": ["c_attn", "c_proj"], "use_dora": True},
    "Conv1D, DoRA, fp16": {"family": "gpt2", "dtype": "float16", "target_modules": ["c_fc"], "use_dora": True},
    "all biases": {"family": "qwen2", "bias": "all", **TWO},
    "biases of LoRA layers": {"family": "qwen2", "bias": "lora_only", "target_modules": ["q_proj", "v_proj"]},
    "biases of pairs": {"family": "qwen2", "lora_bias": True, "target_modules": ["q_proj", "v_proj"]},
    "output trained whole": {**UNTIED, "modules_to_save": ["lm_head"]},
    "both embeddings trained whole": {**UNTIED, "modules_to_save": ["lm_head", "embed_tokens"], "dtype": "float16"},
    "norms and a block trained whole": {"modules_to_save": ["norm", "mlp"], "target_modules": ["q_proj"]},
    "embedding": {**UNTIED, "target_modules": ["q_proj", "embed_tokens"]},
    "embedding and output": {**UNTIED, "target_modules": ["lm_head", "embed_tokens"]},
    "embedding, DoRA": {**UNTIED, "target_modules": ["q_proj", "embed_tokens"], "use_dora": True},
    "tokens": {**UNTIED, "trainable_token_indices": [3, 1, 150], **TWO},
    "tokens of both": {**UNTIED, "trainable_token_indices": {"embed_tokens": [1, 2], "lm_head": [5]}, **TWO},
    "tokens, tied": {"trainable_token_indices": [3, 150], **TWO},
    "resized": {**UNTIED, "resized": 168, **TWO},
    "resized, trained whole": {**UNTIED, "resized": 168, **TWO, "modules_to_save": ["lm_head", "embed_tokens"]},
    "resized, output trained whole": {**UNTIED, "resized": 168, **TWO, "modules_to_save": ["lm_head"]},
    "resized, tied, trained whole": {"resized": 168, **TWO, "modules_to_save": ["embed_tokens"]},
    "fewer rows": {**UNTIED, "resized": 152, **TWO},
    "resized, tied": {"resized": 168, **TWO},
    "resized, new tokens": {**UNTIED, "resized": 168, "trainable_token_indices": [160, 161], **TWO},
    "resized, new tokens, tied": {"resized": 168, "trainable_token_indices": [160, 161], **TWO},
    "experts": {"family": "qwen3_moe", **UNTIED, **EXPERTS},
    "experts, rsLoRA, fp16": {"family": "qwen3_moe", **UNTIED, **EXPERTS, "dtype": "float16", "use_rslora": True,
                              "rank_pattern": {"experts.down_proj": 3}, "alpha_pattern": {"experts.gate_up_proj": 5}},
    "experts down alone": {"family": "qwen3_moe", **UNTIED, "target_modules": ["q_proj"],
                           "target_parameters": ["mlp.experts.down_proj"]},
    "experts up alone": {"family": "mixtral", **UNTIED, "target_modules": ["q_proj"],
                         "target_parameters": ["experts.gate_up_proj"]},
    "experts and router": {"family": "mixtral", **UNTIED, "target_modules": ["q_proj"],
                           "target_parameters": [*EXPERTS["target_parameters"], "mlp.gate.weight"]},
}  # fmt: skip
MODEL = ("family", "dtype", "tied")


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_merged_as_peft_merges(case: dict[str, Any], tmp_path: Path) -> None:
    settings = dict(case)
    base = tiny.model(tmp_path / "base", **{key: settings.pop(key) for key in MODEL if key in settings})
    adapter = tiny.adapter(tmp_path / "adapter", base, **settings)
    dtype = getattr(torch, case.get("dtype", "bfloat16"))
    artifact = tiny.built(tiny.recipe(base, [adapter], dtype=case.get("dtype", "bfloat16")), tmp_path / "store")
    before, ours = state(base, dtype), state(artifact.path, dtype)
    rows = case.get("resized", 0)
    peft, exact = (by_peft(base, adapter, kind, rows) for kind in (dtype, torch.float64))
    assert ours.keys() == exact.keys() == before.keys()
    changed = [name for name in exact if exact[name].shape != before[name].shape
               or not torch.equal(exact[name], before[name].double())]  # fmt: skip
    assert changed
    for name in ours:
        if name in changed:
            as_near_as_peft(name, before[name].double(), ours[name].double(), peft[name].double(), exact[name], dtype)
        else:
            assert torch.equal(ours[name], before[name]), name


def as_near_as_peft(name: str, before: Any, ours: Any, peft: Any, exact: Any, dtype: Any) -> None:
    """One unit from peft at the size of what was summed; half a unit, and what float32 loses, from the exact value."""
    size = exact.abs()
    if before.shape == exact.shape:
        size = torch.maximum(size, torch.maximum(before.abs(), (exact - before).abs()))
    assert bool(((ours - peft).abs() <= 1.001 * unit(size, dtype)).all()) or peft_is_worse(ours, peft, exact), name
    lost = 2.0**-24 * 16 * (size + size.mean())
    error = (ours - exact).abs()
    assert bool((error <= unit(exact.abs() + lost, dtype) / 2 + lost).all()), name
    assert bool((error <= (peft - exact).abs() + 2 * lost).all()), name


def peft_is_worse(ours: Any, peft: Any, exact: Any) -> bool:
    """DoRA in 16 bit takes its norms of values that were rounded before: peft is then further than a unit off."""
    apart = (ours - peft).abs() > 0
    return bool(((peft - exact).abs() >= (ours - exact).abs())[apart].all())


def state(folder: Path, dtype: Any) -> dict[str, Any]:
    from transformers import AutoModelForCausalLM

    found: dict[str, Any] = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).state_dict()
    return found


def by_peft(base: Path, adapter: Path, dtype: Any, rows: int) -> dict[str, Any]:
    """As people do it: load, resize, wrap, merge."""
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    plain = AutoModelForCausalLM.from_pretrained(base, dtype=dtype)
    if rows:
        plain.resize_token_embeddings(rows)
    found: dict[str, Any] = PeftModel.from_pretrained(plain, adapter).merge_and_unload().state_dict()
    return found


def test_config_follows_the_vocabulary(tmp_path: Path) -> None:
    base = tiny.model(tmp_path / "base", tied=False)
    adapter = tiny.adapter(tmp_path / "adapter", base, resized=168)
    artifact = tiny.built(tiny.recipe(base, [adapter]), tmp_path / "store")
    before, after = (json.loads((folder / "config.json").read_text()) for folder in (base, artifact.path))
    assert after == before | {"vocab_size": 168}
    (said,) = [d for d in artifact.notes if d.code == "DC243"]
    assert "model.embed_tokens.weight becomes [168, 64], from [160, 64]" in said.detail


@pytest.mark.parametrize("kind", ["plain", "tied pairs", "resized"])
def test_a_pickled_adapter_gives_the_same_bytes(kind: str, tmp_path: Path) -> None:
    kinds: dict[str, dict[str, Any]] = {
        "plain": {"use_dora": True},
        "tied pairs": {"target_modules": ["embed_tokens"], "ensure_weight_tying": True},
        "resized": {"resized": 168},
    }
    base = tiny.model(tmp_path / "base")
    adapter = tiny.adapter(tmp_path / "adapter", base, **kinds[kind])
    plain = tiny.built(tiny.recipe(base, [adapter]), tmp_path / "store")
    weights = tiny.weights(adapter)
    (adapter / "adapter_model.safetensors").unlink()
    torch.save(weights, adapter / "adapter_model.bin")
    artifact = tiny.built(tiny.recipe(base, [adapter]), tmp_path / "store")
    assert [d.code for d in artifact.notes if d.code not in ("DC243",)].count("DC233") == 1
    assert artifact.path != plain.path
    for name in ("model.safetensors", "config.json"):
        assert (artifact.path / name).read_bytes() == (plain.path / name).read_bytes()


def test_experts_one_by_one(tmp_path: Path) -> None:
    """As adapters were saved before transformers 5 joined experts: a pair for each."""
    from safetensors.torch import save_file

    base = tiny.model(tmp_path / "base", family="qwen3_moe", tied=False)
    adapter = tiny.adapter(tmp_path / "adapter", base, target_modules=["q_proj"])
    generator = torch.Generator().manual_seed(3)
    weights = tiny.weights(adapter)
    for name, values in tiny.weights(base).items():
        if ".experts." in name:
            module = f"base_model.model.{name.removesuffix('.weight')}"
            weights[f"{module}.lora_A.weight"] = torch.randn(8, values.shape[1], generator=generator) * 0.3
            weights[f"{module}.lora_B.weight"] = torch.randn(values.shape[0], 8, generator=generator) * 0.05
    save_file(weights, adapter / "adapter_model.safetensors", {"format": "pt"})
    tiny.edited(adapter / "adapter_config.json", {"target_modules": ["q_proj", "gate_proj", "up_proj", "down_proj"]})
    artifact = tiny.built(tiny.recipe(base, [adapter]), tmp_path / "store")
    ours, before = (state(folder, torch.bfloat16) for folder in (artifact.path, base))
    exact = by_peft(base, adapter, torch.float64, 0)
    moved = [name for name in exact if not torch.equal(exact[name], before[name].double())]
    assert sum("experts" in name for name in moved) == 4
    for name, values in exact.items():
        lost = 2.0**-24 * 16 * (values.abs() + values.abs().mean())
        error = (ours[name].double() - values).abs()
        assert bool((error <= unit(values.abs() + lost, torch.bfloat16) / 2 + lost).all()), name


@pytest.mark.parametrize("kind", ["whole", "tokens", "resized", "DoRA", "bias"])
def test_what_changes_nothing_is_refused(kind: str, tmp_path: Path) -> None:
    """Every B is zero and what is replaced is the model's own; resized is a change of itself."""
    kinds: dict[str, dict[str, Any]] = {
        "whole": {"modules_to_save": ["lm_head"]}, "tokens": {"trainable_token_indices": [1, 2]},
        "resized": {"resized": 168}, "DoRA": {"use_dora": True}, "bias": {"bias": "all", **TWO},
    }  # fmt: skip
    base = tiny.model(tmp_path / "base", family="qwen2", tied=False)
    adapter = tiny.adapter(tmp_path / "adapter", base, **kinds[kind])
    own, weights = tiny.weights(base), tiny.weights(adapter)
    for name, values in weights.items():
        if ".lora_B." in name:
            values.zero_()
        elif "trainable_tokens" in name:
            values.copy_(own["model.embed_tokens.weight"][1:3])
        elif ".lora_" not in name and kind != "resized":
            plain = name.removeprefix("base_model.model.").replace(".base_layer", "")
            values.copy_(own[plain])
    from safetensors.torch import save_file

    save_file(weights, adapter / "adapter_model.safetensors", {"format": "pt"})
    if kind == "resized":
        assert tiny.built(tiny.recipe(base, [adapter]), tmp_path / "store").path.is_dir()
        return
    with pytest.raises(Stop) as stopped:
        tiny.built(tiny.recipe(base, [adapter]), tmp_path / "store")
    assert [d.code for d in stopped.value.report.errors] == ["DC239"]


def test_infinity_in_a_whole_tensor_is_named(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    base = tiny.model(tmp_path / "base", tied=False)
    adapter = tiny.adapter(tmp_path / "adapter", base, modules_to_save=["lm_head"])
    weights = tiny.weights(adapter)
    weights["base_model.model.lm_head.weight"][159, 63] = float("inf")
    save_file(weights, adapter / "adapter_model.safetensors", {"format": "pt"})
    with pytest.raises(Stop) as stopped:
        tiny.built(tiny.recipe(base, [adapter]), tmp_path / "store")
    (error,) = stopped.value.report.errors
    assert (error.code, "base_model.model.lm_head.weight" in error.detail) == ("DC274", True)
