"""The store: an artifact is whole or is none; locks, space, journal."""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from pathlib import Path

import pytest
from handmade import QWEN_ON_4090, deploy_of
from shelved import KEY, OTHER, artifact

from deployc.build import store
from deployc.build.weights import journal
from deployc.build.weights.journal import Journal
from deployc.build.weights.safetensors_file import sha256
from deployc.diagnostics import Diagnostic, Stop


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    return tmp_path / "store"


def codes(found: list[Diagnostic]) -> list[str]:
    return [d.code for d in found]


def test_a_published_artifact_is_found_and_verified(place: Path) -> None:
    made = artifact(place)
    assert made.path == place / KEY
    assert store.artifact_for(place, KEY) == made
    assert store.artifact_for(place, OTHER) is None
    assert sorted(p.name for p in made.path.iterdir()) == ["config.json", "manifest.json", "model.safetensors"]
    assert store.verify(place, KEY) == []
    assert made.manifest.bytes == len("{}weights")
    assert [p.name for p in place.iterdir()] == [KEY]


def test_the_latest_first_and_the_damaged_apart(place: Path) -> None:
    artifact(place, KEY, "2030-01-01T00:00:00+00:00")
    artifact(place, OTHER, "2031-01-01T00:00:00+00:00")
    (place / ("c" * 64)).mkdir()
    (place / "sources").mkdir()
    assert [a.manifest.key for a in store.artifacts(place)] == [OTHER, KEY]
    (found,) = store.damaged(place)
    assert (found.code, "c" * 64 in found.detail) == ("DC280", True)
    assert store.artifacts(place / "nowhere") == []


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{", '{"format_version": "1.0"}', "[" * 100_000, "\xff",
        '{"key": 3}',
    ],
)  # fmt: skip
def test_a_wrong_manifest_makes_no_artifact(place: Path, text: str) -> None:
    made = artifact(place)
    (made.path / store.MANIFEST).write_text(text, encoding="latin-1")
    assert store.artifact_for(place, KEY) is None
    assert codes(store.verify(place, KEY)) == ["DC280"]


@pytest.mark.parametrize("change", [{"key": OTHER}, {"format_version": "2.0"}, {"files": {}}, {"extra": 1}])
def test_another_manifest_makes_no_artifact(place: Path, change: dict[str, object]) -> None:
    path = artifact(place).path / store.MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    assert store.artifact_for(place, KEY) is None


def test_a_manifest_cannot_name_files_elsewhere(place: Path) -> None:
    path = artifact(place).path / store.MANIFEST
    (place / "x").write_text("12")
    document = json.loads(path.read_text())
    document["files"]["../x"] = document["files"]["config.json"]
    path.write_text(json.dumps(document))
    assert store.artifact_for(place, KEY) is None


def test_missing_short_flipped_and_foreign_files(place: Path) -> None:
    weights = artifact(place).path / "model.safetensors"
    weights.write_text("weightz")
    assert store.artifact_for(place, KEY) is not None, "sizes alone are compared when it is looked up"
    assert codes(store.verify(place, KEY)) == ["DC280"]
    (weights.parent / "stray.bin").write_text("")
    assert codes(store.verify(place, KEY)) == ["DC280", "DC280"]
    weights.write_text("short")
    assert store.artifact_for(place, KEY) is None
    weights.unlink()
    assert "model.safetensors" in store.verify(place, KEY)[0].detail


def test_what_another_tool_left_in_the_building_folder_goes(place: Path) -> None:
    (store.begin(place, KEY, 10) / "of_another_tool.json").write_text("{}")
    assert store.verify(place, artifact(place).manifest.key) == []


