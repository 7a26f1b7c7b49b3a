"""Quantized artifacts of merged models: which layers are taken, how they are stored, and who reads them again."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import tiny
from reference import FORMATS, compressed, decompressed, described, same, scheme

from deployc.build.quantize import layers
from deployc.diagnostics import Stop
from deployc.rules import ignored
from deployc.types.bundle import Recipe
from deployc.types.groups import Tensor
from deployc.types.manifest import Artifact

pytestmark = [pytest.mark.build, pytest.mark.usefixtures("inline")]
TAKEN = 14
"""Seven matrices in each of two layers."""


def made(folder: Path, base: Path, weights: str, *adapters: Path, **more: Any) -> Artifact:
    group = 32 if weights == "int4-rtn" else 0
    return tiny.built(tiny.recipe(base, adapters, weights=weights, group_size=group, **more), folder / "store")


def layer(tensors: dict[str, Any], module: str) -> dict[str, Any]:
    """Parameter -> tensor of one module, biases apart."""
    prefix = f"{module}."
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def linears(folder: Path) -> list[str]:
    return sorted(name.removesuffix(".weight") for name in tiny.weights(folder) if name.endswith("_proj.weight"))


def written(artifact: Artifact) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((artifact.path / "config.json").read_text())["quantization_config"]
    return found


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("weights", FORMATS)
def test_what_is_stored_is_the_merged_model_quantized_by_the_library(weights: str, dtype: str, tmp_path: Path) -> None:
    """The merge is rounded to 16 bit first, as it would be saved; all else keeps the merged values."""
    base = tiny.model(tmp_path / "base", dtype=dtype, tied=False, shard="30KB")
    adapter = tiny.adapter(tmp_path / "adapter", base, size=0.2)
    merged = tiny.weights(made(tmp_path, base, "none", adapter, dtype=dtype).path)
    artifact = made(tmp_path, base, weights, adapter, dtype=dtype)
    ours, taken = tiny.weights(artifact.path), linears(base)
    assert len(taken) == TAKEN
    for module in taken:
        theirs, stored = compressed(weights, merged[f"{module}.weight"]), layer(ours, module)
        assert stored.keys() == theirs.keys()
        assert all(same(stored[name], theirs[name]) for name in theirs), module
    rest = {name for name in ours if name.rpartition(".")[0] not in taken}
    assert rest == {name for name in merged if name.rpartition(".")[0] not in taken}
    assert all(same(ours[name], merged[name]) for name in rest)
    index = json.loads((artifact.path / "model.safetensors.index.json").read_text())
    assert set(index["weight_map"]) == set(ours)
    assert index["metadata"]["total_size"] == sum(tensor.nbytes for tensor in ours.values())


@pytest.mark.parametrize("weights", FORMATS)
def test_config_is_what_the_library_understands(weights: str, tmp_path: Path) -> None:
    """Nothing in it that the library of one version alone knows; what it says is the scheme."""
    from compressed_tensors.quantization import QuantizationConfig, QuantizationScheme

    config = written(made(tmp_path, tiny.model(tmp_path / "base"), weights))
    read = QuantizationConfig.model_validate(config)
    group = read.config_groups["group_0"]
    assert isinstance(group, QuantizationScheme)
    wanted = QuantizationScheme(**described(weights), format=config["format"])
    assert group.model_dump(mode="json") == wanted.model_dump(mode="json")
    assert (read.quantization_status, read.ignore) == ("compressed", ["lm_head"])
    newer = {"actorder", "block_structure", "observer", "observer_kwargs", "scale_dtype", "zp_dtype"}
    assert not newer & set(config["config_groups"]["group_0"]["weights"])
    assert not {"version", "sparsity_config", "transform_config", "moe_sparsity_config"} & set(config)


@pytest.mark.parametrize("weights", FORMATS)
def test_transformers_reads_it(weights: str, tmp_path: Path) -> None:
    """The weights that it computes with are those of the library's decompressor."""
    import torch
    from transformers import AutoModelForCausalLM

    base = tiny.model(tmp_path / "base", tied=False)
    artifact = made(tmp_path, base, weights)
    loaded = AutoModelForCausalLM.from_pretrained(artifact.path, dtype=torch.bfloat16)
    plain = AutoModelForCausalLM.from_pretrained(base, dtype=torch.bfloat16)
    ids = torch.tensor([[1, 5, 9, 20]])
    with torch.inference_mode():
        ours, exact = loaded(ids).logits.float(), plain(ids).logits.float()
    stored = tiny.weights(artifact.path)
    for module in linears(base):
        assert same(loaded.get_submodule(module).weight.data, decompressed(weights, layer(stored, module))), module
    assert not torch.equal(ours, exact)
    error = float((ours - exact).norm() / exact.norm())
    assert error < (0.3 if weights == "int4-rtn" else 0.06)


