"""Folders with the small files of models and adapters, in the shapes that real ones have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deployc.build.tokenizer.carry import Carried, carry
from deployc.diagnostics import Diagnostic

CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
LLAMA3 = (
    "{% for message in messages %}{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'"
    " + message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}"
    "{% endif %}{{ content }}{% endfor %}"
)
GEMMA = (
    "{{ bos_token }}"
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{% for message in messages %}{% set role = 'model' if message['role'] == 'assistant' else message['role'] %}"
    "{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}{% endfor %}"
)
MISTRAL = (
    "{{ bos_token }}{% for message in messages %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}"
    "{% elif message['role'] == 'assistant' %}{{ ' ' + message['content'] + eos_token }}"
    "{% else %}{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}{% endfor %}"
)
PHI3 = (
    "{% for message in messages %}"
    "{{ '<|' + message['role'] + '|>\\n' + message['content'] + '<|end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ eos_token }}{% endif %}"
)
GLM4 = (
    "[gMASK]<sop>{% for message in messages %}{{ '<|' + message['role'] + '|>\\n' + message['content'] }}{% endfor %}"
)
PARTS = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% for part in message.content %}{% if part.type == 'text' %}{{ part.text }}{% endif %}{% endfor %}"
    "<|im_end|>\n{% endfor %}"
)


def added(tokens: Mapping[str, int], special: bool = True) -> list[dict[str, Any]]:
    """`added_tokens` of a tokenizer.json."""
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": special}
    return [{"id": number, "content": token, **flags} for token, number in tokens.items()]


def whole(tokens: Mapping[str, int], vocabulary: int = 100, **more: Any) -> dict[str, Any]:
    """A tokenizer.json: `vocabulary` plain tokens from id 0 on, and added ones with their real ids."""
    model = {"type": "BPE", "vocab": {f"t{i}": i for i in range(vocabulary)}, "merges": ["t0 t1"]}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added(tokens),
        "model": model,
        **more,
    }


def config(eos: str, bos: str | None = None, template: Any = None, **more: Any) -> dict[str, Any]:
    """A tokenizer_config.json."""
    known = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": eos, "bos_token": bos, **more}
    return known | ({} if template is None else {"chat_template": template})


def folder(path: Path, **files: Any) -> Path:
    """Files by their names with `__` for the dot: objects as JSON, texts and bytes as they are."""
    path.mkdir()
    for name, content in files.items():
        raw = content if isinstance(content, bytes) else content.encode() if isinstance(content, str) else None
        (path / name.replace("__", ".")).write_bytes(json.dumps(content).encode() if raw is None else raw)
    return path


def model(root: Path, tokens: Mapping[str, int], eos: str, template: Any, generation: Any, **more: Any) -> Path:
    """A base model's small files; `generation` None leaves generation_config.json out."""
    files: dict[str, Any] = {"tokenizer__json": whole(tokens), "tokenizer_config__json": config(eos, "<s>", template)}
    if generation is not None:
        files["generation_config__json"] = generation
    return folder(root / "model", **(files | more))


def carried(
    root: Path, *adapters: str, rows: int = 200_000, of: Mapping[str, Any] | None = None, **more: Any
) -> Carried:
    """`carry` for root/model and the named adapters."""
    return carry(root / "model", {name: root / name for name in adapters}, of or {}, rows, **more)


def parsed(result: Carried, name: str) -> Any:
    """A JSON file of the result."""
    return json.loads(result.files[name])


def codes(result: Carried) -> list[str]:
    """Codes of all that was found, errors first."""
    return [d.code for d in result.report.errors] + [d.code for d in result.notes]


def said(result: Carried, code: str) -> Diagnostic:
    """The one finding of a code."""
    every: list[Diagnostic] = [*result.report, *result.notes]
    (found,) = [d for d in every if d.code == code]
    return found
