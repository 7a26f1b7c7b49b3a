"""Tiny models and adapters as transformers and peft save them, with random weights; recipes of them; builds in place.

Importing this loads neither library: the functions that make something do.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from deployc.build.build import build
from deployc.build.weights.safetensors_file import Reader
from deployc.facts.folder import Folder
from deployc.facts.source import pinned
from deployc.types.bundle import Recipe
from deployc.types.manifest import Artifact, Progress

LINEARS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
SIZES = {
    "vocab_size": 160, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 256,
}  # fmt: skip
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", {}),
    "qwen2": ("Qwen2", {}),
    "gpt2": (
        "GPT2",
        {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 128, "bos_token_id": 1, "eos_token_id": 2},
    ),
    "qwen3_moe": (
        "Qwen3Moe",
        {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "head_dim": 16},
    ),
    "mixtral": ("Mixtral", {"num_local_experts": 4, "num_experts_per_tok": 2}),
}


def model(folder: Path, family: str = "llama", dtype: str = "bfloat16", tied: bool = True, shard: str = "5GB") -> Path:
    """A model of a family of FAMILIES, with something under the names of a tokenizer's files."""
    import torch
    import transformers

    torch.manual_seed(7)
    name, more = FAMILIES[family]
    sizes = {"vocab_size": SIZES["vocab_size"]} if family == "gpt2" else SIZES
    config = getattr(transformers, f"{name}Config")(**(sizes | more), tie_word_embeddings=tied)
    made = getattr(transformers, "GPT2LMHeadModel" if family == "gpt2" else f"{name}ForCausalLM")
    whole = made(config).to(getattr(torch, dtype))
    whole.config.dtype = getattr(torch, dtype)
    whole.save_pretrained(folder, max_shard_size=shard)
    (folder / "tokenizer.json").write_text('{"version": "1.0"}')
    (folder / "tokenizer_config.json").write_text('{"chat_template": "{{ messages }}"}')
    return folder


def mixture(folder: Path) -> Path:
    """A `Qwen3MoeForCausalLM` of one layer with four experts, in matrices of their own, and one without."""
    import torch
    from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

    torch.manual_seed(7)
    experts = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64, "mlp_only_layers": [1]}
    config = Qwen3MoeConfig(**SIZES, **experts, head_dim=16, tie_word_embeddings=False)
    whole = Qwen3MoeForCausalLM(config).to(torch.bfloat16)
    whole.config.dtype = torch.bfloat16
    whole.save_pretrained(folder)
    (folder / "tokenizer.json").write_text('{"version": "1.0"}')
    (folder / "tokenizer_config.json").write_text('{"chat_template": "{{ messages }}"}')
    return folder


def adapter(
    folder: Path,
    base: Path,
    seed: int = 0,
    dtype: str = "float32",
    size: float = 0.05,
    resized: int = 0,
    pickled: bool = False,
    **config: Any,
) -> Path:
    """A LoRA adapter of the base with random values in all that it trains: `size` is the deviation of B's entries.

    `resized`: the embeddings have so many rows while it is trained.
    """
    from peft import LoraConfig

    settings = {"r": 8, "lora_alpha": 16, "target_modules": LINEARS, "task_type": "CAUSAL_LM"} | config
    return trained(folder, base, LoraConfig(**settings), seed, dtype, size, resized, pickled)


def trained(
    folder: Path,
    base: Path,
    config: Any,
    seed: int = 0,
    dtype: str = "float32",
    size: float = 0.05,
    resized: int = 0,
    pickled: bool = False,
) -> Path:
    """An adapter of any kind, by peft's config of it."""
    import torch
    from peft import get_peft_model
    from transformers import AutoModelForCausalLM

    plain = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    if resized:
        plain.resize_token_embeddings(resized)
    whole = get_peft_model(plain, config)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in whole.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if "lora_A" in name or "embedding_A" in name:
                parameter.copy_(noise * 0.3)
            elif "lora_B" in name or "embedding_B" in name:
                parameter.copy_(noise * size)
            elif parameter.requires_grad and "magnitude" in name:
                parameter.mul_(1 + 0.1 * noise)
            elif parameter.requires_grad:
                parameter.add_(noise * 0.05)
    whole.to(getattr(torch, dtype)).save_pretrained(folder, safe_serialization=not pickled)
    return folder


def recipe(
    base: Path,
    adapters: Iterable[Path] = (),
    weights: str = "none",
    dtype: str = "bfloat16",
    ignore: tuple[str, ...] = ("lm_head",),
    factors: Mapping[str, float] | None = None,
    group_size: int = 0,
) -> Recipe:
    """What COMPILE would ask for; sources are absolute folders, adapters named after theirs."""
    named = {path.name: path for path in adapters}
    unnamed = Recipe(
        key="",
        model_source=str(base),
        model_hub="folder",
        model_revision=None,
        model_files=pins(base),
        adapters=tuple((name, str(path), None, (factors or {}).get(name, 1.0)) for name, path in named.items()),
        adapter_files={f"{name}/{file}": pin for name, path in named.items() for file, pin in pins(path).items()},
        weights=weights,
        dtype=dtype,
        ignore=ignore,
        group_size=group_size,
    )
    return replace(unnamed, key=hashlib.sha256(json.dumps(asdict(unnamed)).encode()).hexdigest())


def pins(folder: Path) -> dict[str, str]:
    return pinned(Folder(folder, str(folder)).files())


def built(wanted: Recipe, store: Path, **options: Any) -> Artifact:
    """Build it with this interpreter, on one thread."""
    settings = {"python": None, "engine_python": None, "progress": silent, "threads": 1} | options
    return build(wanted, folder=store.parent, store=store, **settings)


def silent(progress: Progress) -> None:
    """Tells nothing."""


def weights(folder: Path) -> dict[str, Any]:
    """Every tensor in the safetensors files of a folder."""
    from safetensors.torch import load_file

    return {name: tensor for path in sorted(folder.glob("*.safetensors")) for name, tensor in load_file(path).items()}


def edited(path: Path, changes: Mapping[str, Any]) -> None:
    """Change keys of a JSON file."""
    path.write_text(json.dumps(json.loads(path.read_text()) | dict(changes)))


def slot(path: Path, name: str) -> tuple[int, int]:
    """Where a tensor's bytes lie in its file: first, end."""
    with Reader(path, "test") as reader:
        return next((s.begin, s.end) for s in reader.slots if s.name == name)
