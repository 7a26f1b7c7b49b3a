"""Whose tokenizer, template and generation_config an artifact has, and what is said of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizer_folders import CHATML, carried, codes, config, folder, model, parsed, said, whole

QWEN = {"<|endoftext|>": 151643, "<|im_start|>": 151644, "<|im_end|>": 151645}
ENDS = {"eos_token_id": [151645, 151643]}
MORE = QWEN | {"<|tool|>": 151646}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return model(tmp_path, QWEN, "<|im_end|>", CHATML, ENDS, vocab__json={"t0": 0}, modeling_x__py="x = 1\n")


def test_an_adapter_with_a_tokenizer_of_its_own_brings_the_whole_set(tmp_path: Path, base: Path) -> None:
    own = folder(
        tmp_path / "qa", tokenizer__json=whole(MORE), tokenizer_config__json=config("<|endoftext|>", "<s>", CHATML),
        special_tokens_map__json={"eos_token": "<|endoftext|>"}, tokenization_x__py="import os\n",
    )  # fmt: skip
    result = carried(tmp_path, "qa")
    assert codes(result) == ["DC279"]
    assert set(result.files) == {
        "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "generation_config.json", "modeling_x.py",
    }  # fmt: skip
    assert result.files["tokenizer.json"] == (own / "tokenizer.json").read_bytes()
    detail = said(result, "DC279").detail
    assert "adapter qa brings its own tokenizer" in detail
    assert "- added tokens: '<|tool|>' (151646)\n" in detail
    assert "- eos_token: '<|im_end|>' -> '<|endoftext|>'" in detail
    assert "template" not in detail
    assert set(result.inputs) == {
        *(f"model/{p.name}" for p in base.iterdir()), "adapters/qa/tokenizer.json",
        "adapters/qa/tokenizer_config.json", "adapters/qa/special_tokens_map.json",
    }  # fmt: skip


def spelled(value: dict[str, Any]) -> dict[str, Any]:
    """tokenizer.json as another version of the libraries writes it."""
    pairs = [merge.split(" ") for merge in value["model"]["merges"]]
    made = {**value["model"], "merges": pairs, "dropout": None, "ignore_merges": False, "byte_fallback": False}
    return {**dict(reversed(value.items())), "model": made, "truncation": {"max_length": 512}, "padding": {"pad_id": 0}}


@pytest.mark.parametrize(
    "files",
    [
        {"tokenizer__json": whole(QWEN)},
        {"tokenizer__json": json.dumps(spelled(whole(QWEN)), indent=2)},
        {"tokenizer__json": whole(QWEN), "tokenizer_config__json": {
            "padding_side": "left", "pad_token": "<|endoftext|>", "model_max_length": 512,
            "tokenizer_class": "TokenizersBackend", "bos_token": "<s>", "is_local": True,
            "eos_token": {"content": "<|im_end|>", "special": True},
            "extra_special_tokens": ["<|im_start|>"], "chat_template": CHATML + "\n"}},
        {"added_tokens__json": QWEN, "tokenizer_config__json": {"padding_side": "right"}},
        {"chat_template__jinja": CHATML.encode()},
        {"chat_template__jinja": b"\xef\xbb\xbf" + CHATML.encode()},
        {"tokenizer_config__json": {"chat_template": [{"name": "default", "template": CHATML}]}},
        {"generation_config__json": {"transformers_version": "5.0", "eos_token_id": [151643, 151645]}},
        {"special_tokens_map__json": {"eos_token": {"content": "<|im_end|>", "lstrip": False}}},
    ],
)  # fmt: skip
def test_what_means_the_same_is_not_told_and_leaves_the_models(
    tmp_path: Path, base: Path, files: dict[str, Any]
) -> None:
    folder(tmp_path / "qa", **files)
    result = carried(tmp_path, "qa")
    assert codes(result) == []
    assert dict(result.files) == {path.name: path.read_bytes() for path in base.iterdir()}


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda t, _: t["added_tokens"].pop(), "without the tokens: '<|im_end|>' (151645)"),
        (lambda t, _: t["model"]["vocab"].update(new=100), "vocabulary: 103 -> 104 tokens, 1 of them new"),
        (lambda t, _: t["model"]["vocab"].update(t5=6, t6=5), "tokens with another id: 't6' (5), 't5' (6)"),
        (lambda t, _: t["added_tokens"][1].update(special=False), "no longer `special`: '<|im_start|>' (151644)"),
        (lambda t, _: t.update(normalizer={"type": "NFC"}), "how text is split: normalizer"),
        (lambda t, _: t["model"]["merges"].append("t1 t2"), "how text is split: model"),
        (lambda _, c: c.update(bos_token=None), "bos_token: '<s>' -> none"),
        (lambda _, c: c.update(eos_token="<|im_start|>"), "eos_token: '<|im_end|>' -> '<|im_start|>'"),
        (lambda _, c: c.update(chat_template="{{ messages[0].content }}{{ eos_token }}"), "first difference in line 1"),
    ],
)  # fmt: skip
def test_what_differs_is_named(tmp_path: Path, base: Path, change: Any, line: str) -> None:
    tokenizer, settings = whole(QWEN), config("<|im_end|>", "<s>", CHATML)
    change(tokenizer, settings)
    if "<|im_end|>" not in json.dumps(tokenizer):
        settings |= {"eos_token": "<|endoftext|>"}
    folder(tmp_path / "qa", tokenizer__json=tokenizer, tokenizer_config__json=settings)
    assert line in said(carried(tmp_path, "qa"), "DC279").detail


OTHER = CHATML.replace("'<|im_start|>' +", "'<|im_start|>' + '' +")


@pytest.mark.parametrize(
    ("files", "place"),
    [
        ({"chat_template__jinja": OTHER}, "chat_template.jinja"),
        ({"tokenizer_config__json": {"chat_template": OTHER}}, "chat_template.jinja"),
        ({"chat_template__json": {"chat_template": OTHER}}, "chat_template.json"),
    ],
)
def test_an_adapter_with_a_template_alone(tmp_path: Path, base: Path, files: dict[str, Any], place: str) -> None:
    (base / "chat_template.jinja").write_text(CHATML)
    folder(tmp_path / "qa", **files)
    result = carried(tmp_path, "qa")
    assert codes(result) == ["DC279"]
    assert "own chat template;" in said(result, "DC279").detail
    assert [name for name in result.files if name.startswith("chat_template")] == [place]
    assert OTHER in str(
        result.files[place].decode() if place.endswith("jinja") else parsed(result, place)["chat_template"]
    )
    assert parsed(result, "tokenizer_config.json") == config("<|im_end|>", "<s>")
    assert result.files["tokenizer.json"] == (base / "tokenizer.json").read_bytes()


def test_named_templates_of_an_adapter(tmp_path: Path, base: Path) -> None:
    rows = [{"name": "default", "template": OTHER}, {"name": "tool_use", "template": CHATML}]
    folder(tmp_path / "qa", tokenizer_config__json={"chat_template": rows})
    result = carried(tmp_path, "qa")
    assert codes(result) == ["DC279"]
    assert parsed(result, "tokenizer_config.json") == config("<|im_end|>", "<s>", rows)
    assert "chat template 'tool_use': none -> 1 line" in said(result, "DC279").detail


def test_a_tokenizer_without_a_template_keeps_the_models(tmp_path: Path, base: Path) -> None:
    folder(tmp_path / "qa", tokenizer__json=whole(MORE), tokenizer_config__json=config("<|im_end|>", "<s>"))
    result = carried(tmp_path, "qa")
    assert "It has no chat template of its own: the model's stays." in said(result, "DC279").detail
    assert result.files["chat_template.jinja"].decode() == CHATML


def test_a_vocabulary_and_a_template_without_settings(tmp_path: Path, base: Path) -> None:
    """The model's tokenizer_config.json stays, but not the template in it."""
    folder(tmp_path / "qa", tokenizer__json=whole(MORE), chat_template__jinja=OTHER)
    result = carried(tmp_path, "qa")
    assert "own tokenizer and chat template;" in said(result, "DC279").detail
    assert parsed(result, "tokenizer_config.json") == config("<|im_end|>", "<s>")
    assert result.files["chat_template.jinja"].decode() == OTHER


