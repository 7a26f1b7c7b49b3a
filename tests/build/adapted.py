"""Small random models and adapters on disk, their recipes, and one call that builds them."""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deployc.build.build import build
from deployc.build.weights.safetensors_file import Reader
from deployc.build.weights.writer import Writer
from deployc.facts.architecture import architecture
from deployc.facts.folder import Folder
from deployc.facts.headers import INDEX
from deployc.facts.shapes import shapes
from deployc.facts.source import pinned
from deployc.types.bundle import Recipe
from deployc.types.facts import DTYPE_BYTES
from deployc.types.groups import Tensor, expand
from deployc.types.manifest import Artifact

LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 96,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 320,
    "max_position_embeddings": 512, "tie_word_embeddings": False, "torch_dtype": "bfloat16", "rope_theta": 1e4,
    "hidden_act": "silu", "rms_norm_eps": 1e-5,
}  # fmt: skip
TARGETS = ("q_proj", "v_proj", "down_proj")
TEMPLATE = "{% for message in messages %}{{ message.content }}</s>{% endfor %}"


def values(dtype: str, count: int, rng: random.Random, spread: float) -> bytes:
    """`count` random numbers in a dtype: plain Python, so that no library has a say in what the tests read."""
    import struct

    numbers = [rng.gauss(0, spread) for _ in range(count)]
    if dtype == "F32":
        return struct.pack(f"<{count}f", *numbers)
    if dtype == "F16":
        return struct.pack(f"<{count}e", *numbers)
    singles = struct.pack(f"<{count}f", *numbers)
    return b"".join(singles[at + 2 : at + 4] for at in range(0, len(singles), 4))  # BF16: the upper half


def save(path: Path, tensors: list[Tensor], seed: int, spread: float = 0.05) -> None:
    """A safetensors file of random numbers."""
    rng = random.Random(seed)
    with Writer(path, tensors, {"format": "pt"}) as writer:
        for name, dtype, shape in tensors:
            writer.write(writer.slots[name].begin, values(dtype, math.prod(shape), rng, spread))
        writer.commit()


def overwrite(path: Path, tensor: str, content: bytes) -> None:
    """Put `content` at the start of one tensor of a file."""
    with Reader(path, str(path)) as reader:
        (begin,) = (slot.begin for slot in reader.slots if slot.name == tensor)
    with path.open("r+b") as file:
        file.seek(begin)
        file.write(content)


class Small:
    """A folder with `model/`, adapters and a `store/`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.adapters: dict[str, float] = {}

    @property
    def store(self) -> Path:
        return self.root / "store"

    def model(self, shards: int = 1, config: Mapping[str, Any] = LLAMA, seed: int = 1) -> Small:
        """Write the base model."""
        folder = self.root / "model"
        folder.mkdir()
        for name, text in {
            "config.json": json.dumps(dict(config)),
            "generation_config.json": '{"temperature": 0.7}',
            "tokenizer.json": '{"version": "1.0", "added_tokens": [{"id": 2, "content": "</s>", "special": true}]}',
            "tokenizer_config.json": json.dumps({"eos_token": "</s>", "chat_template": TEMPLATE}),
            "README.md": "# a model",
        }.items():
            (folder / name).write_text(text)
        tensors = [(n, g.dtype, g.shape) for g in shapes(config, architecture(config)) for n in expand(g)]
        if shards == 1:
            save(folder / "model.safetensors", tensors, seed)
            return self
        placed: dict[str, str] = {}
        for shard in range(shards):
            file = f"model-{shard + 1:05d}-of-{shards:05d}.safetensors"
            save(folder / file, tensors[shard::shards], seed + shard)
            placed |= {name: file for name, _, _ in tensors[shard::shards]}
        (folder / INDEX).write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": placed}))
        return self

    def adapter(self, name: str, weight: float = 1.0, rank: int = 8, dtype: str = "F32", **config: Any) -> Small:
        """Write an adapter for TARGETS of every layer."""
        folder = self.root / name
        folder.mkdir()
        known = {"peft_type": "LORA", "r": rank, "lora_alpha": 16, "target_modules": list(TARGETS), "bias": "none",
                 "base_model_name_or_path": "org/small"} | config  # fmt: skip
        (folder / "adapter_config.json").write_text(json.dumps(known))
        tensors: list[Tensor] = []
        for module, (out, into) in self.modules().items():
            tensors.append((f"base_model.model.{module}.lora_A.weight", dtype, (rank, into)))
            tensors.append((f"base_model.model.{module}.lora_B.weight", dtype, (out, rank)))
        save(folder / "adapter_model.safetensors", tensors, len(name) + ord(name[0]))
        self.adapters[name] = weight
        return self

    def modules(self) -> dict[str, tuple[int, int]]:
        """The modules that adapters change, with [out, in]."""
        found = {}
        for path in sorted((self.root / "model").glob("*.safetensors")):
            with Reader(path, str(path)) as reader:
                for slot in reader.slots:
                    module = slot.name.removesuffix(".weight")
                    if module.rpartition(".")[2] in TARGETS and len(slot.shape) == 2:
                        found[module] = (slot.shape[0], slot.shape[1])
        return found

    def recipe(self, weights: str = "none", dtype: str = "bfloat16", ignore: tuple[str, ...] = ("lm_head",)) -> Recipe:
        """As COMPILE makes it of what lies there now."""

        def files(name: str) -> dict[str, str]:
            return pinned(Folder(self.root / name, f"./{name}").files())

        adapter_files = {f"{name}/{path}": pin for name in self.adapters for path, pin in files(name).items()}
        adapters = tuple((name, f"./{name}", None, weight) for name, weight in self.adapters.items())
        text = json.dumps([files("model"), adapter_files, adapters, weights, dtype, ignore])
        key = hashlib.sha256(text.encode()).hexdigest()
        return Recipe(key, "./model", "folder", None, files("model"), adapters, adapter_files, weights, dtype, ignore)

    def build(self, recipe: Recipe | None = None, **options: Any) -> Artifact:
        """Build it here, with one thread."""
        defaults: dict[str, Any] = {
            "store": self.store, "python": None, "engine_python": None, "threads": 1, "progress": lambda _: None
        }  # fmt: skip
        return build(recipe or self.recipe(), folder=self.root, **(defaults | options))


def read(folder: Path) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """Every tensor of a folder's weights: dtype, shape, bytes."""
    found = {}
    for path in sorted(folder.glob("*.safetensors")):
        with Reader(path, str(path)) as reader:
            for slot in reader.slots:
                assert slot.end - slot.begin == math.prod(slot.shape) * DTYPE_BYTES[slot.dtype]
                found[slot.name] = (slot.dtype, slot.shape, bytes(reader.read(slot.begin, slot.end)))
    return found
