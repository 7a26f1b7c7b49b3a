"""Merged weights against peft's and against float64: at most one unit in the last place from peft, never worse."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import tiny

if find_spec("torch"):  # else the marker says whether that is a failure
    import torch

pytestmark = [pytest.mark.build, pytest.mark.usefixtures("inline")]

CASES: dict[str, dict[str, Any]] = {
    "bf16": {},
    "fp16": {"dtype": "float16"},
    "qwen2, untied": {"family": "qwen2", "tied": False},
    "large change": {"size": 1.5},
    "rank 1, alpha 1": {"r": 1, "lora_alpha": 1},
    "rank 33, alpha 7": {"r": 33, "lora_alpha": 7},
    "rsLoRA": {"use_rslora": True},
    "two modules": {"target_modules": ["q_proj", "down_proj"]},
    "one layer": {"layers_to_transform": [1]},
    "patterns": {"rank_pattern": {"q_proj": 4, "layers.1.mlp.up_proj": 16},
                 "alpha_pattern": {"v_proj": 3, r"layers\.0\..*o_proj": 64}},
    "patterns, rsLoRA": {"rank_pattern": {"k_proj": 2}, "alpha_pattern": {"k_proj": 5}, "use_rslora": True},
    "end of a word": {"alpha_pattern": {"proj": 99}, "rank_pattern": {"up": 2}},
    "adapter in bf16": {"adapter_dtype": "bfloat16"},
    "adapter in fp16": {"adapter_dtype": "float16"},
}  # fmt: skip
MODEL = ("family", "dtype", "tied")


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_merged_as_peft_merges(case: dict[str, Any], tmp_path: Path) -> None:
    settings = dict(case)
    base = tiny.model(tmp_path / "base", **{key: settings.pop(key) for key in MODEL if key in settings})
    adapter = tiny.adapter(tmp_path / "adapter", base, dtype=settings.pop("adapter_dtype", "float32"), **settings)
    name = case.get("dtype", "bfloat16")
    artifact = tiny.built(tiny.recipe(base, [adapter], dtype=name), tmp_path / "store")
    config = json.loads((adapter / "adapter_config.json").read_text())
    pairs, before, ours = tiny.weights(adapter), tiny.weights(base), tiny.weights(artifact.path)
    dtype = getattr(torch, name)
    only_what_the_adapter_names_changed(before, ours, set(changes(pairs, config)), dtype)
    peft = by_peft(base, adapter, dtype)
    for tensor, delta in changes(pairs, config).items():
        lost = sum_error(tensor.removesuffix(".weight"), before[tensor], pairs, config)
        as_near_as_peft(before[tensor].double(), delta, ours[tensor].double(), peft[tensor].double(), lost, dtype)


def only_what_the_adapter_names_changed(
    before: dict[str, Any], ours: dict[str, Any], changed: set[str], dtype: Any
) -> None:
    assert set(ours) == set(before)
    assert changed and changed < set(before)
    for name in before:
        assert ours[name].dtype == dtype
        assert torch.equal(ours[name], before[name]) == (name not in changed), name


def as_near_as_peft(before: Any, delta: Any, ours: Any, peft: Any, lost: Any, dtype: Any) -> None:
    """One unit from peft; from the exact sum half a unit for the one rounding, and what a float32 sum may lose."""
    exact = before + delta
    size = torch.stack([before.abs(), delta.abs(), exact.abs()]).amax(0)
    assert bool(((ours - peft).abs() <= unit(size, dtype)).all())
    error = (ours - exact).abs()
    assert bool((error <= unit(exact.abs() + lost, dtype) / 2 + lost).all())
    assert bool((error <= (peft - exact).abs() + 2 * lost).all())


def test_several_adapters_are_a_weighted_sum(tmp_path: Path) -> None:
    base = tiny.model(tmp_path / "base")
    adapters = [
        tiny.adapter(tmp_path / "one", base, seed=1),
        tiny.adapter(tmp_path / "two", base, seed=2, r=4, target_modules=["q_proj", "v_proj"], use_rslora=True),
        tiny.adapter(tmp_path / "three", base, seed=3, rank_pattern={"q_proj": 2}),
    ]
    factors = {"one": 0.7, "two": -0.4, "three": 1.0}
    artifact = tiny.built(tiny.recipe(base, adapters, factors=factors), tmp_path / "store")
    before, ours = tiny.weights(base), tiny.weights(artifact.path)
    total: dict[str, Any] = {}
    for path in adapters:
        config = json.loads((path / "adapter_config.json").read_text())
        for name, delta in changes(tiny.weights(path), config).items():
            total[name] = total.get(name, 0) + factors[path.name] * delta
    for name, delta in total.items():
        exact = before[name].double() + delta
        size = torch.maximum(exact.abs(), before[name].double().abs()) + delta.abs()
        assert bool(((ours[name].double() - exact).abs() <= unit(exact, torch.bfloat16) / 2 + size * 2e-5).all()), name


def test_the_order_of_files_and_the_shards_stay(tmp_path: Path) -> None:
    base = tiny.model(tmp_path / "base", tied=False, shard="30KB")
    adapter = tiny.adapter(tmp_path / "adapter", base)
    artifact = tiny.built(tiny.recipe(base, [adapter]), tmp_path / "store")
    index = "model.safetensors.index.json"
    before, after = (json.loads((folder / index).read_text()) for folder in (base, artifact.path))
    assert len(set(before["weight_map"].values())) > 3
    assert after["weight_map"] == before["weight_map"]
    assert after["metadata"]["total_size"] == before["metadata"]["total_size"]


def test_a_merged_model_answers_as_peft_does(tmp_path: Path) -> None:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    base = tiny.model(tmp_path / "base", dtype="float16", shard="30KB")
    adapter = tiny.adapter(tmp_path / "adapter", base)
    artifact = tiny.built(tiny.recipe(base, [adapter], dtype="float16"), tmp_path / "store")
    tokens = torch.arange(40).reshape(2, 20)
    plain = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    with torch.no_grad():
        before = plain(tokens).logits
        wanted = PeftModel.from_pretrained(plain, adapter)(tokens).logits
        ours = AutoModelForCausalLM.from_pretrained(artifact.path, dtype=torch.float32)(tokens).logits
    assert float((ours - wanted).abs().max()) < 0.01 * float((before - wanted).abs().max())


def by_peft(base: Path, adapter: Path, dtype: Any) -> dict[str, Any]:
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    plain = AutoModelForCausalLM.from_pretrained(base, dtype=dtype)
    state: dict[str, Any] = PeftModel.from_pretrained(plain, adapter).merge_and_unload().state_dict()
    return state


def changes(pairs: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """Base tensor -> scale · B A in float64, from the file alone."""
    return {
        f"{module}.weight": scale(module, a.shape[0], config) * (b.double() @ a.double())
        for module, a, b in halves(pairs)
    }


def halves(pairs: dict[str, Any]) -> Iterable[tuple[str, Any, Any]]:
    for name, a in pairs.items():
        if name.endswith(".lora_A.weight"):
            module = name.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
            yield module, a, pairs[name.replace("lora_A", "lora_B")]


def scale(module: str, rank: int, config: dict[str, Any]) -> float:
    """The rank is that of the tensor; the patterns of these tests are plain ends of names, or one expression."""
    ends = {"q_proj", "k_proj", "v_proj"} & set(config["alpha_pattern"])
    alpha = next((config["alpha_pattern"][end] for end in ends if module.endswith(end)), config["lora_alpha"])
    if module.endswith("layers.0.self_attn.o_proj"):
        alpha = config["alpha_pattern"].get(r"layers\.0\..*o_proj", alpha)
    return float(alpha / (math.sqrt(rank) if config["use_rslora"] else rank))


def sum_error(module: str, before: Any, pairs: dict[str, Any], config: dict[str, Any]) -> Any:
    """What float32 may lose in W + s · Σ b·a over r terms: (r + 3) roundings of the sum of magnitudes, at most."""
    a = pairs[f"base_model.model.{module}.lora_A.weight"].double().abs()
    b = pairs[f"base_model.model.{module}.lora_B.weight"].double().abs()
    total = scale(module, a.shape[0], config) * (b @ a) + before.double().abs()
    return (a.shape[0] + 3) * 2.0**-24 * total


def unit(size: Any, dtype: Any) -> Any:
    """The distance between neighbouring numbers of the dtype at a magnitude, in float64."""
    info = torch.finfo(dtype)
    exponent = torch.floor(torch.log2(torch.clamp(size.abs(), min=info.smallest_normal)))
    return torch.exp2(exponent) * info.eps
