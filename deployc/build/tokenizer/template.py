"""The chat templates of a folder, in the order in which the engine looks for them.

vLLM 0.32.0 (`renderers/hf.py`, resolve_chat_template): the one it is given (--chat-template), the processor's where a
model has one, the tokenizer's. transformers 5.24 (`tokenization_utils_base.py`): chat_template.jinja before
`chat_template` of tokenizer_config.json, which is a text or a list of named ones; `tool_use` is taken for requests
with tools where it is there, `default` else.
"""

from __future__ import annotations

from typing import Any

from deployc.build.tokenizer.small import CONFIG, Small, is_template

FILE, OLD_FILE = "chat_template.jinja", "chat_template.json"
DEFAULT, TOOLS = "default", "tool_use"


def templates(small: Small) -> dict[str, str]:
    """Name -> text; {} where the folder has none. Raises Fault DC203."""
    if FILE in small.files:
        return {DEFAULT: _decoded(small.files[FILE])}
    in_file, in_config = (
        named(small.json(OLD_FILE).get("chat_template")),
        named(small.json(CONFIG).get("chat_template")),
    )
    processor = "preprocessor_config.json" in small.files
    return (in_file or in_config) if processor else (in_config or in_file)


def holder(small: Small) -> str:
    """The file in which the folder's templates stand; "" where it has none."""
    if FILE in small.files:
        return FILE
    if not (found := templates(small)):
        return ""
    return CONFIG if named(small.json(CONFIG).get("chat_template")) == found else OLD_FILE


def named(value: Any) -> dict[str, str]:
    """`chat_template` of a JSON file: a text, a list of {name, template}, or an object of them."""
    if isinstance(value, str):
        return {DEFAULT: value} if value.strip() else {}
    if isinstance(value, list):
        value = {row.get("name"): row.get("template") for row in value if isinstance(row, dict)}
    pairs = value.items() if isinstance(value, dict) else ()
    return {name: text for name, text in pairs if isinstance(name, str) and isinstance(text, str)}


def files(small: Small) -> dict[str, bytes]:
    """The template's own files of a folder."""
    return {name: raw for name, raw in small.files.items() if is_template(name)}


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").replace("\r", "\n")