def test_a_processors_template_stays_with_a_model_that_is_left_alone(tmp_path: Path, base: Path) -> None:
    (base / "chat_template.json").write_text(json.dumps({"chat_template": CHATML}))
    (base / "preprocessor_config.json").write_text("{}")
    assert dict(carried(tmp_path).files) == {path.name: path.read_bytes() for path in base.iterdir()}
    folder(tmp_path / "qa", chat_template__jinja=OTHER)
    names = carried(tmp_path, "qa").files.keys()
    assert ("chat_template.jinja" in names, "chat_template.json" in names) == (True, False)


def test_an_adapters_generation_config(tmp_path: Path, base: Path) -> None:
    folder(tmp_path / "qa", generation_config__json={"eos_token_id": 151645, "temperature": 0.2})
    result = carried(tmp_path, "qa")
    assert parsed(result, "generation_config.json") == {"eos_token_id": 151645, "temperature": 0.2}
    assert "temperature of generation_config.json: none -> 0.2" in said(result, "DC279").detail


def test_settings_without_a_vocabulary_change_key_by_key(tmp_path: Path, base: Path) -> None:
    folder(tmp_path / "qa", tokenizer_config__json={"eos_token": "<|endoftext|>"})
    result = carried(tmp_path, "qa")
    assert parsed(result, "tokenizer_config.json") == config("<|endoftext|>", "<s>", CHATML)


