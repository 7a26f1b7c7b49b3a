"""What cannot work is refused with one message, and the engine that runs goes on answering."""

from __future__ import annotations

import json
import os
import resource
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from engine_fixtures import Serving
from real_engine import EXAMPLE, KEY_VARIABLE, Deployment, Done

from deployc.apply.mutex import hold

pytestmark = pytest.mark.engine

NEXT = {"api.served_model_name": ["smollm2-next"]}
"""What makes a file another one than that which runs."""


@pytest.fixture
def running(serving: Serving) -> Iterator[Deployment]:
    """The deployment; whatever a test tried, the same process still answers after it."""
    before = serving.made.status()
    yield serving.made
    after = serving.made.status()
    assert (after["condition"], after["pid"], after["entry"]) == ("serving", before["pid"], before["entry"])
    assert serving.made.get("/v1/models").json()["data"][0]["id"] == "smollm2-demo"


def refused(
    made: Deployment,
    changes: Mapping[str, Any],
    *,
    env: Mapping[str, str] | None = None,
    limit: Callable[[], None] | None = None,
) -> Done:
    """An apply of a changed file, which must fail with exactly one error and without a traceback."""
    file = made.write("next.yaml", changes)
    try:
        done = made.deployc("apply", "-f", file, env=env, limit=limit)
    finally:
        (made.folder / file).unlink()
    assert done.code != 0 and "Traceback" not in done.err + done.out
    assert len(done.errors) == 1 and "= fix: " in done.err, done.err
    return done


def adapter(folder: Path, hidden: int) -> Path:
    """The demo's adapter as it would be for a base of another hidden size: same names, other shapes, all zero."""
    real = EXAMPLE / "work" / "velmora-t9"
    with (real / "adapter_model.safetensors").open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    made, end = {}, 0
    for name, tensor in header.items():
        if name != "__metadata__":
            shape = [hidden if size == 576 else size for size in tensor["shape"]]
            begin, end = end, end + 4 * shape[0] * shape[1]
            made[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(made).encode()
    folder.mkdir()
    shutil.copy(real / "adapter_config.json", folder)
    (folder / "adapter_model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + bytes(end))
    return folder


def test_an_adapter_of_another_base(running: Deployment, tmp_path: Path) -> None:
    folder = adapter(tmp_path / "other", hidden=64)
    done = refused(running, {"adapters": [{"name": "velmora-t9", "source": str(folder), "mode": "merge"}]})
    assert done.code == 3 and done.errors[0].startswith("DC2")
    assert "576" in done.err and "64" in done.err, "both shapes are said"


def test_an_adapter_without_its_weights(running: Deployment, tmp_path: Path) -> None:
    folder = adapter(tmp_path / "half", hidden=576)
    (folder / "adapter_model.safetensors").unlink()
    done = refused(running, {"adapters": [{"name": "velmora-t9", "source": str(folder), "mode": "merge"}]})
    assert done.code == 3 and done.errors[0].startswith("DC2")
    assert "adapter_model.safetensors" in done.err


def test_a_model_folder_that_is_not_there(running: Deployment) -> None:
    done = refused(running, {"model.source": "./nowhere"})
    assert done.code == 3 and done.errors[0].startswith("DC2")
    assert "nowhere" in done.err


def test_a_port_that_a_stranger_holds(running: Deployment) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]
        done = refused(running, {"target.port": port})
    assert (done.code, done.errors) == (1, ["DC636"])
    assert str(port) in done.err and str(os.getpid()) in done.err


def test_a_full_disk_known_before_the_build(running: Deployment, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "none", small], capture_output=True).returncode:
        pytest.skip("mounting a small disk is not allowed here; the next test stands in for it")
    try:
        done = refused(running, {"quantization.weights": "none", "build.store": str(small)})
        assert (done.code, done.errors) == (1, ["DC272"])
        assert "MiB" in done.err and list(small.iterdir()) == []
    finally:
        subprocess.run(["umount", small], check=True)


def test_a_disk_that_fills_during_the_build(running: Deployment, tmp_path: Path) -> None:
    """A limit on the size of files stands in for the disk: the same error from the same write."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2**24, 2**24))

    done = refused(running, {"quantization.weights": "none", "build.store": str(tmp_path / "store")}, limit=limit)
    assert (done.code, done.errors) == (1, ["DC273"])
    assert [path for path in (tmp_path / "store").rglob("*") if path.is_file() and path.stat().st_size] == []


def test_a_key_whose_variable_is_not_set(running: Deployment) -> None:
    env = {name: value for name, value in running.env.items() if name != KEY_VARIABLE}
    done = refused(running, NEXT, env=env)
    assert (done.code, done.errors) == (1, ["DC634"])
    assert KEY_VARIABLE in done.err


def test_an_engine_environment_that_is_not_there(running: Deployment) -> None:
    done = refused(running, {**NEXT, "engine.python": "./nowhere/bin/python"})
    assert (done.code, done.errors) == (1, ["DC620"])
    assert "deployc engine install --version 0.32.0 --cpu" in done.err


def test_a_second_apply_at_the_same_time(running: Deployment) -> None:
    with hold(running.state):
        done = refused(running, NEXT)
    assert (done.code, done.errors) == (5, ["DC632"])
    assert str(os.getpid()) in done.err
