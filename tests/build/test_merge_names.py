"""Modules whose names in transformers are not the checkpoint's: towers beside a language model, gpt2 as published."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import tiny
from test_merge_peft import unit

if find_spec("torch"):  # else the marker says whether that is a failure
    import torch

pytestmark = [pytest.mark.build, pytest.mark.usefixtures("inline")]

IDS = {"bos_token_id": 1, "eos_token_id": 2}


def test_a_tower_and_its_convolution(tmp_path: Path) -> None:
    from peft import LoraConfig, PeftModel, get_peft_model
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

    torch.manual_seed(5)
    text = tiny.SIZES | IDS | {"rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}}
    vision = {"depth": 1, "hidden_size": 32, "intermediate_size": 48, "num_heads": 2, "out_hidden_size": 64,
              "patch_size": 4, "fullatt_block_indexes": [0]}  # fmt: skip
    tokens = {"image_token_id": 150, "video_token_id": 151, "vision_start_token_id": 152} | IDS
    config = Qwen2_5_VLConfig(text_config=text, vision_config=vision, tie_word_embeddings=False, **tokens)
    kind: Any = Qwen2_5_VLForConditionalGeneration
    whole = kind(config).to(torch.bfloat16)
    whole.config.dtype = torch.bfloat16
    whole.save_pretrained(base := tmp_path / "base")
    targets = ["q_proj", "down_proj", "patch_embed.proj", "qkv"]
    lora = LoraConfig(r=4, target_modules=targets, init_lora_weights=False)
    get_peft_model(kind.from_pretrained(base, dtype=torch.float32), lora).save_pretrained(tmp_path / "adapter")
    names = tiny.weights(base).keys()
    assert "visual.patch_embed.proj.weight" in names
    assert "model.layers.0.self_attn.q_proj.weight" in names
    artifact = tiny.built(tiny.recipe(base, [tmp_path / "adapter"]), tmp_path / "store")
    ours = kind.from_pretrained(artifact.path, dtype=torch.bfloat16).state_dict()
    plain = kind.from_pretrained(base, dtype=torch.float64)
    before = {name: values.clone() for name, values in plain.state_dict().items()}
    exact = PeftModel.from_pretrained(plain, tmp_path / "adapter").merge_and_unload().state_dict()
    moved = [name for name in exact if not torch.equal(exact[name], before[name])]
    assert len(moved) == 7
    for name, values in exact.items():
        lost = 2.0**-24 * 16 * (values.abs() + values.abs().mean())
        error = (ours[name].double() - values).abs()
        assert bool((error <= unit(values.abs() + lost, torch.bfloat16) / 2 + lost).all()), name


def test_gpt2_as_it_is_published(tmp_path: Path) -> None:
    """Its checkpoint leaves out `transformer.`."""
    from safetensors.torch import save_file

    base = tiny.model(tmp_path / "base", family="gpt2")
    on: dict[str, Any] = {
        "target_modules": ["c_attn", "c_proj"],
        "modules_to_save": ["ln_f"],
        "trainable_token_indices": [3],
    }
    adapter = tiny.adapter(tmp_path / "adapter", base, **on)
    long = tiny.built(tiny.recipe(base, [adapter]), tmp_path / "store")
    bare = {name.removeprefix("transformer."): values for name, values in tiny.weights(base).items()}
    save_file(bare, base / "model.safetensors", {"format": "pt"})
    short = tiny.built(tiny.recipe(base, [adapter]), tmp_path / "store")
    found, wanted = tiny.weights(short.path), tiny.weights(long.path)
    assert found.keys() == {name.removeprefix("transformer.") for name in wanted}
    assert all(torch.equal(found[name.removeprefix("transformer.")], values) for name, values in wanted.items())
    assert json.loads((short.path / "config.json").read_text())["tie_word_embeddings"] is True