def test_experts_in_matrices_of_their_own_are_taken_and_routers_are_not(tmp_path: Path) -> None:
    base = tiny.mixture(tmp_path / "base")
    artifact = made(tmp_path, base, "fp8")
    ours, before = tiny.weights(artifact.path), tiny.weights(base)
    router = "model.layers.0.mlp.gate"
    assert written(artifact)["ignore"] == ["lm_head", router]
    assert same(ours[f"{router}.weight"], before[f"{router}.weight"])
    experts = [module for module in linears(base) if ".experts." in module]
    assert len(experts) == 3 * 4
    for module in experts:
        assert same(ours[f"{module}.weight"], compressed("fp8", before[f"{module}.weight"])["weight"])


def test_layers_that_are_ignored_stay_and_are_named(tmp_path: Path) -> None:
    base = tiny.model(tmp_path / "base")
    artifact = made(tmp_path, base, "fp8", ignore=("lm_head", "layers.1.mlp.down_proj", "o_proj"))
    after, before = tiny.weights(artifact.path), tiny.weights(base)
    kept = ["model.layers.0.self_attn.o_proj", "model.layers.1.mlp.down_proj", "model.layers.1.self_attn.o_proj"]
    assert all(same(after[f"{module}.weight"], before[f"{module}.weight"]) for module in kept)
    assert sum(name.endswith("_scale") for name in after) == TAKEN - len(kept)
    assert written(artifact)["ignore"] == sorted(["lm_head", *kept])


@pytest.mark.parametrize("weights", FORMATS)
def test_tied_embeddings_are_neither_quantized_nor_written_twice(weights: str, tmp_path: Path) -> None:
    base = tiny.model(tmp_path / "base", tied=True)
    artifact = made(tmp_path, base, weights)
    after, name = tiny.weights(artifact.path), "model.embed_tokens.weight"
    assert "lm_head.weight" not in after
    assert same(after[name], tiny.weights(base)[name])
    assert json.loads((artifact.path / "config.json").read_text())["tie_word_embeddings"] is True


@pytest.mark.parametrize("ignore", [("q_proj",), ("lm_head", "model.layers.1.mlp.up_proj")])
def test_half_of_a_fused_layer_cannot_be_ignored(ignore: tuple[str, ...], tmp_path: Path) -> None:
    base = tiny.model(tmp_path / "base")
    with pytest.raises(Stop) as stop:
        made(tmp_path, base, "int8", ignore=ignore)
    assert [d.code for d in stop.value.report] == ["DC282"]


def test_some_experts_of_a_layer_cannot_be_ignored(tmp_path: Path) -> None:
    base = tiny.mixture(tmp_path / "base")
    with pytest.raises(Stop) as stop:
        made(tmp_path, base, "fp8", ignore=("lm_head", "experts.3"))
    (found,) = stop.value.report
    assert found.code == "DC282"
    assert "model.layers.0.mlp.experts" in found.detail
    whole = made(tmp_path, base, "fp8", ignore=("lm_head", "experts"))
    assert "model.layers.0.mlp.experts.0.gate_proj" in written(whole)["ignore"]


def test_experts_in_one_tensor_are_left_alone_by_a_pattern() -> None:
    """The engine asks for experts.0.gate_proj (or w1) of each, under a prefix of its own; Linear would match it."""
    tensors: list[Tensor] = [
        ("model.language_model.layers.3.mlp.experts.gate_up_proj", "BF16", (4, 64, 128)),
        ("model.language_model.layers.3.mlp.experts.down_proj", "BF16", (4, 64, 64)),
        ("model.language_model.layers.3.mlp.gate.weight", "BF16", (4, 64)),
        ("model.language_model.layers.3.self_attn.q_proj.weight", "BF16", (64, 64)),
        ("model.visual.blocks.3.conv.weight", "BF16", (4, 4, 4)),
    ]
    alone = layers.left_alone(tensors, ("lm_head",))
    (pattern,) = [name.removeprefix("re:") for name in alone if name.startswith("re:")]
    names = ("language_model.model.layers.3.mlp.experts.0.gate_proj", "model.layers.3.mlp.experts.0.w1",
             "layers.3.mlp.experts.routed_experts.0.down_proj")  # fmt: skip
    assert all(re.match(pattern, name) for name in names)
    others = ("language_model.model.layers.13.mlp.experts.0.gate_proj", "model.layers.3.mlp.shared_experts.gate_proj",
              "model.layers.3.mlp.gate", "model.layers.3.self_attn.qkv_proj")  # fmt: skip
    assert not any(re.match(pattern, name) for name in others)
    assert ignored.quantized(tensors, ("lm_head",)) == ["model.language_model.layers.3.self_attn.q_proj.weight"]


def test_scales_are_in_the_models_dtype() -> None:
    recipe = Recipe("", "m", "folder", None, {}, (), {}, "int4-rtn", "float16", ("lm_head",), group_size=64)
    tensors: list[Tensor] = [("model.layers.0.mlp.up_proj.weight", "BF16", (64, 128))]
    (found,) = layers.schemes(tensors, recipe).values()
    assert (found.scale_dtype, found.group, found.bits) == ("F16", 64, scheme("int4-rtn").bits)
