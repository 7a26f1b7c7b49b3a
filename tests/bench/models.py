"""Generated models of real sizes with an adapter on every linear layer, written without holding one in memory."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from deployc.build.weights.writer import Writer
from deployc.types.facts import DTYPE_BYTES
from deployc.types.groups import Tensor

SMALL: dict[str, Any] = {"hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 18,
                         "num_attention_heads": 16, "num_key_value_heads": 16, "vocab_size": 32000}  # fmt: skip
"""1.06 billion parameters: 2.1 GB in bf16."""
QWEN_7B: dict[str, Any] = {"hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
                           "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064}  # fmt: skip
"""Qwen2.5-7B's config.json: 15.2 GB in bf16."""
RANK = 16
_CHUNK = 2**25  # bytes written at once


def config(sizes: Mapping[str, Any]) -> dict[str, Any]:
    """config.json of a Qwen2 model."""
    return {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "torch_dtype": "bfloat16",
            "tie_word_embeddings": False, "max_position_embeddings": 4096, "hidden_act": "silu", "rms_norm_eps": 1e-6,
            "rope_theta": 1e6} | dict(sizes)  # fmt: skip


def linears(sizes: Mapping[str, Any]) -> Iterator[tuple[str, int, int]]:
    """Module, outputs, inputs of every linear layer but the output one."""
    hidden, inner = sizes["hidden_size"], sizes["intermediate_size"]
    keys = hidden * sizes["num_key_value_heads"] // sizes["num_attention_heads"]
    for layer in range(sizes["num_hidden_layers"]):
        at = f"model.layers.{layer}"
        for name, out in (("q_proj", hidden), ("k_proj", keys), ("v_proj", keys), ("o_proj", hidden)):
            yield f"{at}.self_attn.{name}", out, hidden
        yield f"{at}.mlp.gate_proj", inner, hidden
        yield f"{at}.mlp.up_proj", inner, hidden
        yield f"{at}.mlp.down_proj", hidden, inner


def model(folder: Path, sizes: Mapping[str, Any], shards: int) -> Path:
    """A model of random bf16 weights in so many files, with an index; made once."""
    if (folder / "model.safetensors.index.json").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config(sizes)))
    (folder / "tokenizer_config.json").write_text("{}")
    placed: dict[str, str] = {}
    noise = _noise()
    for index, tensors in enumerate(_split(list(_tensors(sizes)), shards)):
        name = f"model-{index + 1:05d}-of-{shards:05d}.safetensors"
        _write(folder / name, tensors, noise)
        placed |= dict.fromkeys((tensor for tensor, _, _ in tensors), name)
    text = json.dumps({"metadata": {}, "weight_map": placed})
    (folder / "model.safetensors.index.json").write_text(text)
    return folder


def adapter(folder: Path, sizes: Mapping[str, Any]) -> Path:
    """A LoRA adapter of rank 16 on every linear layer."""
    folder.mkdir(parents=True, exist_ok=True)
    known = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": RANK, "lora_alpha": 32, "bias": "none",
             "target_modules": sorted({module.rpartition(".")[2] for module, _, _ in linears(sizes)}),
             "base_model_name_or_path": "generated"}  # fmt: skip
    (folder / "adapter_config.json").write_text(json.dumps(known))
    tensors: list[Tensor] = []
    for module, out, inner in linears(sizes):
        tensors.append((f"base_model.model.{module}.lora_A.weight", "BF16", (RANK, inner)))
        tensors.append((f"base_model.model.{module}.lora_B.weight", "BF16", (out, RANK)))
    _write(folder / "adapter_model.safetensors", tensors, _noise())
    return folder


def _tensors(sizes: Mapping[str, Any]) -> Iterator[Tensor]:
    hidden, vocabulary = sizes["hidden_size"], sizes["vocab_size"]
    yield "model.embed_tokens.weight", "BF16", (vocabulary, hidden)
    for module, out, inner in linears(sizes):
        yield f"{module}.weight", "BF16", (out, inner)
        if module.endswith(("q_proj", "k_proj", "v_proj")):
            yield f"{module}.bias", "BF16", (out,)
        if module.endswith("down_proj"):
            at = module.removesuffix(".mlp.down_proj")
            yield f"{at}.input_layernorm.weight", "BF16", (hidden,)
            yield f"{at}.post_attention_layernorm.weight", "BF16", (hidden,)
    yield "model.norm.weight", "BF16", (hidden,)
    yield "lm_head.weight", "BF16", (vocabulary, hidden)


def _split(tensors: list[Tensor], shards: int) -> Iterator[list[Tensor]]:
    """Files of about the same size."""
    total = sum(_bytes(tensor) for tensor in tensors)
    at, part = 0, 1
    current: list[Tensor] = []
    for tensor in tensors:
        if current and part < shards and at >= total * part / shards:
            yield current
            current, part = [], part + 1
        current.append(tensor)
        at += _bytes(tensor)
    yield current


def _write(path: Path, tensors: list[Tensor], noise: bytes) -> None:
    with Writer(path, tensors, {"format": "pt"}) as writer:
        for tensor in tensors:
            slot = writer.slots[tensor[0]]
            for at in range(slot.begin, slot.end, _CHUNK):
                writer.write(at, noise[: min(_CHUNK, slot.end - at)])
        writer.commit()


def _noise() -> bytes:
    """Normal numbers of deviation 0.02 in bf16; a prime number of them, tiled, so that rows differ."""
    import struct

    rng = random.Random(1)
    singles = struct.pack("<65521f", *(rng.gauss(0, 0.02) for _ in range(65521)))
    once = b"".join(singles[at + 2 : at + 4] for at in range(0, len(singles), 4))
    return once * (_CHUNK // len(once) + 1)


def _bytes(tensor: Tensor) -> int:
    return math.prod(tensor[2]) * round(DTYPE_BYTES[tensor[1]])
