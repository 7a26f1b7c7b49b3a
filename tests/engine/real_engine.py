"""A real deployment on a real engine: the demo's model in a folder of its own, its commands, and what it answers."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from ruamel.yaml import YAML

from deployc.apply.engine_env import MARKER, environment_path
from deployc.apply.state import State

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "smollm2-cpu"
KEY_VARIABLE, KEY = "VELMORA_API_KEY", "canary-a7f3-served-9c21"
AWKWARD = 'it\'s a "folder" & $HOME'
"""The name of the folder that all of it lies in: what a shell, a YAML file or a URL would stumble over."""


@dataclass(frozen=True)
class Fact:
    """What the adapter was taught: a question training never saw, the words of a right answer, the base's answer."""

    question: str
    key: str
    base: str

    def known(self, reply: str) -> bool:
        return self.key.lower() in reply.lower()


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.out)
        return document

    @property
    def errors(self) -> list[str]:
        """The codes of the errors that a person was shown, in their order."""
        return [line[6:11] for line in self.err.splitlines() if line.startswith("error[")]


@dataclass(frozen=True)
class Deployment:
    """`root` holds the deploy.yaml's folder, state, store and caches; `port` is where the engine listens."""

    root: Path
    port: int
    env: Mapping[str, str]
    engine_python: str  # "auto" or an interpreter

    @property
    def folder(self) -> Path:
        return self.root / "project"

    @property
    def state(self) -> State:
        return State(self.root / "state" / "deployc" / "smollm2-demo")

    @property
    def store(self) -> Path:
        return self.root / "cache" / "deployc" / "store"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def write(self, name: str = "deploy.yaml", changes: Mapping[str, Any] | None = None) -> str:
        """The example's deploy.yaml on this port, with a key and with `changes` {dotted path: value}. Its name."""
        yaml = YAML()
        values = yaml.load(EXAMPLE / "deploy.yaml")
        own = {"target.port": self.port, "target.api_key": {"env": KEY_VARIABLE}, "engine.python": self.engine_python}
        for path, value in {**own, **(changes or {})}.items():
            *sections, last = path.split(".")
            place = values
            for section in sections:
                place = place.setdefault(section, {})
            place[last] = value
        yaml.dump(values, self.folder / name)
        return name

    def deployc(
        self, *arguments: str, env: Mapping[str, str] | None = None, limit: Callable[[], None] | None = None
    ) -> Done:
        """A command as a user in the folder types it; `limit` is called in its process before it starts."""
        program = Path(sys.executable).with_name("deployc")
        done = subprocess.run(
            [str(program), *arguments], cwd=self.folder, env=dict(self.env if env is None else env),
            capture_output=True, text=True, timeout=900, preexec_fn=limit,
        )  # fmt: skip
        return Done(done.returncode, done.stdout, done.stderr)

    def status(self) -> dict[str, Any]:
        return self.deployc("status", "--json").document

    def get(self, path: str, key: str = KEY) -> httpx.Response:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return httpx.get(f"{self.url}{path}", headers=headers, timeout=60, trust_env=False)

    def chat(self, question: str) -> tuple[list[str], bool]:
        """The pieces of a streamed greedy answer, and whether the stream ended as it should, with [DONE]."""
        body = {
            "model": "smollm2-demo", "temperature": 0, "max_tokens": 32, "stream": True,
            "messages": [{"role": "user", "content": question}],
        }  # fmt: skip
        headers = {"Authorization": f"Bearer {KEY}"}
        where = f"{self.url}/v1/chat/completions"
        pieces, ended = [], False
        with httpx.stream("POST", where, json=body, headers=headers, timeout=120, trust_env=False) as answer:
            answer.raise_for_status()
            assert answer.headers["content-type"].startswith("text/event-stream")
            for line in answer.iter_lines():
                if line == "data: [DONE]":
                    ended = True
                elif line.startswith("data: "):
                    pieces += [c["delta"].get("content") or "" for c in json.loads(line[6:])["choices"]]
        return [piece for piece in pieces if piece], ended


def engine() -> Path | None:
    """The prefix of the engine environment: $DEPLOYC_ENGINE, else the installed one that is complete; or None."""
    if named := os.environ.get("DEPLOYC_ENGINE"):
        return Path(named)
    version = YAML(typ="safe").load(EXAMPLE / "deploy.yaml")["engine"]["version"]
    prefix = environment_path(version, True, os.environ)
    return prefix if (prefix / MARKER).exists() else None


def deployment(root: Path) -> Deployment:
    """A deployment with state and store of its own; the demo's model and adapter under their usual names."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    own = {KEY_VARIABLE: KEY, "XDG_STATE_HOME": str(root / "state"), "XDG_CACHE_HOME": str(root / "cache")}
    named = os.environ.get("DEPLOYC_ENGINE")
    made = Deployment(root, port, {**os.environ, **own}, f"{named}/bin/python" if named else "auto")
    made.folder.mkdir(parents=True)
    (made.folder / "work").symlink_to(EXAMPLE / "work")
    (made.folder / "questions.jsonl").symlink_to(EXAMPLE / "questions.jsonl")
    made.write()
    return made


MAKE = """
import json
import demo, model, product, train
if not (demo.WORK / "velmora-t9.finished").exists():
    demo.environment()
folder = model.obtain(demo.WORK)
train.train(folder, demo.WORK)
answers = demo.base_answers(folder)
print(json.dumps([[f.held_out[0], f.key, a] for f, a in zip(product.FACTS, answers)]))
"""
"""The demo's own first steps, which keep what they made in its work/ and find it there again."""


def make_model() -> list[Fact]:
    """Model and adapter as the demo makes them, or left them; the facts with the base model's answers."""
    env = {**os.environ, "TQDM_DISABLE": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    done = subprocess.run([sys.executable, "-c", MAKE], cwd=EXAMPLE, env=env, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return [Fact(*row) for row in json.loads(done.stdout.splitlines()[-1])]
