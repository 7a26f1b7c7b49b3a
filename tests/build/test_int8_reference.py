"""int8 against compressed-tensors' own quantizer, on the merged weights before they are rounded to 16 bit."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import tiny

from deployc.diagnostics import Stop

if find_spec("torch"):  # else the marker says whether that is a failure
    import torch

pytestmark = [pytest.mark.build, pytest.mark.usefixtures("inline")]


@pytest.fixture(params=["bfloat16", "float16"])
def quantized(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """A merged and quantized model beside the same merge in float32."""
    base = tiny.model(tmp_path / "base", dtype=request.param, tied=False, shard="30KB")
    adapter = tiny.adapter(tmp_path / "adapter", base, size=0.2)
    wanted = tiny.recipe(base, [adapter], weights="int8", dtype=request.param)
    exact = tiny.built(tiny.recipe(base, [adapter], dtype="float32"), tmp_path / "store")
    artifact = tiny.built(wanted, tmp_path / "store")
    return {
        "dtype": getattr(torch, request.param),
        "path": artifact.path,
        "exact": tiny.weights(exact.path),
        "int8": tiny.weights(artifact.path),
        "base": tiny.weights(base),
    }


def test_equal_to_the_reference_quantizer(quantized: dict[str, Any]) -> None:
    """Its scale, in the model's dtype or one unit above where it would be rounded down; its rounding, by that scale."""
    from compressed_tensors.quantization.lifecycle.forward import quantize
    from compressed_tensors.quantization.utils import calculate_qparams

    weights = scheme().weights
    for name in linears(quantized):
        weight, stored, scale = (quantized[k][n] for k, n in parts(name))
        reference, _ = calculate_qparams(weight.amin(1, keepdim=True), weight.amax(1, keepdim=True), weights)
        assert scale.dtype == quantized["dtype"] and scale.shape == (weight.shape[0], 1)
        nearest = reference.to(scale.dtype)
        steps = scale.view(torch.int16).int() - nearest.view(torch.int16).int()
        assert torch.equal(steps, (nearest.float() < reference).int()), name
        wanted = quantize(weight, scale.float(), None, weights, dtype=torch.int8)
        assert stored.dtype == torch.int8
        assert torch.equal(stored, wanted), name


def test_no_weight_is_off_by_more_than_half_a_step(quantized: dict[str, Any]) -> None:
    for name in linears(quantized):
        weight, stored, scale = (quantized[k][n].double() for k, n in parts(name))
        error = (stored * scale - weight).abs()
        assert bool((error <= scale / 2 * (1 + 1e-6)).all()), name
        assert float(error.max()) > 0  # what is compared is not the same thing twice


def test_read_back_by_the_library_itself(quantized: dict[str, Any]) -> None:
    from compressed_tensors.compressors import BaseCompressor

    compressor = BaseCompressor.get_value_from_registry("int-quantized")
    for name in linears(quantized):
        state = {"weight": quantized["int8"][name], "weight_scale": quantized["int8"][f"{name}_scale"]}
        back = compressor.decompress(state, scheme())["weight"]
        step = quantized["int8"][f"{name}_scale"].float()
        off = (back.float() - quantized["exact"][name]).abs()
        assert back.dtype == quantized["dtype"]
        assert bool((off <= step / 2 + quantized["exact"][name].abs() * torch.finfo(back.dtype).eps + 1e-6).all())


def test_only_linear_layers_are_quantized(quantized: dict[str, Any]) -> None:
    """Seven matrices in each of two layers; embeddings, norms and lm_head keep the merged values in 16 bit."""
    assert len(linears(quantized)) == 14
    for name, tensor in quantized["int8"].items():
        if name.removesuffix("_scale") not in linears(quantized):
            assert tensor.dtype == quantized["dtype"]
            assert torch.equal(tensor, quantized["base"][name])


