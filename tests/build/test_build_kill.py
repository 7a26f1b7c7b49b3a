"""`deployc build` killed with all its processes twenty times at random moments: in the end the bytes are the same."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from adapted import LLAMA, Small
from deployed import deploy_yaml, environment
from slowly import bootstrap

from deployc.build import store
from deployc.cli.main import run

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = f"""
import sys, time
sys.path.insert(0, {str(ROOT)!r})
from deployc.build import process
from deployc.build.store import making
from deployc.cli import progress
process.BOOTSTRAP = {bootstrap()!r}
progress.Objects.between = 0.0
real = making.sync
def told(path):
    print('{{"phase": "sync"}}', file=sys.stderr, flush=True)
    time.sleep(0.05)
    real(path)
making.sync = told
from deployc.cli.main import main
main()
"""
"""`deployc` with a slow worker, which tells of every event and before each of its last two steps."""

When = Callable[[dict[str, Any]], bool]


def descendants(pid: int) -> list[int]:
    """The living processes that one started, and those that they did."""
    children = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(path.read_text().rpartition(")")[2].split()[1]) == pid:
                children.append(int(path.parent.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return [*children, *(one for child in children for one in descendants(child))]


def killed(tool: subprocess.Popen[str]) -> None:
    """The tool and its worker, at once and without a word."""
    for pid in (tool.pid, *descendants(tool.pid)):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def built(small: Small, file: str, end: Callable[[subprocess.Popen[str]], None], when: When | None) -> tuple[int, str]:
    """Run a build and end it at the first event of which `when` is true; its exit code and the lines that are none."""
    tool = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "build", "-f", file, "--progress", "json"], cwd=small.root, text=True,
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment(small), start_new_session=True,
    )  # fmt: skip
    assert tool.stderr is not None
    said = []
    for line in tool.stderr:
        if not line.startswith("{"):
            said.append(line)
        elif when is not None and when(json.loads(line)):
            end(tool)
            when = None
    return tool.wait(), "".join(said)


def killed_at(small: Small, when: When) -> int:
    """The exit code of a build that was killed at an event."""
    return built(small, "deploy.yaml", killed, when)[0]


def killed_after(small: Small, seconds: float) -> int:
    """The exit code of a build that was killed so many seconds after its worker had begun, wherever it was then."""
    timers: list[threading.Timer] = []

    def start(tool: subprocess.Popen[str]) -> None:
        timers.append(threading.Timer(seconds, killed, [tool]))
        timers[0].start()

    code, _ = built(small, "deploy.yaml", start, lambda event: event["phase"] == "check")
    timers[0].join()
    return code


def moments(rng: random.Random) -> list[When]:
    """Seventeen moments: when the worker has begun, fifteen while it writes, when all is written but has no name."""

    def begun(event: dict[str, Any]) -> bool:
        return bool(event["phase"] == "check")

    def written(share: float) -> When:
        return lambda event: event["phase"] == "write" and event["done"] >= share * event["total"]

    def unnamed(event: dict[str, Any]) -> bool:
        return bool(event["phase"] == "sync")

    return [
        begun,
        *(written(share) for share in sorted(rng.uniform(0.0, 0.98) for _ in range(14))),
        written(1),
        unnamed,
    ]


def last_step() -> When:
    """When the artifact has its name, which may not be on the disk yet."""
    seen: list[str] = []

    def named(event: dict[str, Any]) -> bool:
        seen.append(event["phase"])
        return seen.count("sync") == 2

    return named


@pytest.fixture
def project(tmp_path: Path) -> Small:
    """A model in six shards, an adapter, and two deploy.yaml that differ in their stores alone."""
    small = Small(tmp_path).model(shards=6, config=LLAMA | {"num_hidden_layers": 4}).adapter("qa")
    for file, folder in (("deploy.yaml", "store"), ("whole.yaml", "whole")):
        deploy_yaml(small, file=file, quantization={"weights": "int8"}, build={"store": f"./{folder}"})
        (tmp_path / folder).mkdir()
    return small


def digests(place: Path) -> dict[str, str]:
    (artifact,) = store.artifacts(place)
    return {name: content.sha256 for name, content in artifact.manifest.files.items()}


@pytest.mark.build
def test_killed_twenty_times_and_gone_on_with(project: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, place = random.Random(5), project.root / "store"
    runs = [partial(killed_at, project, when) for when in moments(rng)]
    for seconds in (rng.uniform(0.0, 0.4), rng.uniform(0.0, 0.4)):
        runs.insert(rng.randrange(2, 15), partial(killed_after, project, seconds))
    finished = []
    for one in runs:
        assert one() == -signal.SIGKILL
        assert store.artifacts(place) == []
        assert store.damaged(place) == []
        finished.append(len(list(place.glob(".building-*/model-*"))))
    assert finished == sorted(finished), "finished shards stay"
    assert len(set(finished)) > 4, "and the kills were spread over the writing"
    assert killed_at(project, last_step()) == -signal.SIGKILL
    assert len(runs) + 1 == 20

    assert built(project, "deploy.yaml", killed, None)[0] == 0
    assert built(project, "whole.yaml", killed, None)[0] == 0
    assert digests(place) == digests(project.root / "whole")
    monkeypatch.chdir(project.root)
    assert run(["store", "verify"]) == 0
    assert [p for p in place.rglob("*") if "partial" in p.name] == []
    assert [p.name for p in place.iterdir() if not p.name.endswith(".lock")] == [p.name for p in place.glob("?" * 64)]


@pytest.mark.build
def test_ctrl_c_leaves_nothing_half_named(project: Small) -> None:
    def interrupt(tool: subprocess.Popen[str]) -> None:
        os.killpg(tool.pid, signal.SIGINT)

    code, said = built(
        project,
        "deploy.yaml",
        interrupt,
        lambda event: event["phase"] == "write" and 3 * event["done"] > event["total"],
    )
    assert code == 130
    assert "Traceback" not in said
    left = [p for p in (project.root / "store").rglob("*") if p.is_file()]
    assert left
    assert [p for p in left if "partial" in p.name or p.name.endswith(".lock")] == []
    assert store.artifacts(project.root / "store") == []
