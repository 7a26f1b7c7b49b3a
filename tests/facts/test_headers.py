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
from deployc.types.facts import pickles
from deployc.types.groups import Tensor

GOOD: list[Tensor] = [("a", "BF16", (2, 3)), ("b", "F32", ()), ("c", "F8_E4M3", (5,)), ("empty", "F16", (0, 4))]


def read(content: bytes) -> list[Tensor]:
    return read_header("model.safetensors", len(content), "./m", lambda _, begin, end: content[begin:end])


def with_header(header: Any, data: int) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes(data)


def entry(begin: int, end: int, shape: Any = (4,), dtype: Any = "U8") -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape) if isinstance(shape, tuple) else shape, "data_offsets": [begin, end]}


def twice(name: str) -> bytes:
    one = f'"{name}":{json.dumps(entry(0, 4))}'
    return f"{{{one},{one}}}".encode()


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
        (with_header(twice("a"), 4), "names a twice"),
        (with_header(b'{"a":{"dtype":"U8","dtype":"I8","shape":[4],"data_offsets":[0,4]}}', 4), "names dtype twice"),
        (with_header(twice("__metadata__"), 4), "names __metadata__ twice"),
        (with_header({"__metadata__": {"format": 1}}, 0), "not an object of strings"),
        (with_header({"__metadata__": {"format": {"a": "b"}}}, 0), "not an object of strings"),
        (with_header({"__metadata__": [], "a": entry(0, 4)}, 4), "not an object of strings"),
        (with_header({"__metadata__": None, "a": entry(0, 4)}, 4), "not an object of strings"),
        (with_header(b'{"__metadata__":{"a":"\\ud800"}}', 0), "not an object of strings"),
        (with_header({"a\0b": entry(0, 4)}, 4), "characters that no tensor's name has"),
        (with_header({"a\x1b[2Jb": entry(0, 4)}, 4), "characters that no tensor's name has"),
        (with_header(b'{"\\udfff":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}', 4), "characters that no"),
        (with_header(json.dumps({"a": entry(0, 4)}).encode("utf-16-le"), 4), "not JSON"),
        (with_header(b'{"\xed\xa0\x80":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}', 4), "not JSON"),
        (with_header({"a": entry(0, 4, shape=(2**62, 2**62, 0))}, 4), "impossible shape"),
        (with_header({"a": entry(0, 4, shape=(1,) * 65)}, 4), "65 dimensions"),
        (with_header(b'{"a":' + b"9" * 5000 + b"}", 4), "not JSON"),
        (with_header({"a": entry(0, 3, shape=(5,), dtype="F4")}, 3), "whole byte"),
        (with_header({"a": entry(4, 0)}, 4), "its offsets span -4"),
        (with_header({"a": entry(0, 4) | {"data_offsets": [False, 4]}}, 4), "no whole number"),
        (with_header({"a": entry(0, 4) | {"data_offsets": [0, 4.0]}}, 4), "no whole number"),
        (with_header({"a": entry(0, 4) | {"data_offsets": [-4, 0]}}, 4), "no whole number"),
        (with_header({"a": entry(0, 4) | {"data_offsets": [0, 4, 8]}}, 4), "a lacks"),
        (with_header(b'{"a":NaN}', 0), "a lacks"),
    ],
)  # fmt: skip
def test_each_damage_has_its_words(content: bytes, says: str) -> None:
    with pytest.raises(Fault) as fault:
        read(content)
    assert fault.value.diagnostic.code == "DC204"
    assert says in fault.value.diagnostic.detail
    assert fault.value.diagnostic.fix


@pytest.mark.parametrize(
    "header",
    [
        {"n" * 10**6: entry(0, 4, dtype="Q" * 10**6)}, {"n" * 10**6: entry(0, 5)}, {"n" * 10**6: entry(1, 5)},
        {"n" * 10**6: 1}, {"a": entry(0, 4, shape=(2**62,) * 64)}, {"\0" * 10**6: entry(0, 4)},
        twice("n" * 10**6), {"a": entry(0, 4, dtype="Q" * 10**6)},
    ],
)  # fmt: skip
def test_what_is_said_stays_short(header: Any) -> None:
    with pytest.raises(Fault) as fault:
        read(with_header(header, 4))
    assert len(fault.value.diagnostic.detail) < 500


JSON_PIECES = [b'"', b"{", b"}", b"[", b"]", b",", b":", b"0", b"1", b"4", b"-", b".0", b" ", b"\\ud800", b"a", b"F32"]
DAMAGE = st.lists(
    st.tuples(
        st.sampled_from(["put", "cut", "insert"]),
        st.integers(0, 400),
        st.sampled_from(JSON_PIECES) | st.binary(min_size=1, max_size=9),
    ),
    min_size=1,
    max_size=4,
)


@pytest.mark.build
@given(st.booleans(), DAMAGE)
def test_a_mutated_file_is_read_as_the_library_reads_it_or_refused(grows: bool, damage: Any) -> None:
    """Whatever we take for a file, the safetensors library reads too, and as the same tensors."""
    from safetensors import deserialize

    content = safetensors(GOOD)
    for kind, at, change in damage:
        place, before = at % len(content), len(content)
        rest = content[place + (0 if kind == "insert" else len(change)) :]
        content = content[:place] + (b"" if kind == "cut" else change) + rest
        if grows and place >= 8:  # the length that stands before the header follows it
            length = int.from_bytes(content[:8], "little") + len(content) - before
            content = (length % 2**64).to_bytes(8, "little") + content[8:]
    try:
        found = read(content)
    except Fault as fault:
        assert fault.diagnostic.code == "DC204"
        return
    theirs = {name: (about["dtype"], tuple(about["shape"])) for name, about in deserialize(content)}  # type: ignore[no-untyped-call]
    assert {name: (dtype, shape) for name, dtype, shape in found} == theirs


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


@pytest.mark.parametrize("name", ["model-q4.gguf", "consolidated.00.pth"])
def test_other_formats_are_refused(tmp_path: Path, name: str) -> None:
    files = {n: b for n, b in model_files().items() if n != "model.safetensors"}
    folder = folder_of(tmp_path, files | {name: b"x"})
    with pytest.raises(Fault) as fault:
        model_facts(folder, "./m")
    assert fault.value.diagnostic.code == "DC206"
    assert name in fault.value.diagnostic.detail


def test_pickles_are_planned_from_the_config_and_pinned(tmp_path: Path) -> None:
    files = {n: b for n, b in model_files().items() if n != "model.safetensors"}
    facts, notes = model_facts(folder_of(tmp_path, files | {"pytorch_model-00001-of-00001.bin": b"x"}), "./m")
    assert (notes, facts.weights_basis) == ([], "architecture")
    assert facts.files["pytorch_model-00001-of-00001.bin"].startswith("sha256:")
    assert pickles(facts.files) == ["pytorch_model-00001-of-00001.bin"]
    assert pickles(["training_args.bin", "adapter_model.bin"]) == []
    assert pickles(["model.safetensors", "pytorch_model.bin"]) == []