def test_a_vocabulary_without_settings_takes_the_models(tmp_path: Path, base: Path) -> None:
    folder(tmp_path / "qa", tokenizer__json=whole(MORE))
    result = carried(tmp_path, "qa")
    assert codes(result) == ["DC279"]
    assert result.files["tokenizer_config.json"] == (base / "tokenizer_config.json").read_bytes()
    assert "vocab.json" not in result.files


@pytest.mark.parametrize(
    ("files", "detail"),
    [
        ({"added_tokens__json": {"<|new|>": 9}}, "'<|new|>' (9) is in added_tokens.json but not in tokenizer.json"),
        ({"added_tokens__json": {"<|im_end|>": 7}}, "'<|im_end|>' is 151645 in tokenizer.json and 7 in added_tokens"),
        ({"tokenizer__json": whole(QWEN | {"<x>": 9}), "added_tokens__json": {"<y>": 9}}, "9 is '<x>' in tokenizer"),
        ({"tokenizer_config__json": {"eos_token": "<eot>"}}, "eos_token is '<eot>', which has no id"),
        ({"tokenizer__json": whole({"</s>": 2})}, "eos_token is '<|im_end|>', which has no id"),
        ({"tokenizer_config__json": {"added_tokens_decoder": {"5": {"content": "<|im_end|>"}}}}, "'<|im_end|>' is 15"),
    ],
)  # fmt: skip
def test_files_that_are_not_of_one_save(tmp_path: Path, base: Path, files: dict[str, Any], detail: str) -> None:
    folder(tmp_path / "qa", **files)
    result = carried(tmp_path, "qa")
    assert "DC298" in [d.code for d in result.report.errors]
    assert said(result, "DC298").detail.startswith("adapter qa: ")
    assert detail in said(result, "DC298").detail


def test_what_was_wrong_in_the_model_already_is_not_the_adapters_fault(tmp_path: Path) -> None:
    model(tmp_path, QWEN, "<|im_end|>", CHATML, ENDS, added_tokens__json={"<|stale|>": 151650})
    folder(tmp_path / "qa", tokenizer_config__json={"eos_token": "<|endoftext|>"})
    assert codes(carried(tmp_path, "qa")) == ["DC279"]


@pytest.mark.parametrize(
    ("first", "second", "what", "line"),
    [
        ({"tokenizer__json": whole(MORE)}, {"tokenizer__json": whole(QWEN)}, "tokenizers", "without the tokens"),
        ({"chat_template__jinja": OTHER}, {"chat_template__json": {"chat_template": CHATML}}, "chat templates", "line"),
        ({"generation_config__json": {"eos_token_id": 1}}, {"generation_config__json": {"eos_token_id": 2}},
         "generation configs", "eos_token_id"),
    ],
)  # fmt: skip
def test_adapters_that_cannot_share_an_artifact(
    tmp_path: Path, base: Path, first: dict[str, Any], second: dict[str, Any], what: str, line: str
) -> None:
    folder(tmp_path / "qa", **first)
    folder(tmp_path / "plain")
    folder(tmp_path / "chat", **second)
    result = carried(tmp_path, "qa", "plain", "chat")
    assert "DC293" in [d.code for d in result.report.errors]
    assert f"adapter qa and adapter chat bring different {what}:" in said(result, "DC293").detail
    assert line in said(result, "DC293").detail


def test_adapters_that_bring_the_same_share_it(tmp_path: Path, base: Path) -> None:
    for name in ("qa", "chat"):
        folder(tmp_path / name, tokenizer__json=whole(MORE), tokenizer_config__json=config("<|im_end|>", "<s>", CHATML))
    folder(tmp_path / "style", chat_template__jinja=CHATML)
    result = carried(tmp_path, "qa", "chat", "style")
    assert codes(result) == ["DC279"]
    assert "adapter qa brings" in said(result, "DC279").detail


def test_python_code_of_an_adapter_is_refused(tmp_path: Path) -> None:
    code = {"AutoTokenizer": ["tokenization_x.X", None]}
    tokenizer = {"tokenizer__json": whole(QWEN), "tokenizer_config__json": config("<|im_end|>", auto_map=code)}
    folder(tmp_path / "model", generation_config__json=ENDS, chat_template__jinja=CHATML, **tokenizer)
    folder(tmp_path / "same", **tokenizer)
    assert codes(carried(tmp_path, "same")) == []
    other = {"AutoTokenizer": ["org/other--tokenization_x.X", None]}
    folder(tmp_path / "other", tokenizer__json=whole(QWEN), tokenizer_config__json=config("<|im_end|>", auto_map=other))
    result = carried(tmp_path, "other")
    assert [d.code for d in result.report.errors] == ["DC298"]
    assert "org/other--tokenization_x.X" in said(result, "DC298").detail
