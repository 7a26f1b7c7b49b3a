"""What ends a turn ends generation: shapes of real families, right and wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tokenizer_folders import (
    CHATML,
    GEMMA,
    GLM4,
    LLAMA3,
    MISTRAL,
    PARTS,
    PHI3,
    added,
    carried,
    codes,
    config,
    folder,
    model,
    parsed,
    said,
    whole,
)  # fmt: skip

from deployc.diagnostics import Severity

QWEN = {"<|endoftext|>": 151643, "<|im_start|>": 151644, "<|im_end|>": 151645}
LLAMA = {"<|begin_of_text|>": 128000, "<|end_of_text|>": 128001, "<|start_header_id|>": 128006,
         "<|end_header_id|>": 128007, "<|eom_id|>": 128008, "<|eot_id|>": 128009}  # fmt: skip
GEMMA2 = {"<bos>": 2, "<eos>": 1, "<start_of_turn>": 106, "<end_of_turn>": 107, "\n": 108}
GEMMA3 = {"<bos>": 2, "<eos>": 1, "<start_of_turn>": 105, "<end_of_turn>": 106, "\n": 107}
MISTRALS = {"<s>": 1, "</s>": 2}
PHI = {"<|endoftext|>": 32000, "<|assistant|>": 32001, "<|system|>": 32006, "<|end|>": 32007, "<|user|>": 32010}
GLM = {"<|endoftext|>": 151329, "[gMASK]": 151331, "<sop>": 151333, "<|user|>": 151336, "<|assistant|>": 151337}

FAMILIES: list[tuple[str, dict[str, int], str, Any, Any]] = [
    ("qwen2.5", QWEN, "<|im_end|>", CHATML, [151645, 151643]),
    ("llama3", LLAMA, "<|eot_id|>", LLAMA3, [128001, 128008, 128009]),
    ("llama3 by its list", LLAMA, "<|end_of_text|>", LLAMA3, [128001, 128009]),
    ("gemma2", GEMMA2, "<eos>", GEMMA, [1, 107]),
    ("gemma3", GEMMA3, "<eos>", GEMMA, [1, 106]),
    ("mistral", MISTRALS, "</s>", MISTRAL, 2),
    ("mistral by its tokenizer", MISTRALS, "</s>", MISTRAL, None),
    ("phi3", PHI, "<|endoftext|>", PHI3, [32000, 32001, 32007]),
    ("glm4 by the next role", GLM, "<|endoftext|>", GLM4, [151329, 151336]),
    ("content in parts", QWEN, "<|im_end|>", PARTS, 151645),
]


@pytest.mark.parametrize(("name", "tokens", "eos", "template", "ids"), FAMILIES, ids=[row[0] for row in FAMILIES])
def test_what_ends_is_left_as_it_is(
    tmp_path: Path, name: str, tokens: dict[str, int], eos: str, template: Any, ids: Any
) -> None:
    generation = {"temperature": 0.6, "eos_token_id": ids, "transformers_version": "4.44.0"}
    base = model(tmp_path, tokens, eos, template, generation)
    result = carried(tmp_path)
    assert codes(result) == []
    assert dict(result.files) == {path.name: path.read_bytes() for path in base.iterdir()}
    assert result.config == {}


LACKING: list[tuple[str, dict[str, int], str, Any, Any, list[int]]] = [
    ("qwen base", QWEN, "<|endoftext|>", CHATML, 151643, [151643, 151645]),
    ("llama3", LLAMA, "<|end_of_text|>", LLAMA3, 128001, [128001, 128009]),
    ("gemma2", GEMMA2, "<eos>", GEMMA, 1, [1, 107]),
    ("gemma3", GEMMA3, "<eos>", GEMMA, [1], [1, 106]),
    ("phi3", PHI, "<|endoftext|>", PHI3, [32000], [32000, 32007]),
    ("glm4", GLM, "<|endoftext|>", GLM4, 151329, [151329, 151336]),
    ("no eos at all", QWEN, "<|endoftext|>", CHATML, None, [151645]),
]


@pytest.mark.parametrize(("name", "tokens", "eos", "template", "ids", "now"), LACKING, ids=[row[0] for row in LACKING])
def test_an_end_that_does_not_end_is_added(
    tmp_path: Path, name: str, tokens: dict[str, int], eos: str, template: Any, ids: Any, now: list[int]
) -> None:
    base = {"temperature": 0.6, "top_p": 0.9, "_from_model_config": True} | (
        {} if ids is None else {"eos_token_id": ids}
    )
    model(tmp_path, tokens, eos, template, base)
    result = carried(tmp_path)
    told = said(result, "DC295")
    assert codes(result) == ["DC295"]
    assert told.severity is Severity.WARNING
    token = next(t for t, number in tokens.items() if number == now[-1])
    assert f"{token!r} ({now[-1]})" in told.detail
    assert str(tokens[eos]) in told.detail
    assert parsed(result, "generation_config.json") == {"temperature": 0.6, "top_p": 0.9, "eos_token_id": now}


def test_an_adapters_template_on_a_base_that_only_continues_text(tmp_path: Path) -> None:
    """The model that never stops talking: Qwen2.5-7B with an adapter trained on chats."""
    model(tmp_path, QWEN, "<|endoftext|>", None, {"eos_token_id": 151643, "max_new_tokens": 2048})
    folder(tmp_path / "chat", chat_template__jinja=CHATML)
    result = carried(tmp_path, "chat")
    assert codes(result) == ["DC279", "DC295"]
    assert parsed(result, "generation_config.json") == {"eos_token_id": [151643, 151645], "max_new_tokens": 2048}
    assert result.files["chat_template.jinja"] == CHATML.encode()


def test_without_generation_config_that_of_the_config_counts(tmp_path: Path) -> None:
    model(tmp_path, QWEN, "<|endoftext|>", CHATML, None)
    assert codes(carried(tmp_path, of={"eos_token_id": [151643, 151645]})) == []
    assert codes(carried(tmp_path, of={"text_config": {"eos_token_id": 151645}})) == []
    result = carried(
        tmp_path, of={"eos_token_id": 151643, "bos_token_id": 151643, "temperature": 0.5, "hidden_size": 8}
    )
    assert parsed(result, "generation_config.json") == {
        "eos_token_id": [151643, 151645], "bos_token_id": 151643, "temperature": 0.5
    }  # fmt: skip
    assert "151643 (eos_token_id of config.json)" in said(result, "DC295").detail


def test_where_generation_config_is_the_configs_ids_do_not_count(tmp_path: Path) -> None:
    model(tmp_path, QWEN, "<|endoftext|>", CHATML, {"temperature": 1.0})
    assert codes(carried(tmp_path, of={"eos_token_id": 151645})) == ["DC295"]


def test_chatml_added_and_resized_by_the_trainer(tmp_path: Path) -> None:
    """axolotl, LLaMA-Factory: a Llama base with two tokens more, a resized vocabulary, eos still </s>."""
    model(tmp_path, MISTRALS, "</s>", None, {"eos_token_id": 2, "bos_token_id": 1})
    tokens = MISTRALS | {"<|im_start|>": 32000, "<|im_end|>": 32001}
    folder(
        tmp_path / "axo", tokenizer__json=whole(tokens), tokenizer_config__json=config("</s>", "<s>", CHATML),
        special_tokens_map__json={"eos_token": "</s>"}, added_tokens__json={"<|im_end|>": 32001, "<|im_start|>": 32000},
    )  # fmt: skip
    result = carried(tmp_path, "axo", rows=32002)
    assert codes(result) == ["DC279", "DC295"]
    assert parsed(result, "generation_config.json")["eos_token_id"] == [2, 32001]
    assert "'<|im_start|>' (32000), '<|im_end|>' (32001)" in said(result, "DC279").detail
    other = carried(tmp_path, "axo", rows=32000)
    assert [d.code for d in other.report.errors] == ["DC294"]
    assert "'<|im_start|>' (32000), '<|im_end|>' (32001): 2 tokens lie" in said(other, "DC294").detail


def test_the_served_template_is_the_one_that_is_checked(tmp_path: Path) -> None:
    model(tmp_path, QWEN, "<|endoftext|>", "{% broken", {"eos_token_id": 151643})
    result = carried(tmp_path, template=CHATML)
    assert codes(result) == ["DC295"]
    assert "The template of api.chat_template ends a turn" in said(result, "DC295").detail
    assert [d.code for d in carried(tmp_path).report.errors] == ["DC297"]


def test_every_named_template_that_is_served(tmp_path: Path) -> None:
    tools = "{% if not tools %}{{ raise_exception('no tools') }}{% endif %}" + CHATML
    ended = CHATML.replace("'<|im_end|>'", "'<|endoftext|>'")
    rows = [{"name": "default", "template": ended}, {"name": "tool_use", "template": tools},
            {"name": "rag", "template": "{% never looked at"}]  # fmt: skip
    model(tmp_path, QWEN, "<|endoftext|>", rows, {"eos_token_id": 151643})
    result = carried(tmp_path)
    assert codes(result) == ["DC295"]
    assert "chat template 'tool_use'" in said(result, "DC295").detail
    assert parsed(result, "generation_config.json")["eos_token_id"] == [151643, 151645]


def test_named_templates_without_a_default(tmp_path: Path) -> None:
    model(tmp_path, QWEN, "<|im_end|>", [{"name": "rag", "template": CHATML}], {"eos_token_id": 151645})
    assert "'rag'" in said(carried(tmp_path), "DC296").detail


def test_an_end_that_is_text_only(tmp_path: Path) -> None:
    """ChatML on a vocabulary without its tokens."""
    model(tmp_path, MISTRALS, "</s>", CHATML, {"eos_token_id": 2})
    result = carried(tmp_path)
    assert codes(result) == ["DC296"]
    assert "<|im_end|>" in said(result, "DC296").detail
    assert parsed(result, "generation_config.json") == {"eos_token_id": 2}


@pytest.mark.parametrize(
    ("template", "word"),
    [
        ("{% for m in messages %}{{ m.role }}: {{ m.content }}{% endfor %}", "no added or special token"),
        ("{{ messages[1].content }}", "nothing at all"),
        ("{% for m in messages %}{{ m.role }}{% endfor %}", "without the assistant's words"),
        ("{% for m in messages %}{{ bos_token }}{{ m.content }}{% endfor %}", "begins the next turn"),
        ("{{ raise_exception('give me a source_lang_code') }}", "source_lang_code"),
    ],
)
def test_an_end_that_cannot_be_told(tmp_path: Path, template: str, word: str) -> None:
    base = MISTRALS | {"<unk>": 0}
    model(tmp_path, base, "</s>", template, {"eos_token_id": 2})
    result = carried(tmp_path)
    assert codes(result) == ["DC296"]
    assert word in said(result, "DC296").detail
    assert said(result, "DC296").severity is Severity.WARNING


def test_no_template_is_a_note(tmp_path: Path) -> None:
    model(tmp_path, QWEN, "<|endoftext|>", None, {"eos_token_id": 151643})
    assert said(carried(tmp_path), "DC296").severity is Severity.NOTE


def test_an_end_beyond_the_rows_is_not_added(tmp_path: Path) -> None:
    model(tmp_path, QWEN, "<|endoftext|>", CHATML, {"eos_token_id": 151643})
    result = carried(tmp_path, rows=151645)
    assert [d.code for d in result.report.errors] == ["DC294"]
    assert "the end of a turn: '<|im_end|>' (151645)" in said_error(result)
    assert parsed(result, "generation_config.json") == {"eos_token_id": 151643}


def said_error(result: Any) -> str:
    (found,) = result.report.errors
    return str(found.detail)


def test_the_longest_token_at_a_place(tmp_path: Path) -> None:
    tokens = {"<|im": 5, "<|im_end|>": 6, "<|im_start|>": 7, "</s>": 2}
    model(tmp_path, tokens, "</s>", CHATML, {"eos_token_id": 2})
    assert parsed(carried(tmp_path), "generation_config.json")["eos_token_id"] == [2, 6]


def test_tokens_that_only_the_config_knows(tmp_path: Path) -> None:
    """A slow tokenizer's folder: vocab.json, merges.txt, and the added tokens by id in tokenizer_config.json."""
    decoder = {str(row["id"]): {k: v for k, v in row.items() if k != "id"} for row in added(QWEN)}
    folder(
        tmp_path / "model", vocab__json={"a": 0, "b": 1}, merges__txt="#version: 0.2\na b\n",
        tokenizer_config__json=config("<|endoftext|>", None, CHATML, added_tokens_decoder=decoder),
        generation_config__json={"eos_token_id": 151643},
    )  # fmt: skip
    result = carried(tmp_path)
    assert parsed(result, "generation_config.json")["eos_token_id"] == [151643, 151645]
