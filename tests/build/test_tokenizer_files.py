"""Files as they come: marks and line ends, what is no JSON, sentencepiece, ids that have no row."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path
from typing import Any

import pytest
from tokenizer_folders import CHATML, MISTRAL, carried, codes, config, folder, model, parsed, said, whole

from deployc.build.tokenizer.sentencepiece import CONTROL, pieces
from deployc.diagnostics import Severity
from deployc.types.manifest import Content

QWEN = {"<|endoftext|>": 151643, "<|im_start|>": 151644, "<|im_end|>": 151645}
BOM = b"\xef\xbb\xbf"


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def sentencepiece(named: list[tuple[str, int]]) -> bytes:
    """A sentencepiece model of these pieces with their types, and a trainer_spec behind them."""
    made = b""
    for piece, kind in named:
        raw = piece.encode()
        row = b"\x0a" + varint(len(raw)) + raw + b"\x15" + struct.pack("<f", -1.5) + b"\x18" + varint(kind)
        made += b"\x0a" + varint(len(row)) + row
    return made + b"\x12\x02\x18\x01"


LLAMA2 = sentencepiece([("<unk>", 2), ("<s>", CONTROL), ("</s>", CONTROL), *((f"▁t{i}", 1) for i in range(200))])


def test_pieces_have_their_places_as_ids() -> None:
    found = pieces(LLAMA2)
    assert found is not None
    assert (found[2], found[3], len(found)) == (("</s>", 3), ("▁t0", 1), 203)


@pytest.mark.parametrize(
    "raw", [b"", b"aGVsbG8= 0\nd29ybGQ= 1\n", b"\x0a\xff", b"\x0a\x05ab", b"\xff" * 20, LLAMA2[:-3]]
)
def test_what_is_no_sentencepiece_model(raw: bytes) -> None:
    assert pieces(raw) is None


def test_a_tokenizer_of_sentencepiece_alone(tmp_path: Path) -> None:
    """Llama 2's first form: ids of special tokens stand in tokenizer.model only."""
    more = {"tokenizer__model": LLAMA2, "special_tokens_map__json": {"eos_token": "</s>", "bos_token": "<s>"}}
    base = folder(tmp_path / "model", tokenizer_config__json={"chat_template": MISTRAL}, **more)
    assert codes(carried(tmp_path, rows=203)) == []
    (base / "tokenizer_config.json").write_text(
        '{"chat_template": "{% for m in messages %}{{ m.content }}</s>{% endfor %}"}'
    )
    (base / "special_tokens_map.json").write_text("{}")
    result = carried(tmp_path, rows=203, of={"eos_token_id": 0})
    assert parsed(result, "generation_config.json") == {"eos_token_id": [0, 2]}
    assert [d.code for d in carried(tmp_path, rows=202).notes] == ["DC294", "DC295"]


def test_the_same_tokenizer_in_another_form(tmp_path: Path) -> None:
    tokens = {piece: at for at, (piece, _) in enumerate(pieces(LLAMA2) or [])}
    fast = whole({"<unk>": 0, "<s>": 1, "</s>": 2})
    fast["model"]["vocab"] = tokens
    folder(tmp_path / "model", tokenizer__model=LLAMA2, tokenizer_config__json=config("</s>", "<s>", MISTRAL))
    folder(tmp_path / "qa", tokenizer__json=fast, tokenizer_config__json=config("</s>", "<s>", MISTRAL))
    assert codes(carried(tmp_path, "qa")) == []


def test_a_vocabulary_that_cannot_be_read_here(tmp_path: Path) -> None:
    """tiktoken's file under the name tokenizer.model: only the added tokens are known."""
    decoder = {"151645": {"content": "<|im_end|>"}, "151644": {"content": "<|im_start|>"}}
    folder(
        tmp_path / "model", tokenizer__model=b"IQ== 0\nIg== 1\n",
        tokenizer_config__json=config("<|im_end|>", None, CHATML, added_tokens_decoder=decoder),
    )  # fmt: skip
    assert codes(carried(tmp_path)) == []


def test_marks_and_line_ends(tmp_path: Path) -> None:
    base = model(tmp_path, QWEN, "<|im_end|>", None, {"eos_token_id": 151645})
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        (base / name).write_bytes(BOM + (base / name).read_bytes().replace(b", ", b",\r\n"))
    (base / "chat_template.jinja").write_bytes(BOM + CHATML.replace("{% endfor %}", "{% endfor %}\r\n").encode())
    folder(tmp_path / "qa", chat_template__jinja=CHATML + "\n", generation_config__json={"eos_token_id": 151645})
    result = carried(tmp_path, "qa")
    assert not any(raw.startswith(BOM) for raw in result.files.values())
    assert parsed(result, "generation_config.json") == {"eos_token_id": 151645}
    assert [d.code for d in result.notes] == ["DC279"]  # one line became two
    assert set(result.inputs) >= {
        "model/tokenizer.json",
        "model/chat_template.jinja",
        "adapters/qa/generation_config.json",
    }
    for name, content in result.inputs.items():  # pins are of the files as they lie there
        raw = (base.parent / name.removeprefix("adapters/")).read_bytes()
        assert content == Content(len(raw), hashlib.sha256(raw).hexdigest()), name


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json", "generation_config.json"])
@pytest.mark.parametrize(
    ("raw", "why"),
    [(b"{", "not JSON"), (b"[]", "not list"), (b"version https://git-lfs.", "git-lfs")],
)
def test_what_is_no_json(tmp_path: Path, name: str, raw: bytes, why: str) -> None:
    base = model(tmp_path, QWEN, "<|im_end|>", CHATML, {"eos_token_id": 151645})
    (base / name).write_bytes(raw)
    (found,) = carried(tmp_path).report.errors
    assert (found.code, why in found.detail, f"{name} of the model" in found.detail) == ("DC203", True, True)


