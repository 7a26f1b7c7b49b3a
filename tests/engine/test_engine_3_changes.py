"""A real engine that is killed, replaced by one that does not start, and taken down: in this order, on one engine."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from engine_fixtures import Serving
from real_engine import Deployment

pytestmark = pytest.mark.engine


def right(serving: Serving) -> bool:
    """Whether a taught fact is answered."""
    fact = serving.facts[0]
    return fact.known("".join(serving.made.chat(fact.question)[0]))


def processes(made: Deployment) -> list[str]:
    """The command lines of all that runs out of the deployment's folders."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words, folder = (path / "cmdline").read_bytes().decode(), str((path / "cwd").readlink())
        except OSError:
            continue
        if str(made.root) in words or folder.startswith(str(made.root)):
            found.append(words.replace("\0", " "))
    return found


def test_a_killed_engine_is_told_of_and_started_again(serving: Serving) -> None:
    before = serving.made.status()
    os.kill(before["pid"], signal.SIGKILL)
    time.sleep(0.5)
    status = serving.made.status()
    assert status["condition"] in ("restarting", "unhealthy")
    assert "killed by SIGKILL" in serving.made.deployc("logs", "-n", "20").out
    end = time.monotonic() + 300
    while (status := serving.made.status())["condition"] != "serving":
        assert time.monotonic() < end, status
        time.sleep(1)
    assert (status["restarts"], status["entry"]) == (1, before["entry"])
    assert status["pid"] != before["pid"] and "killed by SIGKILL" in status["reason"]
    assert right(serving)


def test_a_new_version_that_does_not_start_leaves_the_old_one_serving(serving: Serving) -> None:
    before = serving.made.status()
    file = serving.made.write("next.yaml", {"model.overrides": {"architectures": ["NoSuchForCausalLM"]}})
    done = serving.made.deployc("apply", "-f", file)
    assert done.code == 1, done.err
    assert done.errors == ["DC640", "DC656"], done.err
    said = " ".join(done.err.split())
    assert "the last lines of" in said and "['NoSuchForCausalLM'] are not supported for now" in said
    assert "note[DC645]" in done.err and f"{before['entry']} was put back" in done.err
    after = serving.made.status()
    assert (after["condition"], after["entry"]) == ("serving", before["entry"])
    assert after["pid"] != before["pid"]
    assert right(serving)
    assert serving.made.deployc("plan", "--detailed-exitcode").code == 0, "what runs is what deploy.yaml says"


def test_destroy_leaves_no_process_and_no_secret(serving: Serving) -> None:
    made = serving.made
    assert len(processes(made)) >= 2
    assert made.deployc("destroy", "--yes").code == 0
    assert processes(made) == []
    assert made.status()["condition"] == "nothing"
    assert list(made.state.secrets.iterdir()) == []
    assert "nothing was running" in made.deployc("destroy", "--yes").out
