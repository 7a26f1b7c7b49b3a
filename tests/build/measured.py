"""A tiny model that has learned some text, with a real tokenizer; artifacts of it by compressed-tensors' compressors.

Importing this loads no library: the functions that make something do.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

TEMPLATE = (
    "{% for m in messages %}<{{ m['role'] }}> {{ m['content'] }} <end> {% endfor %}"
    "{% if add_generation_prompt %}<assistant> {% endif %}"
)
WORDS = [
    "the",
    "cat",
    "dog",
    "bird",
    "sees",
    "hears",
    "eats",
    "a",
    "red",
    "blue",
    "small",
    "fish",
    "tree",
    "and",
    "then",
]
MARKS = ["<unk>", "<end>", "<user>", "<assistant>", "<system>", "[", "]", "{", "}", '"', ",", "1", "2"]
FORMATS = {
    "fp8": ("FP8_DYNAMIC", "float-quantized"),
    "int8": ("W8A8", "int-quantized"),
    "int8-weight-only": ("W8A16", "pack-quantized"),
    "int4": ("W4A16", "pack-quantized"),
    "int4-zero": ("W4A16_ASYM", "pack-quantized"),
}
"""Our name -> the scheme and the format as compressed-tensors calls them."""


def sentences(count: int, seed: int = 0, length: int = 24) -> list[str]:
    """Text with some order in it: after a word comes one of three."""
    chance = random.Random(seed)
    made = []
    for _ in range(count):
        words = [chance.choice(WORDS)]
        while len(words) < length:
            at = WORDS.index(words[-1])
            words.append(WORDS[(at * 3 + chance.choice((1, 1, 1, 2, 5))) % len(WORDS)])
        made.append(" ".join(words))
    return made


def model(folder: Path, steps: int = 60, kind: str = "Llama", **config: Any) -> Path:
    """A causal model of transformers in bfloat16, trained for some steps on `sentences`, with its tokenizer."""
    import torch
    import transformers

    made = tokenizer(folder)
    sizes = {
        "vocab_size": len(made), "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256, "eos_token_id": 1,
        "bos_token_id": None, "pad_token_id": 1,
    } | config  # fmt: skip
    torch.manual_seed(3)
    whole = getattr(transformers, f"{kind}ForCausalLM")(getattr(transformers, f"{kind}Config")(**sizes))
    ids = torch.tensor([made(text)["input_ids"] for text in sentences(64)])
    optimizer = torch.optim.AdamW(whole.parameters(), lr=3e-3)
    for step in range(steps):
        part = ids[(step * 16) % 64 : (step * 16) % 64 + 16]
        whole(input_ids=part, labels=part).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    whole.to(torch.bfloat16).save_pretrained(folder)
    return folder


def tokenizer(folder: Path) -> Any:
    """One token a word, with a chat template."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate([*MARKS, *WORDS])}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="<unk>", eos_token="<end>", pad_token="<end>")
    made.chat_template = TEMPLATE
    made.save_pretrained(folder)
    return made


def scheme(name: str, group: int = 32) -> Any:
    """compressed-tensors' scheme of one of FORMATS; 4-bit weights in groups of `group` inputs."""
    from compressed_tensors.quantization import QuantizationArgs, preset_name_to_scheme

    found = preset_name_to_scheme(FORMATS[name][0], ["Linear"])
    if name == "int8-weight-only":  # a scale a row; the preset's is in groups
        found.weights = QuantizationArgs(num_bits=8, type="int", symmetric=True, strategy="channel")
    if name.startswith("int4"):
        found.weights.group_size = group
    return found


def stored(weight: Any, name: str) -> dict[str, Any]:
    """The parameters that compressed-tensors stores in place of a weight [out, in]."""
    import torch
    from compressed_tensors.compressors.base import BaseCompressor
    from compressed_tensors.quantization.utils import calculate_qparams

    of = scheme(name)
    width = of.weights.group_size if of.weights.group_size else weight.shape[1]
    grouped = weight.reshape(weight.shape[0], -1, width)
    scale, zero = calculate_qparams(grouped.amin(dim=-1), grouped.amax(dim=-1), of.weights)
    state = {"weight": weight, "weight_scale": scale.to(weight.dtype), "weight_zero_point": zero}
    made = BaseCompressor.get_value_from_registry(FORMATS[name][1]).compress(state, of)
    kept = {key: value for key, value in made.items() if value is not None}
    return {key: value if isinstance(value, torch.Tensor) else torch.tensor(value) for key, value in kept.items()}


def restored(parameters: dict[str, Any], name: str) -> Any:
    """What compressed-tensors makes of them."""
    from compressed_tensors.compressors.base import BaseCompressor

    return BaseCompressor.get_value_from_registry(FORMATS[name][1]).decompress(dict(parameters), scheme(name))["weight"]


def artifact(folder: Path, base: Path, name: str) -> Path:
    """The base with its linear layers quantized, as an artifact of the store looks."""
    import shutil

    from safetensors.torch import load_file, save_file

    shutil.copytree(base, folder)
    made: dict[str, Any] = {}
    for tensor, weight in load_file(base / "model.safetensors").items():
        if tensor.endswith("_proj.weight"):
            made |= {f"{tensor.removesuffix('.weight')}.{k}": v.contiguous() for k, v in stored(weight, name).items()}
        else:
            made[tensor] = weight
    save_file(made, folder / "model.safetensors", {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    group = json.loads(scheme(name).model_dump_json())
    config["quantization_config"] = {
        "config_groups": {"group_0": group}, "quant_method": "compressed-tensors", "format": FORMATS[name][1],
        "quantization_status": "compressed", "ignore": ["lm_head"],
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def lines(path: Path, written: Sequence[dict[str, Any]]) -> Path:
    """A JSON Lines file."""
    path.write_text("".join(json.dumps(line) + "\n" for line in written))
    return path
