"""Memory of a build is bounded by its blocks and the adapter, not by the model or its largest tensor."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from adapted import LLAMA, Small

from deployc.build import process
from deployc.build.safetensors_file import Reader, Writer
from deployc.facts.architecture import architecture
from deployc.facts.shapes import shapes
from deployc.types.groups import expand
from deployc.types.manifest import Progress

pytestmark = pytest.mark.build

MIB = 2**20
BLOCK = "from deployc.build import tensors; tensors.BLOCK = 2**18\n"
"""Blocks of 1 MiB in float32, so that a model small enough for a test is large beside them."""
WIDE = LLAMA | {"hidden_size": 1024, "intermediate_size": 2048, "vocab_size": 24576, "torch_dtype": "float32",
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
    """Bytes of anonymous memory that the worker takes while it writes, over what it has when it begins."""
    seen: list[int] = []

    def look(now: Progress) -> None:
        if now.done < now.total:
            status = Path(f"/proc/{worker()}/status").read_text()
            seen.append(1024 * int(status.partition("RssAnon:")[2].split()[0]))

    small.build(small.recipe(weights), progress=look)
    assert len(seen) > 5
    return max(seen) - seen[0]


@pytest.mark.parametrize("weights", ["none", "int8"])
def test_memory_is_that_of_blocks(weights: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = "from deployc.build.worker import main"
    monkeypatch.setattr(process, "BOOTSTRAP", process.BOOTSTRAP.replace(start, BLOCK + start))
    small = zeros(Small(tmp_path))
    with Reader(small.root / "model" / "model.safetensors", "./model") as reader:
        assert max(slot.end - slot.begin for slot in reader.slots) == 96 * MIB
    assert growth(small, weights) < 24 * MIB


def worker() -> int:
    """The one living child that runs the worker."""
    return next(
        int(path.name)
        for path in Path("/proc").glob("[0-9]*")
        if (path / "stat").read_text().rpartition(")")[2].split()[1] == str(os.getpid())
        and b"deployc.build.worker" in (path / "cmdline").read_bytes()
    )
