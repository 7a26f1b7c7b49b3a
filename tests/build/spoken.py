"""A tiny random llama that has a real tokenizer with a chat template, and text files to calibrate it with."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

TEMPLATE = (
    "{% for message in messages %}{% if message.role == 'tool' %}{{ raise_exception('no tools here') }}{% endif %}"
    "<{{ message.role }}>{{ message.content }}</s>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)
WORDS = (
    "the", "model", "answers", "questions", "about", "cards", "memory", "weights", "layers", "and", "how", "fast",
    "a", "small", "engine", "can", "be",
)  # fmt: skip


def sentences(count: int, seed: int = 0) -> list[str]:
    """So many sentences of a few words each, the same for the same seed."""
    chance = random.Random(seed)
    return [" ".join(chance.choices(WORDS, k=chance.randint(12, 40))) for _ in range(count)]


def tokenizer(folder: Path) -> Path:
    """A byte-level BPE tokenizer of 320 tokens, trained on the sentences."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["</s>", "<user>", "<assistant>", "<system>"]
    made.train_from_iterator(
        sentences(50), trainers.BpeTrainer(vocab_size=320, special_tokens=special, initial_alphabet=alphabet)
    )
    whole = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="</s>", pad_token="</s>")
    whole.chat_template = TEMPLATE
    whole.save_pretrained(folder)
    return folder


def llama(folder: Path, **changes: Any) -> Path:
    """A random `LlamaForCausalLM` in bfloat16, 2 layers, every linear layer's inputs a multiple of 32, tokenizer too.

    Some channels are large, as in models that were trained: what calibration is for.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(3)
    sizes = {
        "vocab_size": 320, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256, "tie_word_embeddings": True,
    }  # fmt: skip
    whole = LlamaForCausalLM(LlamaConfig(**{**sizes, **changes}))
    with torch.no_grad():
        for name, parameter in whole.named_parameters():
            if name.endswith("layernorm.weight"):
                parameter[::16] *= 12
            elif parameter.dim() == 2:
                parameter.mul_(4)
    whole.to(torch.bfloat16).save_pretrained(folder)
    return tokenizer(folder)


def jsonl(path: Path, lines: Sequence[Any]) -> Path:
    """One value a line."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def spoken(path: Path, count: int = 24) -> Path:
    """Texts and chats in turn."""
    said = sentences(count, seed=1)
    chats = [{"messages": [{"role": "user", "content": s}, {"role": "assistant", "content": s[::-1]}]} for s in said]
    return jsonl(path, [chats[number] if number % 2 else {"text": text} for number, text in enumerate(said)])
