"""Safetensors headers: what is right is read, and each way to be wrong is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_models import CONFIG, JSON, model_files, put, safetensors, tensors_of

from deployc.facts.faults import Fault
from deployc.facts.folder import Folder
from deployc.facts.headers import INDEX, MAX_HEADER, read_header
from deployc.facts.model import model_facts, weights
from deployc.types.groups import Tensor

GOOD: list[Tensor] = [("a", "BF16", (2, 3)), ("b", "F32", ()), ("c", "F8_E4M3", (5,)), ("empty", "F16", (0, 4))]


def read(content: bytes) -> list[Tensor]:
    return read_header("model.safetensors", len(content), "./m", lambda _, begin, end: content[begin:end])


def with_header(header: Any, data: int) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes(data)


def entry(begin: int, end: int, shape: Any = (4,), dtype: Any = "U8") -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape) if isinstance(shape, tuple) else shape, "data_offsets": [begin, end]}


def test_a_right_file() -> None:
    assert read(safetensors(GOOD)) == GOOD


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "too few"),
        (b"abc", "too few"),
        (safetensors(GOOD)[:40], "truncated"),
        (safetensors(GOOD)[:-1], "truncated"),
        (safetensors(GOOD) + b"x", "belong to none"),
        (b"<!DOCTYPE html><html></html>", "HTML"),
        (b"\n <html>log in</html>", "HTML"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "git-lfs pointer"),
        (b"PK\x03\x04" + bytes(40), "pickle"),
        (b"\x80\x02}q\x00" + b"x" * 40, "pickle"),
        ((MAX_HEADER + 1).to_bytes(8, "little") + bytes(20), "are possible"),
        (bytes(20), "are possible"),
        (with_header(b"{nonsense}", 0), "not JSON"),
        (with_header(b"[" * 100_000, 0), "not JSON"),
        (with_header(b"\xff\xfe{}", 0), "not JSON"),
        (with_header([1], 0), "not a JSON object"),
        (with_header({"a": 1}, 0), "a lacks"),
        (with_header({"a": {"dtype": "U8", "shape": [4]}}, 4), "a lacks"),
        (with_header({"a": entry(0, 4, shape="four")}, 4), "no whole number"),
        (with_header({"a": entry(0, 4, shape=(-4,))}, 4), "no whole number"),
        (with_header({"a": entry(0, 4, shape=(4.0,))}, 4), "no whole number"),
        (with_header({"a": entry(0, 4, shape=(True,))}, 4), "no whole number"),
        (with_header({"a": entry(0, 4, dtype="Q4")}, 4), "unknown dtype 'Q4'"),
        (with_header({"a": entry(0, 4, dtype=["U8"])}, 4), "unknown dtype"),
        (with_header({"a": entry(0, 4, dtype="F32")}, 4), "is 16 bytes, its offsets span 4"),
        (with_header({"a": entry(0, 4), "b": entry(2, 6)}, 6), "b begins at 2, which overlaps"),
        (with_header({"a": entry(0, 4), "b": entry(5, 9)}, 9), "b begins at 5, which leaves a hole"),
        (with_header({"a": entry(4, 8)}, 8), "leaves a hole"),
    ],
)  # fmt: skip
def test_each_damage_has_its_words(content: bytes, says: str) -> None:
    with pytest.raises(Fault) as fault:
        read(content)
    assert fault.value.diagnostic.code == "DC204"
    assert says in fault.value.diagnostic.detail
    assert fault.value.diagnostic.fix


@given(st.binary(max_size=64), st.integers(0, 300), st.integers(0, 5))
def test_any_bytes_are_a_fault_or_tensors(noise: bytes, at: int, cut: int) -> None:
    good = safetensors(GOOD)
    for content in (noise, good[:at] + noise + good[at + len(noise) :], good[: len(good) - cut]):
        try:
            assert all(len(tensor) == 3 for tensor in read(content))
        except Fault as fault:
            assert fault.diagnostic.code == "DC204"


@given(st.fixed_dictionaries({"dtype": JSON, "shape": JSON, "data_offsets": JSON}))
def test_any_entry_is_a_fault_or_a_tensor(entry: Any) -> None:
    with pytest.raises(Fault):
        read(with_header({"a": entry}, 3))


def test_a_large_header_is_read() -> None:
    tensors: list[Tensor] = [(f"model.layers.{i}.experts.{j}.w", "U8", (1,)) for i in range(60) for j in range(750)]
    content = safetensors(tensors)
    assert len(read(content)) == 45_000


def folder_of(path: Path, files: dict[str, bytes]) -> Folder:
    return Folder(put(path, files), "./m")


def test_shards_are_one_model(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, model_files(shards=3))
    found = weights(folder, folder.files())
    assert found is not None
    assert sorted(found) == sorted(tensors_of(CONFIG))


def test_shards_that_do_not_belong_together(tmp_path: Path) -> None:
    files = model_files(shards=3)
    first = "model-00001-of-00003.safetensors"
    index = json.loads(files[INDEX])
    moved = next(name for name, file in index["weight_map"].items() if file == first)
    placed, second = index["weight_map"], "model-00002-of-00003.safetensors"
    for change, says in (
        ({first: None}, f"1 of 3 shards are missing: {first}"),
        ({INDEX: b'{"metadata": {}}'}, "no weight_map"),
        ({INDEX: json.dumps({"weight_map": {"a": "../../etc/passwd"}}).encode()}, "missing: ../../etc/passwd"),
        ({INDEX: json.dumps({"weight_map": {"a": 7}}).encode()}, "no file name"),
        ({INDEX: json.dumps({"weight_map": placed | {"ghost": first}}).encode()}, "e.g. ghost"),
        ({INDEX: json.dumps({"weight_map": placed | {moved: second}}).encode()}, f"e.g. {moved}"),
        ({INDEX: None}, f"neither model.safetensors nor {INDEX}"),
    ):  # fmt: skip
        case = tmp_path / str(abs(hash(says)))
        changed: dict[str, bytes] = {n: b for n, b in (files | change).items() if b is not None}
        folder = folder_of(case, changed)
        with pytest.raises(Fault) as fault:
            weights(folder, folder.files())
        assert fault.value.diagnostic.code == "DC205"
        assert says in fault.value.diagnostic.detail


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model-q4.gguf", "consolidated.00.pth"])
def test_other_formats_are_refused(tmp_path: Path, name: str) -> None:
    files = {n: b for n, b in model_files().items() if n != "model.safetensors"}
    folder = folder_of(tmp_path, files | {name: b"x"})
    with pytest.raises(Fault) as fault:
        model_facts(folder, "./m")
    assert fault.value.diagnostic.code == "DC206"
    assert name in fault.value.diagnostic.detail
