"""Classes of models and parsers of a version, read from its registries; and what the shipped table says."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_engine import small_engine

from deployc.facts.catalogue.registries import registries
from deployc.facts.catalogue.source import Unreadable
from deployc.facts.registries import registries as of_version


def test_classes_with_what_serves_adapters_and_parsers_of_both_forms(tmp_path: Path) -> None:
    assert registries(small_engine(tmp_path)) == {
        "architectures.OldForCausalLM": {"transformers": True},
        "architectures.OneForCausalLM": {"lora": True},
        "architectures.TwoForCausalLM": {},
        "kv-cache-dtype.auto": {},
        "kv-cache-dtype.fp8": {},
        "kv-cache-dtype.fp8_e5m2": {},
        "reasoning-parser.thinks": {},
        "tool-call-parser.other": {},
        "tool-call-parser.plain": {},
    }


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("vllm/model_executor/models/registry.py", "_VLLM_MODELS = {'One': load('one')}"),
        ("vllm/model_executor/models/registry.py", "_VLLM_MODELS = {}"),
        ("vllm/model_executor/models/registry.py", "_VLLM_MODELS = load()"),
        ("vllm/reasoning/__init__.py", "from .manager import ReasoningParserManager"),
    ],
)
def test_another_shape_is_refused(tmp_path: Path, file: str, text: str) -> None:
    tree = small_engine(tmp_path)
    (tree.root / file).write_text(text + "\n")
    with pytest.raises(Unreadable):
        registries(tree)


def test_what_a_version_lacks_is_told_with_the_version_that_has_it() -> None:
    old, new = of_version("0.8.2"), of_version("0.33.0")
    assert old.other_classes["Qwen3ForCausalLM"] == "came in vLLM 0.8.4" and "Qwen3ForCausalLM" in new.classes
    assert new.other_classes["BambaForCausalLM"] == "went in vLLM 0.24.0" and "BambaForCausalLM" in old.classes
    assert old.other_parsers["tool-call-parser.xlam"].startswith("came in vLLM 0.9.")
    assert "hermes" in old.parsers["tool-call-parser"] and "qwen3" in new.parsers["reasoning-parser"]
    assert of_version("0.10.1").adapted_since["GptOssForCausalLM"] == "0.11.1"
    assert of_version("0.8.3").by_transformers == ("Qwen3ForCausalLM",)
