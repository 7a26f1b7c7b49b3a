"""adapter_model.bin: what torch saves is read without torch; everything else is refused without being run."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from deployc.facts.adapter import pickled
from deployc.facts.faults import Fault

if find_spec("torch"):  # else the marker says whether that is a failure
    import torch

SAVED = pytest.mark.build


def of(raw: bytes) -> tuple[Callable[[int, int], bytes], list[tuple[int, int]]]:
    """Ranges of a file, and those that were asked for."""
    asked: list[tuple[int, int]] = []

    def read(begin: int, end: int) -> bytes:
        asked.append((begin, end))
        assert 0 <= begin <= end <= len(raw)
        return raw[begin:end]

    return read, asked


def refused(raw: bytes) -> str:
    with pytest.raises(Fault) as fault:
        pickled.read("qa", "./qa", len(raw), of(raw)[0])
    assert fault.value.diagnostic.code == "DC232"
    return fault.value.diagnostic.detail


def saved(value: Any, path: Path) -> bytes:
    torch.save(value, path)
    return path.read_bytes()


@SAVED
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "int64", "uint8"])
def test_tensors_as_torch_has_them(dtype: str, tmp_path: Path) -> None:
    kind = getattr(torch, dtype)
    big = torch.arange(60).to(kind).reshape(5, 12)
    state = OrderedDict(
        a=big, b=big[1:3], c=torch.nn.Parameter(big.clone(), False), d=torch.tensor(3).to(kind), t=big.T
    )
    raw = saved(state, tmp_path / "adapter_model.bin")
    read, _ = of(raw)
    found = pickled.read("qa", "./qa", len(raw), read)
    assert {name: tensor.shape for name, tensor in found.items()} == {n: tuple(t.shape) for n, t in state.items()}
    places = pickled.places("qa", "./qa", len(raw), read)
    assert places.keys() == {"a", "b", "c", "d"}  # t lies in another order
    for name, place in places.items():
        wanted = state[name].detach().contiguous().reshape(-1).view(torch.uint8)
        assert raw[place.begin : place.end] == bytes(wanted.tolist())


@SAVED
def test_a_large_file_is_not_read_whole(tmp_path: Path) -> None:
    raw = saved({f"m{n}": torch.zeros(512, 1024) for n in range(8)}, tmp_path / "adapter_model.bin")
    read, asked = of(raw)
    assert len(pickled.read("qa", "./qa", len(raw), read)) == 8
    assert sum(end - begin for begin, end in asked) < len(raw) / 20
    assert len(asked) < 20


class Evil:
    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return os.system, ("exit 1",)


def zipped(content: bytes, **more: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", content)
        for name, data in more.items():
            archive.writestr(f"archive/{name}", data)
    return file.getvalue()


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "not torch's zip format"),
        (pickle.dumps({"a": 1}), "not torch's zip format"),
        (b"PK\x03\x04" + b"0" * 100, "truncated or damaged"),
        (zipped(b"")[:-30], "truncated or damaged"),
        (zipped(pickle.dumps({"a": Evil()})), "system, which no dict of tensors needs"),
        (zipped(pickle.dumps({"a": io.BytesIO})), "_io.BytesIO"),
        (zipped(b"no pickle"), "invalid load key"),
        (zipped(pickle.dumps({"a": 1})[:-3]), "truncated"),
        (zipped(pickle.dumps([1])), "no dict of tensors"),
        (zipped(pickle.dumps({"a": 1})), "'a' in it is no tensor"),
        (zipped(pickle.dumps({1: 1})), "no dict of tensors"),
        (zipped(pickle.dumps({}), byteorder=b"big"), "big-endian"),
    ],
)  # fmt: skip
def test_refused_without_running_it(raw: bytes, says: str) -> None:
    assert says in refused(raw)


@SAVED
def test_bytes_that_are_missing(tmp_path: Path) -> None:
    raw = saved({"a": torch.zeros(64)}, tmp_path / "adapter_model.bin")
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        names = {entry.filename.partition("/")[2]: archive.read(entry) for entry in archive.infolist()}
    content = names.pop("data.pkl")
    assert pickled.read("qa", ".", len(whole := zipped(content, **names)), of(whole)[0])
    names["data/0"] = names["data/0"][:-4]
    assert "the bytes of a are not all in it" in refused(zipped(content, **names))


@SAVED
def test_cut_anywhere(tmp_path: Path) -> None:
    raw = saved({"a": torch.zeros(8)}, tmp_path / "adapter_model.bin")
    for size in range(0, len(raw), 7):
        refused(raw[:size])
