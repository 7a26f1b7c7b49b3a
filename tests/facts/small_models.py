"""Small but whole models and adapters as files in memory: real headers, zeros for weights."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from deployc.facts.architecture import architecture
from deployc.facts.headers import INDEX
from deployc.facts.shapes import shapes
from deployc.spec.deploy import Deploy, bind
from deployc.types.facts import DTYPE_BYTES
from deployc.types.groups import Tensor, expand

CONFIG: dict[str, Any] = {
    "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 64, "intermediate_size": 96,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 320,
    "max_position_embeddings": 512, "tie_word_embeddings": False, "torch_dtype": "bfloat16", "rope_theta": 1e6,
    "use_sliding_window": False, "sliding_window": 4096,
}  # fmt: skip


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
"""Any JSON value, small ones more often."""


def safetensors(tensors: Iterable[Tensor]) -> bytes:
    """A file of the format, zeros for data."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, dtype, shape in tensors:
        size = DTYPE_BYTES[dtype]
        for n in shape:
            size *= n
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + int(size)]}
        at += int(size)
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes(at)


def tensors_of(config: Mapping[str, Any]) -> list[Tensor]:
    return [(name, g.dtype, g.shape) for g in shapes(config, architecture(config)) for name in expand(g)]


def model_files(config: Mapping[str, Any] = CONFIG, shards: int = 1) -> dict[str, bytes]:
    tensors = tensors_of(config)
    files = {
        "config.json": json.dumps(config).encode(),
        "generation_config.json": b'{"temperature": 0.7}',
        "tokenizer.json": b'{"version": "1.0"}',
        "tokenizer_config.json": b'{"chat_template": "{{ messages }}"}',
        "README.md": b"# a model",
    }
    if shards == 1:
        return files | {"model.safetensors": safetensors(tensors)}
    placed: dict[str, str] = {}
    for shard in range(shards):
        file = f"model-{shard + 1:05d}-of-{shards:05d}.safetensors"
        files[file] = safetensors(tensors[shard::shards])
        placed |= {name: file for name, _, _ in tensors[shard::shards]}
    return files | {INDEX: json.dumps({"metadata": {"total_size": 1}, "weight_map": placed}).encode()}


def adapter_tensors(rank: int = 8, layers: int = 2, hidden: int = 64) -> list[Tensor]:
    kv = hidden // 2
    return [
        (f"base_model.model.model.layers.{layer}.self_attn.{name}_proj.lora_{half}.weight", "F32", shape)
        for layer in range(layers)
        for name, out in (("q", hidden), ("v", kv))
        for half, shape in (("A", (rank, hidden)), ("B", (out, rank)))
    ]


def adapter_files(rank: int = 8, base: str = "org/small", **config: Any) -> dict[str, bytes]:
    values = {"peft_type": "LORA", "r": rank, "lora_alpha": 16, "target_modules": ["v_proj", "q_proj"],
              "base_model_name_or_path": base, "bias": "none"} | config  # fmt: skip
    return {
        "adapter_config.json": json.dumps(values).encode(),
        "adapter_model.safetensors": safetensors(adapter_tensors(rank)),
    }


def put(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write the files into the folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def deploy(
    source: str,
    *,
    folder: str = ".",
    adapters: Iterable[str] = (),
    target: Mapping[str, Any] | None = None,
    **model: Any,
) -> Deploy:
    values = {
        "version": 1,
        "name": "small",
        "model": {"source": source, **model},
        "adapters": [{"name": f"a{index}", "source": adapter} for index, adapter in enumerate(adapters)],
        "hardware": {"gpu": "rtx-4090"},
        "workload": {"input_tokens": 100, "output_tokens": 20, "concurrency": 4},
        "engine": {"version": "0.33.0"},
        "target": dict(target or {}),
    }
    return bind(values, {}, folder)
