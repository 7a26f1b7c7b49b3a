"""The model's files are hashed beside the worker: never far before it, and never of other bytes than it read."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from deployc.build import digests
from deployc.build.digests import Digests
from deployc.build.weights.safetensors_file import sha256
from deployc.diagnostics import Stop
from deployc.types.manifest import Content, Progress


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    made = [tmp_path / f"{index}.safetensors" for index in range(3)]
    for index, path in enumerate(made):
        path.write_bytes(os.urandom(1000 * index + 5000))
    return made


def test_every_file_by_its_name(paths: list[Path]) -> None:
    with Digests(paths, "./model") as hashing:
        found = hashing.contents()
    assert found == {path.name: Content(path.stat().st_size, sha256(path)) for path in paths}


def test_none_at_all() -> None:
    with Digests([], "./model") as hashing:
        assert hashing.contents() == {}


def test_it_stays_near_the_worker(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than so many bytes and a piece before what the worker says it has written."""
    monkeypatch.setattr(digests, "PIECE", 100)
    monkeypatch.setattr(digests, "AHEAD", 1000)
    seen: list[Progress] = []
    with Digests(paths, "./model") as hashing:
        watch = hashing.watching(seen.append)
        time.sleep(0.3)
        assert hashing._found == {}, "the first file has 5,000 bytes"
        watch(Progress("check", 1, 1))
        watch(Progress("write", 30, 100))
        for _ in range(200):
            time.sleep(0.05)
            if hashing._found:
                break
        assert [*hashing._found] == [paths[0].name], "30 of 100 and the 1,000 end within the second file"
        found = hashing.contents()
    assert [*found] == [path.name for path in paths]
    assert [now.phase for now in seen] == ["check", "write"]


@pytest.mark.parametrize("how", ["content", "same size and time", "another file"])
def test_a_file_that_changed_meanwhile(paths: list[Path], how: str) -> None:
    path = paths[1]
    before = path.stat()
    with Digests(paths, "./model") as hashing, pytest.raises(Stop) as stop:
        if how == "another file":
            other = path.with_name("other")
            other.write_bytes(path.read_bytes())
            other.replace(path)
        else:
            with path.open("r+b") as file:
                file.write(b"other")
            if how == "same size and time":
                os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        hashing.contents()
    (found,) = stop.value.report
    assert (found.code, path.name in found.detail) == ("DC277", True)


def test_a_file_that_cannot_be_read(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    hashing = Digests(paths, "./model")
    paths[2].unlink()
    with hashing, pytest.raises(FileNotFoundError):
        hashing.contents()


def test_left_in_the_middle_it_ends(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "PIECE", 100)
    monkeypatch.setattr(digests, "AHEAD", 1000)
    with pytest.raises(KeyboardInterrupt), Digests(paths, "./model") as hashing:
        raise KeyboardInterrupt
    assert not hashing._thread.is_alive()
    assert hashing._found == {}