def test_a_crash_before_the_name_is_given_costs_no_shard(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(_: Path, __: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Path, "rename", crash)
        artifact(place)
    assert {p.name for p in (place / f".building-{KEY}").iterdir()} >= {journal.NAME, "model.safetensors"}
    assert store.artifact_for(place, KEY) is None


def test_a_crash_after_the_name_was_given_leaves_an_artifact(place: Path) -> None:
    made = artifact(place)
    (made.path / journal.NAME).write_text("{}")
    (made.path / ".manifest.json.123.partial").write_text("{")
    assert store.verify(place, KEY) == []


def test_the_folders_of_a_store_are_durable_in_their_parents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    monkeypatch.setattr("deployc.build.store.making.sync", synced.append)
    for _ in range(2):
        with store.held(tmp_path / "a" / "b" / "store", KEY, lambda: None):
            pass
    assert synced == [tmp_path, tmp_path / "a", tmp_path / "a" / "b"]


@pytest.mark.parametrize("kind", ["file", "link", "folder"])
def test_whatever_has_the_name_of_an_artifact_gives_way(place: Path, kind: str) -> None:
    other = place.parent / "other"
    other.mkdir()
    (other / "mine").write_text("")
    if kind == "file":
        (place / KEY).write_text("")
    elif kind == "link":
        (place / KEY).symlink_to(other)
    else:
        (place / KEY).mkdir()
    assert store.verify(place, artifact(place).manifest.key) == []
    assert (other / "mine").exists()


def test_a_file_that_cannot_be_read_is_damage_too(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> str:
        raise OSError(5, "Input/output error", str(path))

    artifact(place)
    monkeypatch.setattr("deployc.build.store.shelf.sha256", refuse)
    found = store.verify(place, KEY)
    assert codes(found) == ["DC280", "DC280"]
    assert "Input/output error" in found[0].detail


def test_a_damaged_artifact_is_replaced(place: Path) -> None:
    first = artifact(place)
    (first.path / store.MANIFEST).unlink()
    assert store.artifact_for(place, KEY) is None
    assert store.verify(place, artifact(place).manifest.key) == []


def test_no_space(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Stop) as stop:
        store.begin(place, KEY, 2**60)
    (found,) = stop.value.report
    assert (found.code, "1048576 TiB" in found.detail) == ("DC272", True)
    assert list(place.iterdir()) == []
    into = store.begin(place, KEY, 0)
    (into / "model-1").write_bytes(bytes(100))
    (into / ".model-2.partial").write_bytes(bytes(100))
    real = os.statvfs(place)
    free = (store.SPARE + 899) // real.f_frsize
    monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result((*real[:4], free, *real[5:])))
    assert store.begin(place, KEY, free * real.f_frsize - store.SPARE + 100) == into, "what is there counts"
    assert [p.name for p in into.iterdir()] == ["model-1"]
    with pytest.raises(Stop):
        store.begin(place, KEY, free * real.f_frsize - store.SPARE + 101)
    assert (into / "model-1").exists()


def test_the_lock_of_a_key_is_waited_for(place: Path) -> None:
    order: list[str] = []

    def second() -> None:
        with store.held(place, KEY, lambda: order.append("waits")):
            order.append("second")

    with store.held(place, KEY, lambda: order.append("never")):
        thread = threading.Thread(target=second)
        thread.start()
        with store.held(place, OTHER, lambda: order.append("never")):
            order.append("another key")
        while "waits" not in order:
            time.sleep(0.01)
        order.append("first")
    thread.join()
    assert order.index("first") < order.index("second")
    assert "never" not in order
    assert list(place.iterdir()) == []


def test_a_lock_that_many_want_is_held_by_one(place: Path) -> None:
    inside, most = [0], [0]

    def one() -> None:
        for _ in range(40):
            with store.held(place, KEY, lambda: None):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                time.sleep(0)
                inside[0] -= 1

    threads = [threading.Thread(target=one) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]
    assert list(place.iterdir()) == []


def test_a_lock_file_that_goes_while_it_is_looked_at(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, times = fcntl.flock, [0]

    def flock(descriptor: int, how: int) -> None:
        real(descriptor, how)
        times[0] += 1
        if times[0] == 1:
            (place / f".building-{KEY}.lock").unlink()

    monkeypatch.setattr(fcntl, "flock", flock)
    with store.held(place, KEY, lambda: None):
        assert times == [2]
        assert (place / f".building-{KEY}.lock").exists()


def test_a_store_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Stop) as stop, store.held(tmp_path / "file" / "store", KEY, lambda: None):
        pass
    assert codes(list(stop.value.report)) == ["DC281"]


@pytest.mark.parametrize(
    ("named", "env", "path"),
    [
        ("", {"HOME": "/home/x"}, "/home/x/.cache/deployc/store"),
        ("", {"HOME": "/home/x", "XDG_CACHE_HOME": "/cache"}, "/cache/deployc/store"),
        ("", {"HOME": "/home/x", "XDG_CACHE_HOME": "cache"}, "/home/x/.cache/deployc/store"),
        ("/data/store", {"HOME": "/home/x"}, "/data/store"),
        ("~/store", {"HOME": "/home/x"}, "/home/x/store"),
        ("./store", {"HOME": "/home/x"}, str(Path.cwd() / "store")),
    ],
)
def test_where_the_store_lies(named: str, env: dict[str, str], path: str) -> None:
    deploy = deploy_of(QWEN_ON_4090 + (f"build: {{store: {named}}}\n" if named else ""))
    assert store.locate(deploy, env) == Path(path)


def test_a_journal_counts_only_what_still_is_so(tmp_path: Path) -> None:
    source, shard = tmp_path / "source", tmp_path / "model-1"
    source.write_text("in")
    shard.write_text("out")
    identity = {"torch": "2", "threads": 1}
    Journal(tmp_path, identity).add("model-1", source.stat(), sha256=sha256(shard))
    with (tmp_path / journal.NAME).open("a") as file:
        file.write('{"shard": "model-2", "torn')
    line = Journal(tmp_path, identity).finished("model-1", source.stat())
    assert line is not None
    assert Journal(tmp_path, identity).finished("model-2", source.stat()) is None
    Journal(tmp_path, identity).add("model-3", source.stat(), sha256=sha256(shard))
    shard.rename(tmp_path / "model-3")
    assert Journal(tmp_path, identity).finished("model-3", source.stat()) is not None, "a torn line spoils no other"
    assert Journal(tmp_path, identity).finished("model-1", source.stat()) is None
    (tmp_path / "model-3").write_text("OUT")
    assert Journal(tmp_path, identity).finished("model-3", source.stat()) is None
    (tmp_path / "model-3").write_text("out")
    source.write_text("another")
    assert Journal(tmp_path, identity).finished("model-3", source.stat()) is None


def test_another_torch_begins_again(tmp_path: Path) -> None:
    shard = tmp_path / "model-1"
    shard.write_text("out")
    Journal(tmp_path, {"torch": "2"}).add("model-1", shard.stat(), sha256=sha256(shard))
    source = shard.stat()
    assert Journal(tmp_path, {"torch": "2"}).finished("model-1", source) is not None
    assert Journal(tmp_path, {"torch": "3"}).finished("model-1", source) is None
    assert Journal(tmp_path, {"torch": "2"}).finished("model-1", source) is None
