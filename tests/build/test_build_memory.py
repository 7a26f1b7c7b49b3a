"""Memory of a build is bounded by its blocks and the adapter, not by the model or its largest tensor."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from adapted import LLAMA, Small

from deployc.build import process
from deployc.build.weights.safetensors_file import Reader
from deployc.build.weights.writer import Writer
from deployc.facts.architecture import architecture
from deployc.facts.shapes import shapes
from deployc.types.groups import expand

pytestmark = pytest.mark.build

MIB = 2**20
SMALL_BLOCKS = """
from deployc.build import child
def progress(self, phase, done, total, item):
    held = open("/proc/self/status").read().partition("RssAnon:")[2].split()[0]
    self.send("progress", phase=phase, done=done, total=total, item=held)
child.Events.progress = progress
"""
"""The worker says after each chunk how many KiB of anonymous memory it holds: an onlooker would see it as often as the
machine is slow."""
WIDE = LLAMA | {"hidden_size": 1024, "intermediate_size": 2048, "vocab_size": 98304, "torch_dtype": "float32",
                "num_attention_heads": 8, "num_key_value_heads": 8, "num_hidden_layers": 1}  # fmt: skip


def zeros(small: Small) -> Small:
    """A model of zeros in float32, all of it to be rounded to 16 bit: it is only its size that counts."""
    folder = small.root / "model"
    folder.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_text("{}")
    (folder / "config.json").write_text(json.dumps(WIDE))
    tensors = [(n, g.dtype, g.shape) for g in shapes(WIDE, architecture(WIDE)) for n in expand(g)]
    with Writer(folder / "model.safetensors", tensors, {"format": "pt"}) as writer:
        writer.commit()
    return small.adapter("qa", rank=2)


def growth(small: Small, weights: str) -> int:
    """Bytes of anonymous memory that the worker takes while it writes, over what it has after its first block."""
    held: list[int] = []
    small.build(small.recipe(weights), progress=lambda now: held.append(1024 * int(now.item)))
    assert len(held) > 24
    return max(held) - held[0]


@pytest.mark.parametrize("weights", ["none", "int8"])
def test_memory_is_that_of_blocks(weights: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = "module.main()"
    monkeypatch.setattr(process, "BOOTSTRAP", process.BOOTSTRAP.replace(start, SMALL_BLOCKS + start))
    small = zeros(Small(tmp_path))
    with Reader(small.root / "model" / "model.safetensors", "./model") as reader:
        assert max(slot.end - slot.begin for slot in reader.slots) == 384 * MIB
    assert growth(small, weights) < 320 * MIB
