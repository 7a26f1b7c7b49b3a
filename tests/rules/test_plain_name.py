"""The 16-bit model by the name of a quantized one."""

from __future__ import annotations

import pytest

from deployc.rules.adapter_shapes.plain_name import guess, plain_name


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("unsloth/Qwen2.5-7B-Instruct-bnb-4bit", "unsloth/Qwen2.5-7B-Instruct"),
        ("unsloth/Qwen2.5-7B-Instruct-unsloth-bnb-4bit", "unsloth/Qwen2.5-7B-Instruct"),
        ("Qwen/Qwen2.5-7B-Instruct-AWQ", "Qwen/Qwen2.5-7B-Instruct"),
        ("Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4", "Qwen/Qwen2.5-7B-Instruct"),
        ("Qwen/Qwen3-8B-FP8", "Qwen/Qwen3-8B"),
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic", "RedHatAI/Meta-Llama-3.1-8B-Instruct"),
        ("RedHatAI/Qwen2.5-7B-Instruct-quantized.w4a16", "RedHatAI/Qwen2.5-7B-Instruct"),
        ("TheBloke/Llama-2-7B-GPTQ/", "TheBloke/Llama-2-7B"),
        ("Qwen/Qwen2.5-7B-Instruct", None), ("./model", None), ("", None), ("owner/-AWQ", None),
    ],
)  # fmt: skip
def test_by_its_name(name: str, plain: str | None) -> None:
    assert plain_name(name) == plain


def test_the_first_that_says_something() -> None:
    assert plain_name("./model", "a/b-AWQ", "c/d-FP8") == "a/b"
    assert guess("a/b-AWQ") == " (by its name a/b; a guess)"
    assert guess("a/b") == ""