def test_config_is_what_the_library_writes(quantized: dict[str, Any]) -> None:
    from compressed_tensors.quantization import QuantizationConfig

    written = json.loads((quantized["path"] / "config.json").read_text())["quantization_config"]
    library = QuantizationConfig(
        config_groups={"group_0": scheme()},
        format="int-quantized",
        quantization_status="compressed",
        ignore=["lm_head"],
    ).model_dump(mode="json")
    only_in_some_versions = {"moe_sparsity_config"}
    known = {"actorder", "block_structure", "observer", "observer_kwargs", "scale_dtype", "zp_dtype"}
    assert written == {key: value for key, value in library.items() if key not in only_in_some_versions}
    assert not known & set(written["config_groups"]["group_0"]["weights"])
    assert QuantizationConfig.model_validate(written).model_dump(mode="json") == library


def test_the_index_names_the_scales_too(quantized: dict[str, Any]) -> None:
    index = json.loads((quantized["path"] / "model.safetensors.index.json").read_text())
    assert set(index["weight_map"]) == set(quantized["int8"])
    assert index["metadata"]["total_size"] == sum(t.nbytes for t in quantized["int8"].values())


def test_layers_that_are_ignored_stay_and_are_named(tmp_path: Path) -> None:
    base = tiny.model(tmp_path / "base")
    wanted = tiny.recipe(base, weights="int8", ignore=("lm_head", "layers.1.mlp.down_proj", "o_proj"))
    artifact = tiny.built(wanted, tmp_path / "store")
    after, before = tiny.weights(artifact.path), tiny.weights(base)
    kept = ["model.layers.0.self_attn.o_proj", "model.layers.1.mlp.down_proj", "model.layers.1.self_attn.o_proj"]
    for module in kept:
        assert torch.equal(after[f"{module}.weight"], before[f"{module}.weight"])
    assert sum(name.endswith("_scale") for name in after) == 14 - len(kept)
    written = json.loads((artifact.path / "config.json").read_text())["quantization_config"]
    assert written["ignore"] == sorted(["lm_head", *kept])


def test_tied_embeddings_are_neither_quantized_nor_written_twice(tmp_path: Path) -> None:
    base = tiny.model(tmp_path / "base", tied=True)
    artifact = tiny.built(tiny.recipe(base, weights="int8"), tmp_path / "store")
    after = tiny.weights(artifact.path)
    assert "lm_head.weight" not in after
    assert torch.equal(after["model.embed_tokens.weight"], tiny.weights(base)["model.embed_tokens.weight"])
    assert json.loads((artifact.path / "config.json").read_text())["tie_word_embeddings"] is True


def test_rows_of_zeros_and_of_one_value(tmp_path: Path) -> None:
    base = tiny.model(tmp_path / "base")
    name = "model.layers.0.self_attn.q_proj.weight"
    begin, _ = tiny.slot(base / "model.safetensors", name)
    with (base / "model.safetensors").open("r+b") as file:
        file.seek(begin)
        file.write(bytes(64 * 2) + b"\x80\xbf" * 64)  # a row of 0, a row of -1
    artifact = tiny.built(tiny.recipe(base, weights="int8"), tmp_path / "store")
    after = tiny.weights(artifact.path)
    stored, scale = after[name], after[f"{name}_scale"].double()
    assert int(stored[0].abs().max()) == 0 and float(scale[0]) > 0
    assert float((stored[1].double() * scale[1] + 1).abs().max()) <= float(scale[1]) / 2


@pytest.mark.parametrize("ignore", [("q_proj",), ("lm_head", "model.layers.1.mlp.up_proj")])
def test_half_of_a_fused_layer_cannot_be_ignored(ignore: tuple[str, ...], tmp_path: Path) -> None:
    base = tiny.model(tmp_path / "base")
    with pytest.raises(Stop) as stop:
        tiny.built(tiny.recipe(base, weights="int8", ignore=ignore), tmp_path / "store")
    assert [d.code for d in stop.value.report] == ["DC282"]


def scheme() -> Any:
    """W8A8 with dynamic activations a token, as the library's own preset says it."""
    from compressed_tensors.quantization import preset_name_to_scheme

    return preset_name_to_scheme("W8A8", ["Linear"])


def linears(quantized: dict[str, Any]) -> list[str]:
    return sorted(name for name in quantized["exact"] if name.endswith("_proj.weight"))


def parts(name: str) -> list[tuple[str, str]]:
    return [("exact", name), ("int8", name), ("int8", f"{name}_scale")]
