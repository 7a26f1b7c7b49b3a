"""Tied embeddings: kept one where both come out alike, else two tensors, with config.json changed; answers as peft."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import tiny

if find_spec("torch"):  # else the marker says whether that is a failure
    import torch

pytestmark = [pytest.mark.build, pytest.mark.usefixtures("inline")]

ON = ["q_proj", "down_proj"]
KEPT: dict[str, dict[str, Any]] = {
    "neither": {"target_modules": ON},
    "tokens": {"target_modules": ON, "trainable_token_indices": [3, 150]},
    "tokens, told to": {"target_modules": ON, "trainable_token_indices": [3, 150], "ensure_weight_tying": True},
    "resized": {"target_modules": ON, "resized": 168},
    "resized, new tokens": {"target_modules": ON, "resized": 168, "trainable_token_indices": [165]},
    "pairs on both, told to": {"target_modules": [*ON, "embed_tokens"], "ensure_weight_tying": True},
    "both whole, told to": {"target_modules": ON, "modules_to_save": ["embed_tokens"], "ensure_weight_tying": True},
}
PARTED: dict[str, dict[str, Any]] = {
    "pair on the embedding": {"target_modules": [*ON, "embed_tokens"]},
    "pair on the output": {"target_modules": [*ON, "lm_head"]},
    "pairs on both": {"target_modules": [*ON, "lm_head", "embed_tokens"]},
    "DoRA on the embedding": {"target_modules": [*ON, "embed_tokens"], "use_dora": True},
    "embedding whole": {"target_modules": ON, "modules_to_save": ["embed_tokens"]},
    "output whole": {"target_modules": ON, "modules_to_save": ["lm_head"]},
    "both whole": {"target_modules": ON, "modules_to_save": ["embed_tokens", "lm_head"]},
    "tokens of the output": {"target_modules": ON, "trainable_token_indices": {"lm_head": [3]}},
    "resized, pair on the embedding": {"target_modules": [*ON, "embed_tokens"], "resized": 168},
}


@pytest.mark.parametrize("shard", ["5GB", "30KB"])
@pytest.mark.parametrize("family", ["llama", "gpt2"])
def test_gpt2_and_llama_part_alike(family: str, shard: str, tmp_path: Path) -> None:
    on = {"target_modules": ["wte", "c_fc"]} if family == "gpt2" else {"target_modules": ["embed_tokens", "up_proj"]}
    assert merged(tmp_path, {"family": family, "shard": shard}, **on)["lm_head.weight"].shape == (160, 64)


@pytest.mark.parametrize("settings", KEPT.values(), ids=KEPT.keys())
def test_kept(settings: dict[str, Any], tmp_path: Path) -> None:
    found = merged(tmp_path, {}, **settings)
    config = json.loads((tmp_path / "config.json").read_text())
    assert "lm_head.weight" not in found
    assert config["tie_word_embeddings"] is True
    assert config["vocab_size"] == found["model.embed_tokens.weight"].shape[0] == settings.get("resized", 160)


@pytest.mark.parametrize("settings", PARTED.values(), ids=PARTED.keys())
def test_parted(settings: dict[str, Any], tmp_path: Path) -> None:
    found = merged(tmp_path, {}, **settings)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["tie_word_embeddings"] is False
    assert found["lm_head.weight"].shape == found["model.embed_tokens.weight"].shape
    assert config["vocab_size"] == found["lm_head.weight"].shape[0] == settings.get("resized", 160)


@pytest.mark.parametrize("on", ["lm_head", "embed_tokens"])
def test_a_parted_output_is_not_quantized(on: str, tmp_path: Path) -> None:
    base = tiny.model(tmp_path / "base", shard="30KB")
    adapter = tiny.adapter(tmp_path / "adapter", base, target_modules=[*ON, on])
    plain, small = (tiny.built(tiny.recipe(base, [adapter], weights=w), tmp_path / "store") for w in ("none", "int8"))
    found, wanted = tiny.weights(small.path), tiny.weights(plain.path)
    for name in ("lm_head.weight", "model.embed_tokens.weight"):
        assert torch.equal(found[name], wanted[name])
    assert found["model.layers.0.self_attn.q_proj.weight"].dtype == torch.int8
    assert not torch.equal(found["lm_head.weight"], found["model.embed_tokens.weight"])


def merged(folder: Path, model: dict[str, Any], **settings: Any) -> dict[str, Any]:
    """The artifact's tensors; its answers are those of the adapter beside its model, in float32."""
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    base = tiny.model(folder / "base", dtype="float16", **model)
    adapter = tiny.adapter(folder / "adapter", base, size=0.3, **settings)
    artifact = tiny.built(tiny.recipe(base, [adapter], dtype="float16"), folder / "store")
    (folder / "config.json").write_bytes((artifact.path / "config.json").read_bytes())
    tokens = torch.arange(160).reshape(4, 40)
    if rows := settings.get("resized"):
        tokens = tokens + rows - 160
    plain = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    with torch.no_grad():
        if rows:
            plain.resize_token_embeddings(rows)
        before = plain(tokens).logits
        wanted = PeftModel.from_pretrained(plain, adapter)(tokens).logits
        ours = AutoModelForCausalLM.from_pretrained(artifact.path, dtype=torch.float32)(tokens).logits
    assert float((ours - wanted).abs().max()) < 0.01 * float((before - wanted).abs().max())
    return tiny.weights(artifact.path)
