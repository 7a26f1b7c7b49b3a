"""The worker as a process: the same bytes every time, killed and gone on with, a full disk, two at once."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from adapted import Small
from slowly import bootstrap

from deployc.build import process
from deployc.build.store import verify
from deployc.diagnostics import Stop
from deployc.types.manifest import Artifact, Progress

ROOT = Path(__file__).resolve().parents[2]


def digests(artifact: Artifact) -> dict[str, str]:
    return {name: content.sha256 for name, content in artifact.manifest.files.items()}


@pytest.fixture
def slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "BOOTSTRAP", bootstrap())


def workers() -> list[int]:
    """Living children of this process that run the worker."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and b"deployc.build.worker" in (path / "cmdline").read_bytes():
                found.append(int(path.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


@pytest.mark.build
def test_the_same_inputs_give_the_same_bytes(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = small.recipe("int8")
    one = small.build(recipe, store=small.root / "one")
    monkeypatch.setenv("PYTHONSAFEPATH", "1")  # then sys.path has no entry for the working folder
    two = small.build(recipe, store=small.root / "two")
    assert digests(one) == digests(two)
    assert one.manifest.torch == two.manifest.torch
    assert one.manifest.threads == 1
    assert verify(small.root / "one", recipe.key) == []
    again = small.build(recipe, store=small.root / "one", python="/nowhere/python")
    assert again.manifest.built_at == one.manifest.built_at, "a finished artifact is not built again"


@pytest.mark.build
@pytest.mark.usefixtures("slowly")
def test_a_finished_shard_that_was_damaged_since_is_removed_and_made_anew(small: Small) -> None:
    recipe, name = small.recipe(), "model-00001-of-00002.safetensors"
    shard = small.store / f".building-{recipe.key}" / name
    there: list[bool] = []

    def interrupt(now: Progress) -> None:
        if now.phase == "write":
            while not shard.exists():
                time.sleep(0.01)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        small.build(recipe, progress=interrupt)
    content = shard.read_bytes()
    shard.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    made = small.build(recipe, progress=lambda now: there.append(shard.exists()) if now.phase == "write" else None)
    assert not there[0], "it is gone before anything is written in its place"
    assert (made.path / name).read_bytes() == content
    assert verify(small.store, recipe.key) == []


@pytest.mark.build
@pytest.mark.usefixtures("slowly")
def test_an_interrupted_build_leaves_nothing_half_named(small: Small) -> None:
    recipe = small.recipe()

    def interrupt(now: Progress) -> None:
        if now.phase == "write" and now.done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        small.build(recipe, progress=interrupt)
    assert workers() == []
    assert [p for p in small.store.rglob("*") if "partial" in p.name or p.name.endswith(".lock")] == []


@pytest.mark.build
@pytest.mark.usefixtures("slowly")
def test_a_worker_whose_tool_is_gone_ends(small: Small, tmp_path: Path) -> None:
    """The tool is killed with SIGKILL: its worker sees its standard input close, and leaves no partial file."""
    program = f"""
import sys; sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / "tests")!r}, {str(Path(__file__).parent)!r}]
from pathlib import Path
from adapted import Small
from deployc.build import process
process.BOOTSTRAP = {process.BOOTSTRAP!r}
small = Small(Path({str(small.root)!r})); small.adapters["qa"] = 1.0
def say(now):
    if now.phase == "write": print(now.done, flush=True)
from deployc.build.build import build
build(small.recipe(), folder=small.root, store=small.store, python=None, engine_python=None, progress=say)
"""
    tool = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert tool.stdout is not None
    assert tool.stdout.readline().strip().isdigit()
    tool.kill()
    tool.wait()
    deadline = time.monotonic() + 20
    partial = True
    while partial and time.monotonic() < deadline:
        time.sleep(0.05)
        partial = any("partial" in p.name for p in small.store.rglob("*"))
    assert not partial
    assert set(digests(small.build())) >= {"config.json", "model-00001-of-00002.safetensors"}


@pytest.mark.build
@pytest.mark.usefixtures("slowly")
def test_two_builds_of_one_key_wait_for_each_other(small: Small) -> None:
    recipe = small.recipe()
    phases: list[list[str]] = [[], []]
    made: list[Artifact] = []

    def one(index: int) -> None:
        made.append(small.build(recipe, progress=lambda now: phases[index].append(now.phase)))

    threads = [threading.Thread(target=one, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
        time.sleep(0.3)
    for thread in threads:
        thread.join()
    assert set(phases[0]) == {"check", "write"}
    assert phases[1] == ["wait"]
    assert made[0].manifest == made[1].manifest
    assert [p.name for p in small.store.iterdir()] == [recipe.key]


@pytest.fixture
def little_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 18 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=18m", "tmpfs", str(place)], capture_output=True)
    if done.returncode != 0:
        pytest.skip("a tmpfs cannot be mounted here; the limit on file sizes stands in for it in the test below")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.build
@pytest.mark.usefixtures("slowly")
def test_a_disk_that_fills_in_the_middle(small: Small, little_disk: Path) -> None:
    store = little_disk / "store"
    before = small.build(store=store)
    kept = digests(before)
    filler = little_disk / "filler"

    def fill(now: Progress) -> None:
        if now.phase == "write" and now.done and not filler.exists():
            try:
                with filler.open("wb") as file:
                    while True:
                        file.write(bytes(65536))
            except OSError:
                pass

    with pytest.raises(Stop) as stop:
        small.build(small.recipe("int8"), store=store, progress=fill)
    (found,) = stop.value.report
    assert found.code == "DC273"
    assert "No space left" in found.detail
    assert [p.name for p in store.iterdir()] == [before.manifest.key]
    assert verify(store, before.manifest.key) == []
    filler.unlink()
    assert digests(small.build(small.recipe("int8"), store=store)) != kept


@pytest.mark.build
def test_a_limit_on_file_sizes_is_met_like_a_full_disk(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    """RLIMIT_FSIZE stands in for a full disk where none can be mounted."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))"
    monkeypatch.setattr(process, "BOOTSTRAP", limit + process.BOOTSTRAP)
    with pytest.raises(Stop) as stop:
        small.build()
    assert [d.code for d in stop.value.report] == ["DC273"]
    assert list(small.store.iterdir()) == []


def test_too_little_disk_is_said_before_the_first_byte(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.statvfs(small.root)
    monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result((*real[:4], 3, *real[5:])))
    monkeypatch.setattr(process, "interpreter", lambda *_: sys.executable)
    with pytest.raises(Stop) as stop:
        small.build()
    assert [d.code for d in stop.value.report] == ["DC272"]
    assert list(small.store.iterdir()) == []


def test_a_module_that_is_put_off_is_read_once_something_of_it_is_asked_for(tmp_path: Path) -> None:
    """Whatever a library does with it as it is imported, or another version of that library."""
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "__init__.py").write_text("import library.heavy\nfrom library import heavy\n")
    (tmp_path / "library" / "heavy.py").write_text("print('read')\nVALUE = 3\n")
    asks = "from library.heavy import VALUE\nprint(VALUE, sys.modules['library.heavy'].VALUE)\n"
    for asked, said in (("", ""), (asks, "read\n3 3\n")):
        program = process.BOOTSTRAP.replace("module.main()", f"import library\n{asked}")
        argv = [sys.executable, "-c", program, str(process.PACKAGE), "deployc.build.faults", "library.heavy"]
        env = {**os.environ, "PYTHONPATH": str(tmp_path)}
        done = subprocess.run(argv, env=env, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, said), done.stderr