@pytest.mark.parametrize(
    "value", [{"added_tokens": 1, "model": []}, {"model": {"vocab": [3, ["a"], []]}}, {"added_tokens": [1, {}]}]
)
def test_a_tokenizer_of_no_sense_is_no_crash(tmp_path: Path, value: Any) -> None:
    model(tmp_path, QWEN, "<|im_end|>", CHATML, {"eos_token_id": "x"}, tokenizer__json=value)
    assert codes(carried(tmp_path)) == ["DC296"]


def test_a_model_without_any_of_it(tmp_path: Path) -> None:
    folder(tmp_path / "model")
    result = carried(tmp_path)
    assert (codes(result), dict(result.files)) == (["DC296"], {})


def test_ids_without_a_row_follow_the_tokenizer(tmp_path: Path) -> None:
    model(
        tmp_path, QWEN, "<|im_end|>", CHATML, {"eos_token_id": [151645, 151999], "pad_token_id": 151998, "top_k": 3},
    )  # fmt: skip
    of = {
        "eos_token_id": 151999,
        "bos_token_id": 160000,
        "pad_token_id": -1,
        "text_config": {"pad_token_id": 160001, "a": 1},
    }
    result = carried(tmp_path, rows=151646, of=of)
    assert set(codes(result)) == {"DC299"}
    assert parsed(result, "generation_config.json") == {"eos_token_id": [151645], "top_k": 3}
    assert result.config == {
        "eos_token_id": 151645,
        "bos_token_id": None,
        "text_config": {"pad_token_id": None, "a": 1},
    }
    details = [d.detail for d in result.notes]
    assert (
        "eos_token_id of config.json was 151999, but the input embedding has 151,646 rows; it is 151645 now." in details
    )
    assert any("pad_token_id of config.json text_config was 160001" in d and "taken out" in d for d in details)


def test_an_eos_with_nothing_in_its_place(tmp_path: Path) -> None:
    folder(tmp_path / "model", tokenizer__json=whole({}), generation_config__json={"eos_token_id": 151999})
    (found,) = carried(tmp_path, rows=1000).report.errors
    assert (found.code, "eos_token_id of generation_config.json is 151999" in found.detail) == ("DC294", True)


def test_many_tokens_without_a_row_are_counted(tmp_path: Path) -> None:
    model(tmp_path, QWEN, "<|im_end|>", CHATML, {"eos_token_id": 151645})
    tokens = QWEN | {f"<x{i}>": 151646 + i for i in range(5)}
    folder(tmp_path / "qa", tokenizer__json=whole(tokens))
    (found,) = carried(tmp_path, "qa", rows=151646).report.errors
    assert found.code == "DC294"
    assert found.detail == (
        "adapter qa: '<x0>' (151646), '<x1>' (151647), '<x2>' (151648) and 2 more: 5 tokens lie at or beyond the "
        "151,646 rows of the input embedding."
    )
    assert "modules_to_save" in found.fix
    assert carried(tmp_path, "qa", rows=152064).report.errors == []


def test_tokens_that_the_model_came_without_a_row_for_are_no_fault_of_the_adapter(tmp_path: Path) -> None:
    """Gemma 3 1B: its tokenizer has the image token of its larger sisters, its embedding has not."""
    tokens = QWEN | {"<image_soft_token>": 151700}
    model(tmp_path, tokens, "<|im_end|>", CHATML, {"eos_token_id": 151645})
    folder(tmp_path / "qa", tokenizer__json=whole(tokens | {"<new>": 7}))
    result = carried(tmp_path, "qa", rows=151646)
    assert codes(result) == ["DC279", "DC294"]
    assert said(result, "DC294").severity is Severity.NOTE
    assert "the model: '<image_soft_token>' (151700): 1 token lies" in said(result, "DC294").detail


def test_an_eos_of_the_config_that_nothing_reads(tmp_path: Path) -> None:
    folder(tmp_path / "model", tokenizer__json=whole({}), generation_config__json={"eos_token_id": 5})
    result = carried(tmp_path, rows=1000, of={"eos_token_id": 1000})
    assert (result.report.errors, result.config) == ([], {"eos_token_id": None})
