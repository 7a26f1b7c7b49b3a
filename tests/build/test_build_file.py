"""Our own safetensors reader and writer, which tensors become int8, what becomes of each: nothing needs torch."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from adapted import Small, save
from hypothesis import given
from hypothesis import strategies as st

from deployc.build.plain import is_source
from deployc.build.quantize import layers as int8_layers
from deployc.build.weights.layout import plan
from deployc.build.weights.safetensors_file import Reader, Slot, layout, sha256, shards
from deployc.build.weights.writer import Writer
from deployc.facts.faults import Fault
from deployc.rules import ignored
from deployc.types.facts import DTYPE_BYTES
from deployc.types.groups import Tensor
from deployc.types.scheme import Scheme

TENSORS: list[Tensor] = [
    ("b.weight", "I8", (3, 5)), ("b.weight_scale", "BF16", (3, 1)), ("a", "F32", (2,)), ("e", "F16", (0, 4)),
    ("s", "F64", ()),
]  # fmt: skip

tensors = st.dictionaries(
    st.text(min_size=1, max_size=6).filter(lambda name: name != "__metadata__" and name.isprintable()),
    st.tuples(st.sampled_from(["F64", "F32", "BF16", "I8", "BOOL"]), st.lists(st.integers(0, 5), max_size=3)),
    min_size=1,
    max_size=6,
).map(lambda made: [(name, dtype, tuple(shape)) for name, (dtype, shape) in made.items()])


@given(tensors)
def test_every_tensor_lies_at_a_multiple_of_its_element_without_holes(made: list[Tensor]) -> None:
    header, slots, size = layout(made, {"format": "pt"})
    assert len(header) % 8 == 0
    at = len(header)
    for slot in sorted(slots.values(), key=lambda s: (s.begin, s.end)):
        assert slot.begin == at
        assert (slot.begin - len(header)) % int(DTYPE_BYTES[slot.dtype]) == 0
        at = slot.end
    assert at == size
    assert {(s.name, s.dtype, s.shape) for s in slots.values()} == set(made)


def write(path: Path) -> str:
    with Writer(path, TENSORS, {"format": "pt"}) as writer:
        for number, slot in enumerate(writer.slots.values()):
            writer.write(slot.begin, bytes([number]) * (slot.end - slot.begin))
        return writer.commit()


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    assert write(path) == sha256(path)
    assert [p.name for p in tmp_path.iterdir()] == ["model.safetensors"]
    with Reader(path, "here") as reader:
        assert reader.metadata == {"format": "pt"}
        assert {(s.name, s.dtype, s.shape) for s in reader.slots} == set(TENSORS)
        found = {s.name: bytes(reader.read(s.begin, s.end)) for s in reader.slots}
    assert {name: len(set(content)) <= 1 for name, content in found.items()} == dict.fromkeys(found, True)
    assert len({content[:1] for content in found.values() if content}) == 4


def test_left_without_commit_nothing_is_there_and_the_old_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), Writer(path, TENSORS, {}):
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(OSError, match="directory"):
        Writer(tmp_path / "nowhere" / "x", TENSORS, {})


def test_damaged_files_and_files_cut_while_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    write(path)
    with Reader(path, "here") as reader:
        os.truncate(path, path.stat().st_size - 4)
        with pytest.raises(Fault, match="DC204"):
            reader.read(0, reader.size)
    with pytest.raises(Fault, match="truncated"):
        Reader(path, "here")
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for content in (b"", b"x" * 20, b"version https://git-lfs"):
        path.write_bytes(content)
        with pytest.raises(Fault, match="DC204"):
            Reader(path, "here")
    assert len(os.listdir("/proc/self/fd")) == before, "a refused file is closed"  # noqa: PTH208


@pytest.mark.build
def test_the_bytes_are_those_of_the_safetensors_library(tmp_path: Path) -> None:
    import torch
    from safetensors.torch import save_file

    values = {
        "b.weight": torch.arange(15, dtype=torch.int8).reshape(3, 5),
        "a": torch.ones(2),
        "b.weight_scale": torch.full((3, 1), 0.5, dtype=torch.bfloat16),
        "h": torch.zeros(3, dtype=torch.half),
    }
    save_file(values, tmp_path / "theirs", metadata={"format": "pt"})
    with Reader(tmp_path / "theirs", "") as reader:
        kinds = [(s.name, s.dtype, s.shape) for s in reader.slots]
        with Writer(tmp_path / "ours", reversed(kinds), reader.metadata) as writer:
            for slot in reader.slots:
                writer.write(writer.slots[slot.name].begin, reader.read(slot.begin, slot.end))
            writer.commit()
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()


MODEL: list[Tensor] = [
    *((f"model.layers.0.self_attn.{n}_proj.weight", "BF16", (8, 8)) for n in "qkvo"),
    ("model.layers.0.self_attn.q_proj.bias", "BF16", (8,)),
    *((f"model.layers.0.mlp.{n}_proj.weight", "BF16", (8, 8)) for n in ("gate", "up", "down")),
    ("model.layers.0.mlp.gate.weight", "BF16", (4, 8)), ("model.layers.0.input_layernorm.weight", "BF16", (8,)),
    ("model.embed_tokens.weight", "BF16", (32, 8)), ("lm_head.weight", "BF16", (32, 8)),
]  # fmt: skip


def test_the_linear_layers_and_nothing_else_become_int8() -> None:
    made = ignored.quantized(MODEL, ("lm_head",))
    assert sorted(name.rsplit(".", 2)[-2] for name in made) == [
        "down_proj", "gate_proj", "k_proj", "o_proj", "q_proj", "up_proj", "v_proj",
    ]  # fmt: skip
    assert int8_layers.left_alone(MODEL, ("lm_head",)) == ["lm_head", "model.layers.0.mlp.gate"]
    assert int8_layers.left_alone(MODEL[:1], ("lm_head",)) == ["lm_head"], "a tied output layer is named all the same"
    assert "model.layers.0.mlp.down_proj" in int8_layers.left_alone(MODEL, ("down_proj",))


@pytest.mark.parametrize(
    ("ignore", "codes"),
    [
        (("lm_head",), []), (("lm_head", "down_proj"), []), (("self_attn",), []), (("q_proj",), ["DC282"]),
        (("gate_proj", "up_proj"), []), (("up_proj",), ["DC282"]), (("dwon_proj",), ["DC283"]),
        (("re:.*down_proj",), ["DC283"]), (("_proj",), ["DC283"]), (("layers.0",), ["DC284"]),
    ],
)  # fmt: skip
def test_what_ignore_must_not_do(ignore: tuple[str, ...], codes: list[str]) -> None:
    assert [d.code for d in ignored.check("org/small", MODEL, ignore)] == codes


def test_what_becomes_of_a_tensor() -> None:
    def slot(name: str, dtype: str, shape: tuple[int, ...] = (4, 2)) -> Slot:
        return Slot(name, dtype, shape, 0, 0)

    slots = [slot("q.weight", "BF16"), slot("norm.weight", "BF16", (4,)), slot("x.inv_freq", "F32"), slot("ids", "I64")]
    made = plan(slots, {"q.weight": (4, 2)}, (), {"q.weight": Scheme("int8", 8, scale_dtype="F16")}, "float16")
    assert [list(work.outputs()) for work in made] == [
        [("q.weight", "I8", (4, 2)), ("q.weight_scale", "F16", (4, 1))], [("norm.weight", "F16", (4,))],
        [("x.inv_freq", "F32", (4, 2))], [("ids", "I64", (4, 2))],
    ]  # fmt: skip
    assert [work.copied for work in made] == [False, False, True, True]
    assert [work.copied for work in plan(slots, {}, (), {}, "bfloat16")] == [True] * 4


@pytest.mark.parametrize("count", [1, 2])
def test_a_copy_in_another_layout_is_none_of_the_weights(tmp_path: Path, count: int) -> None:
    small = Small(tmp_path).model(shards=count)
    folder, recipe = tmp_path / "model", small.recipe()
    named = shards(folder)
    save(folder / "consolidated.safetensors", [("wq", "F32", (2,))], 1)
    assert shards(folder) == named == sorted(p.name for p in folder.glob("model*.safetensors"))
    assert is_source(recipe, folder)
