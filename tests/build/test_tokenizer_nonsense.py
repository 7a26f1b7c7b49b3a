"""Whatever JSON the files hold, `carry` answers with findings, not with a crash."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizer_folders import carried, codes, config, folder, whole

from deployc.build.tokenizer.template import named

QWEN = {"<|endoftext|>": 151643, "<|im_start|>": 151644, "<|im_end|>": 151645}
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(-3, 10**7), st.floats(allow_nan=False), st.text(max_size=4))
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
PLACES: list[tuple[str, tuple[str | int, ...]]] = [
    ("tokenizer.json", ("added_tokens",)), ("tokenizer.json", ("added_tokens", 1)),
    ("tokenizer.json", ("added_tokens", 1, "id")), ("tokenizer.json", ("added_tokens", 1, "content")),
    ("tokenizer.json", ("model",)), ("tokenizer.json", ("model", "vocab")), ("tokenizer.json", ("model", "merges")),
    ("tokenizer.json", ("normalizer",)), ("tokenizer_config.json", ("added_tokens_decoder",)),
    ("tokenizer_config.json", ("eos_token",)), ("tokenizer_config.json", ("extra_special_tokens",)),
    ("tokenizer_config.json", ("add_bos_token",)), ("special_tokens_map.json", ("eos_token",)),
    ("added_tokens.json", ("<|im_end|>",)), ("generation_config.json", ("eos_token_id",)),
    ("generation_config.json", ("pad_token_id",)), ("chat_template.json", ("other",)),
]  # fmt: skip


def files() -> dict[str, Any]:
    return {
        "tokenizer.json": whole(QWEN, 3), "tokenizer_config.json": config("<|im_end|>"),
        "special_tokens_map.json": {"eos_token": "<|im_end|>"}, "added_tokens.json": dict(QWEN),
        "generation_config.json": {"eos_token_id": 151645}, "chat_template.json": {},
    }  # fmt: skip


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.sampled_from(PLACES), VALUES), min_size=1, max_size=4), st.booleans(), VALUES)
def test_no_value_is_a_crash(changes: list[Any], of_model: bool, ids: Any) -> None:
    made = files()
    for (name, path), value in changes:
        place = made[name]
        try:
            for step in path[:-1]:
                place = place[step]
            place[path[-1]] = value
        except (TypeError, KeyError, IndexError):
            continue  # an earlier change took that place away
    with tempfile.TemporaryDirectory() as root:
        spoiled, sound = ("model", "qa") if of_model else ("qa", "model")
        folder(Path(root) / spoiled, **{name.replace(".", "__"): json.dumps(value) for name, value in made.items()})
        folder(Path(root) / sound, tokenizer__json=whole(QWEN, 3), tokenizer_config__json=config("<|im_end|>"))
        result = carried(Path(root), "qa", of={"eos_token_id": ids, "text_config": ids})
    assert set(codes(result)) <= {"DC203", "DC279", "DC294", "DC296", "DC298", "DC299"}
    assert "tokenizer.json" in result.files or "DC203" in codes(result)


@given(VALUES)
def test_templates_are_texts(value: Any) -> None:
    assert all(isinstance(name, str) and isinstance(text, str) for name, text in named(value).items())
