"""Stored weights and rounded inputs: what compressed-tensors and the engine's own formulas make of them, to the bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import measured
import pytest

from deployc.facts.faults import Fault
from deployc.facts.headers import INDEX

pytestmark = pytest.mark.build


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", measured.FORMATS)
def test_a_stored_weight_is_what_compressed_tensors_restores(tmp_path: Path, name: str, dtype: str) -> None:
    import torch
    from safetensors.torch import save_file

    from deployc.build.quality.stored import Stored

    torch.manual_seed(1)
    weight = (torch.randn(48, 96) * torch.rand(48, 1)).to(getattr(torch, dtype))
    parameters = measured.stored(weight, name)
    folder = written(tmp_path, {f"layer.{key}": value.contiguous() for key, value in parameters.items()}, name)
    more = {"layer.bias": torch.ones(48), "norm": torch.ones(3)}
    save_file(more, folder / "other.safetensors")
    save_file({"wq": torch.ones(3)}, folder / "consolidated.safetensors")  # a copy that the index does not name
    placed = dict.fromkeys(more, "other.safetensors") | {f"layer.{key}": "model.safetensors" for key in parameters}
    (folder / INDEX).write_text(json.dumps({"weight_map": placed}))
    with Stored(folder) as stored:
        assert sorted(stored.names()) == ["layer.bias", "layer.weight", "norm"]
        assert stored.quantized == {"layer"}
        assert stored.elements() == 48 * 96 + 48 + 3
        found = stored.tensor("layer.weight")
        assert torch.equal(stored.tensor("layer.bias"), torch.ones(48))
    assert found.dtype == weight.dtype
    assert torch.equal(found, measured.restored(parameters, name))
    assert float((found - weight).float().norm() / weight.float().norm()) < 0.2


def test_groups_by_number_and_sizes_that_fill_no_word(tmp_path: Path) -> None:
    import torch

    from deployc.build.quality.stored import Stored, unpacked

    words = torch.tensor([[0x76543210, 0x000000F8]], dtype=torch.int32)
    assert unpacked(words, 4, 10).tolist() == [[-8, -7, -6, -5, -4, -3, -2, -1, 0, 7]]
    assert unpacked(torch.tensor([[-1]], dtype=torch.int32), 8, 3).tolist() == [[127, 127, 127]]
    parameters = {
        "weight_packed": torch.full((1, 1), 0x7FFFFFFF, dtype=torch.int32),  # 7 (15 - 8) seven times, then -1
        "weight_scale": torch.tensor([[1.0, 10.0]]),
        "weight_shape": torch.tensor([1, 8]),
        "weight_g_idx": torch.tensor([1, 0, 1, 0, 1, 0, 1, 0], dtype=torch.int32),
    }
    with Stored(written(tmp_path, {f"m.{k}": v for k, v in parameters.items()}, "int4")) as stored:
        assert stored.tensor("m.weight").tolist() == [[70.0, 7.0, 70.0, 7.0, 70.0, 7.0, 70.0, -1.0]]


PER_TOKEN = {"type": "int", "num_bits": 8, "strategy": "token", "dynamic": True}
REFUSED: list[tuple[dict[str, str], dict[str, Any], str]] = [
    ({"m.qweight": "int32"}, {}, "m.qweight is I32"),
    ({"m.weight": "uint8", "m.weight_scale": "float32"}, {}, "m.weight is stored as U8"),
    ({"m.weight": "int8"}, {}, "without a scale"),
    ({}, {"strategy": "tensor", "dynamic": False}, '"tensor"'),
    ({}, {"num_bits": 4}, '"num_bits": 4'),
    ({}, {"symmetric": False}, '"symmetric": false'),
]


@pytest.mark.parametrize(("tensors", "changed", "said"), REFUSED)
def test_forms_that_are_not_undone_are_refused(
    tmp_path: Path, tensors: dict[str, str], changed: dict[str, Any], said: str
) -> None:
    import torch

    from deployc.build.quality.stored import Stored

    folder = written(
        tmp_path, {name: torch.zeros(2, 2, dtype=getattr(torch, d)) for name, d in tensors.items()}, "int8"
    )
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"]["config_groups"]["group_0"] = {"input_activations": PER_TOKEN | changed}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(Fault) as caught, Stored(folder) as stored:
        stored.rounding  # noqa: B018  # asking is what raises
    assert caught.value.diagnostic.code == "DC265"
    assert said in caught.value.diagnostic.detail


@pytest.mark.parametrize(("name", "rounding"), [("fp8", "fp8"), ("int8", "int8"), ("int4", None), ("int4-zero", None)])
def test_which_inputs_are_rounded(tmp_path: Path, name: str, rounding: str | None) -> None:
    from deployc.build.quality.stored import Stored

    with Stored(written(tmp_path, {}, name)) as stored:
        assert stored.rounding == rounding


def test_inputs_are_rounded_as_the_engine_does_it() -> None:
    import torch

    from deployc.build.quality import inputs

    values = torch.tensor([[[-12.7, 0.04, 0.16, 6.35], [0.0, 0.0, 0.0, 0.0]]])
    assert inputs.int8(values)[0, 1].tolist() == [0.0] * 4
    assert inputs.int8(values)[0, 0] == pytest.approx([-12.7, 0.0, 0.2, 6.4])  # steps of 0.1; 63.5 goes to 64, even
    torch.manual_seed(0)
    values = (torch.randn(5, 64) * 3).to(torch.bfloat16)
    scale = (values.abs().amax(dim=-1, keepdim=True).float() / 448).clamp(min=1 / (448 * 512))
    engine = (values.float() * scale.reciprocal()).clamp(-448, 448).to(torch.float8_e4m3fn)
    assert torch.equal(inputs.fp8(values), (engine.float() * scale).to(torch.bfloat16))
    assert torch.isfinite(inputs.fp8(torch.zeros(1, 4))).all()


def test_modules_without_a_linear_layer_are_named() -> None:
    import torch

    from deployc.build.quality import inputs

    model = torch.nn.Sequential(torch.nn.Linear(4, 4, bias=False), torch.nn.LayerNorm(4))
    assert inputs.rounded(model, ["0", "1", "experts.0.up_proj"], "int8") == ["1", "experts.0.up_proj"]
    with torch.no_grad():
        model[0].weight.copy_(torch.eye(4))
        given = torch.tensor([[1.27, 0.004, -0.02, 0.016]])
        assert model[0](given).tolist()[0] == pytest.approx([1.27, 0.0, -0.02, 0.02])


def written(folder: Path, tensors: dict[str, Any], name: str) -> Path:
    """A folder with these tensors and what config.json says of a format."""
    from safetensors.torch import save_file

    save_file(tensors, folder / "model.safetensors")
    group = json.loads(measured.scheme(name).model_dump_json())
    (folder / "config.json").write_text(json.dumps({"quantization_config": {"config_groups": {"group_0": group}}}))
    return folder
