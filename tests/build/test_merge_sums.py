"""Several adapters as a weighted sum, of every kind; what cannot be summed is refused; convolutions."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import tiny
from test_merge_kinds import state
from test_merge_peft import unit

from deployc.diagnostics import Stop
from deployc.rules.adapter_shapes.parts import parts
from deployc.types.architecture import Architecture

if find_spec("torch"):  # else the marker says whether that is a failure
    import torch

pytestmark = [pytest.mark.build, pytest.mark.usefixtures("inline")]

KINDS: dict[str, dict[str, Any]] = {
    "dora": {"use_dora": True},
    "whole": {"target_modules": ["q_proj"], "modules_to_save": ["lm_head", "norm"]},
    "tokens": {"target_modules": ["down_proj"], "trainable_token_indices": [1, 2]},
    "embedding": {"target_modules": ["embed_tokens", "v_proj"]},
    "bias": {"target_modules": ["q_proj", "k_proj"], "bias": "lora_only"},
    "pair's bias": {"target_modules": ["q_proj"], "lora_bias": True},
}
FACTORS = {"dora": 0.7, "whole": 0.5, "tokens": 1.0, "embedding": -0.4, "bias": 0.25, "pair's bias": 2.0}


def test_every_kind_at_once(tmp_path: Path) -> None:
    base = tiny.model(tmp_path / "base", family="qwen2", tied=False)
    adapters = [tiny.adapter(tmp_path / name, base, seed=n, **k) for n, (name, k) in enumerate(KINDS.items())]
    artifact = tiny.built(tiny.recipe(base, adapters, factors=FACTORS), tmp_path / "store")
    ours, before = state(artifact.path, torch.bfloat16), state(base, torch.float64)
    exact = {name: values.clone() for name, values in before.items()}
    for path in adapters:
        for name, values in alone(base, path).items():
            exact[name] += FACTORS[path.name] * (values - before[name])
    for name, values in exact.items():
        lost = 2e-5 * (values.abs() + before[name].abs() + values.abs().mean())
        assert bool(
            ((ours[name].double() - values).abs() <= unit(values.abs() + lost, torch.bfloat16) / 2 + lost).all()
        )
    assert sum(not torch.equal(exact[name], before[name]) for name in exact) > 20


@pytest.mark.parametrize("factor", [1.0, 0.25])
def test_one_replaced_tensor_of_two_adapters_stands_there_once(factor: float, tmp_path: Path) -> None:
    base = tiny.model(tmp_path / "base", tied=False)
    one, two = (
        tiny.adapter(tmp_path / name, base, resized=168, seed=n, target_modules=[on])
        for n, (name, on) in enumerate({"one": "q_proj", "two": "v_proj"}.items())
    )
    same_embeddings(one, two)
    factors = {"one": factor, "two": 0.5}
    artifact = tiny.built(tiny.recipe(base, [one, two], factors=factors), tmp_path / "store")
    found, its = tiny.weights(artifact.path), tiny.weights(one)
    for name in ("lm_head.weight", "model.embed_tokens.weight"):
        assert torch.equal(found[name], its[f"base_model.model.{name}"].bfloat16())


def test_rows_that_the_model_lacks_are_the_adapters(tmp_path: Path) -> None:
    base = tiny.model(tmp_path / "base", tied=False)
    adapter = tiny.adapter(tmp_path / "one", base, resized=168, target_modules=["q_proj"])
    weights = tiny.weights(adapter)
    weights["base_model.model.lm_head.weight"][:160] += 1
    saved(adapter, weights)
    artifact = tiny.built(tiny.recipe(base, [adapter], factors={"one": 0.5}), tmp_path / "store")
    found, before = (tiny.weights(folder)["lm_head.weight"] for folder in (artifact.path, base))
    its = weights["base_model.model.lm_head.weight"]
    assert torch.equal(found[160:], its[160:].bfloat16())
    assert float((found[:160].double() - (before.double() + its[:160].double()) / 2).abs().max()) < 0.01


@pytest.mark.parametrize(
    ("one", "two", "says"),
    [
        ({"modules_to_save": ["lm_head"]}, {"modules_to_save": ["lm_head"]}, "by different values"),
        ({"resized": 168}, {"resized": 176}, "[168, 64] and [176, 64]"),
        ({"resized": 168}, {"target_modules": ["embed_tokens"]}, "[168, 64] and [160, 64]"),
        ({"trainable_token_indices": [1, 2]}, {"trainable_token_indices": [2, 3]}, "some of the same rows"),
        ({"trainable_token_indices": [1, 2]}, {"trainable_token_indices": [1, 2]}, "by different values"),
    ],
)  # fmt: skip
def test_two_that_disagree(one: dict[str, Any], two: dict[str, Any], says: str, tmp_path: Path) -> None:
    base = tiny.model(tmp_path / "base", tied=False)
    both = [
        tiny.adapter(tmp_path / name, base, seed=n, **({"target_modules": ["q_proj"]} | settings))
        for n, (name, settings) in enumerate({"one": one, "two": two}.items())
    ]
    with pytest.raises(Stop) as stopped:
        tiny.built(tiny.recipe(base, both), tmp_path / "store")
    (error,) = stopped.value.report.errors
    assert (error.code, says in error.detail, "one and two" in error.detail) == ("DC241", True, True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factor", [1e39, -1e300])
def test_a_factor_past_the_range_of_float32_gives_no_finite_weights(kind: str, factor: float, tmp_path: Path) -> None:
    base = tiny.model(tmp_path / "base", family="qwen2", tied=False)
    adapter = tiny.adapter(tmp_path / kind, base, **KINDS[kind])
    with pytest.raises(Stop) as stopped:
        tiny.built(tiny.recipe(base, [adapter], factors={kind: factor}), tmp_path / "store")
    (error,) = stopped.value.report.errors
    assert error.code == "DC275" and "smaller weight in adapters" in error.fix


def test_an_output_that_was_not_saved_with_its_embedding(tmp_path: Path) -> None:
    base = tiny.model(tmp_path / "base", tied=False)
    adapter = tiny.adapter(tmp_path / "qa", base, resized=168, target_modules=["q_proj", "embed_tokens"])
    with pytest.raises(Stop) as stopped:
        tiny.built(tiny.recipe(base, [adapter]), tmp_path / "store")
    (error,) = stopped.value.report.errors
    assert (error.code, "lm_head.weight 160" in error.detail) == ("DC236", True)


@pytest.mark.parametrize("name", ["Conv1d", "Conv2d", "Conv3d", "pointwise"])
def test_convolutions(name: str, tmp_path: Path) -> None:
    from peft import LoraConfig, get_peft_model

    from deployc.build.merge.adapters import Adapter, Adapters

    torch.manual_seed(1)
    conv = torch.nn.Conv2d(6, 10, 1) if name == "pointwise" else getattr(torch.nn, name)(6, 10, 3)
    before = conv.weight.detach().clone()
    whole = get_peft_model(
        torch.nn.ModuleDict({"conv": conv}), LoraConfig(r=4, target_modules=["conv"], init_lora_weights=False)
    )
    whole.save_pretrained(tmp_path)
    weights = tiny.weights(tmp_path)
    shapes = {tensor: tuple(values.shape) for tensor, values in weights.items()}
    small = Architecture("X", "x", 1, 8, 8, "gqa", 1, 1, 8, 16, 8, False, "float32", ())
    found = parts({"conv.weight": tuple(before.shape)}, small, {"r": 4, "lora_alpha": 8}, shapes)
    assert not found.wrong
    with Adapter("qa", tmp_path / "adapter_model.safetensors", 1.0, found.parts) as adapter:
        ours = Adapters([adapter], lambda _: None).of("conv.weight").rows(before[2:7].clone(), 2, 7)
    wanted = whole.merge_and_unload()["conv"].weight.detach()[2:7]
    assert float((ours - wanted).abs().max()) < 1e-6
    assert float((ours - before[2:7]).abs().max()) > 0.01


def alone(base: Path, adapter: Path) -> dict[str, Any]:
    """What peft makes of one adapter, in float64."""
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    plain = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float64)
    found: dict[str, Any] = PeftModel.from_pretrained(plain, adapter).merge_and_unload().state_dict()
    return found


def same_embeddings(one: Path, two: Path) -> None:
    """Adapters that were trained on one resized model hold the same embeddings."""
    first, second = tiny.weights(one), tiny.weights(two)
    saved(two, second | {name: values for name, values in first.items() if ".lora_" not in name})


def saved(adapter: Path, weights: dict[str, Any]) -> None:
    from safetensors.torch import save_file

    save_file(weights, adapter / "adapter_model.safetensors", {"format": "pt"})
