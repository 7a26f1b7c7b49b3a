"""What transformers itself makes of the files: the same text, the same ids, the same stops."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizer_folders import CHATML, GEMMA, LLAMA3, MISTRAL, PARTS, PHI3, carried, codes, parsed, said

from deployc.build.tokenizer.ending import candidates, first_token
from deployc.build.tokenizer.meaning import meaning
from deployc.build.tokenizer.rendering import render
from deployc.build.tokenizer.small import of_model

pytestmark = pytest.mark.build

SPECIAL = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<|end|>"]


def tokenizer(template: str | None, eos: str = "</s>", more: list[str] = []) -> Any:  # noqa: B006
    """A BPE tokenizer trained on three lines."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE(unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=150, special_tokens=SPECIAL, show_progress=False)
    made.train_from_iterator(["what is two and two", "four is the answer", "thank you so far"], trainer)
    real = PreTrainedTokenizerFast(tokenizer_object=made, eos_token=eos, bos_token="<s>", unk_token="<unk>")
    real.add_tokens(more, special_tokens=True)
    real.chat_template = template
    return real


CHAT = [
    {"role": "user", "content": "Wie spät ist es, 你好? <b>"},
    {"role": "assistant", "content": "four is the answer"},
]
TOOLS = "{% for t in tools or [] %}{{ t | tojson(indent=4) }}\n{% endfor %}"


@pytest.mark.parametrize(
    "template", [CHATML, LLAMA3, GEMMA, MISTRAL, PHI3, TOOLS + CHATML, "\n{%- if true %}\n a\n{%- endif %}\n" + CHATML]
)
@pytest.mark.parametrize("tools", [None, [{"type": "function", "function": {"name": "grüße", "parameters": {}}}]])
@pytest.mark.parametrize("prompt", [False, True])
def test_the_same_text_and_ids_as_transformers(tmp_path: Path, template: str, tools: Any, prompt: bool) -> None:
    real = tokenizer(template)
    real.save_pretrained(tmp_path / "model")
    ours = meaning(of_model(tmp_path / "model"))
    variables = {**ours.variables, "messages": CHAT, "tools": tools, "documents": None, "add_generation_prompt": prompt}
    (rendered,) = render([(template, variables)])
    theirs = real.apply_chat_template(CHAT, tools=tools, tokenize=False, add_generation_prompt=prompt)
    assert rendered.text == theirs
    assert ours.tokens == real.get_vocab()
    assert (ours.id("eos_token"), ours.id("bos_token")) == (real.eos_token_id, real.bos_token_id)
    end = first_token(theirs.rpartition("answer")[2], candidates(ours))
    assert end is not None
    assert ours.tokens[end] == next(
        n for n in real.encode(theirs.rpartition("answer")[2]) if n in real.added_tokens_decoder
    )


def test_what_is_mended_is_what_transformers_stops_at(tmp_path: Path) -> None:
    """A base that continues text, and an adapter saved as trainers do, with two tokens more."""
    from transformers import AutoTokenizer, GenerationConfig

    tokenizer(None).save_pretrained(tmp_path / "model")
    GenerationConfig(eos_token_id=2, temperature=0.3, do_sample=True).save_pretrained(tmp_path / "model")
    own = tokenizer(CHATML.replace("<|im_end|>", "<|done|>"), more=["<|tool|>", "<|done|>"])
    own.save_pretrained(tmp_path / "qa")
    result = carried(tmp_path, "qa", rows=len(own))
    assert codes(result) == ["DC279", "DC295"]
    place = tmp_path / "artifact"
    place.mkdir()
    for name, raw in result.files.items():
        (place / name).write_bytes(raw)
    read, generation = AutoTokenizer.from_pretrained(place), GenerationConfig.from_pretrained(place)
    assert generation.eos_token_id == [2, own.convert_tokens_to_ids("<|done|>")]
    assert generation.temperature == 0.3
    assert read.get_vocab() == own.get_vocab()
    assert read.apply_chat_template(CHAT, tokenize=False) == own.apply_chat_template(CHAT, tokenize=False)
    assert [d.code for d in carried(tmp_path, "qa", rows=len(own) - 1).report.errors] == ["DC294"]


def test_a_tokenizer_that_was_only_saved_again_is_the_same(tmp_path: Path) -> None:
    """As a trainer does: loaded, padded and cut, given another length, saved."""
    from transformers import AutoTokenizer

    tokenizer(CHATML, eos="<|im_end|>").save_pretrained(tmp_path / "model")
    again = AutoTokenizer.from_pretrained(tmp_path / "model")
    again.padding_side, again.model_max_length, again.pad_token = "left", 512, again.eos_token
    again(["a", "two and two"], padding="max_length", truncation=True, max_length=16)
    again.save_pretrained(tmp_path / "qa")
    files = [(tmp_path / name / "tokenizer.json").read_bytes() for name in ("model", "qa")]
    assert files[0] != files[1]
    assert codes(carried(tmp_path, "qa")) == []


def test_an_adapters_key_alone_is_read_by_transformers(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer(GEMMA, eos="<|im_end|>").save_pretrained(tmp_path / "model")
    (tmp_path / "qa").mkdir()
    (tmp_path / "qa/tokenizer_config.json").write_text(json.dumps({"chat_template": PARTS}))
    result = carried(tmp_path, "qa")
    assert "chat template" in said(result, "DC279").detail
    (tmp_path / "artifact").mkdir()
    for name, raw in result.files.items():
        (tmp_path / "artifact" / name).write_bytes(raw)
    assert AutoTokenizer.from_pretrained(tmp_path / "artifact").chat_template == PARTS
    assert "chat_template" not in parsed(result, "tokenizer_config.json")
