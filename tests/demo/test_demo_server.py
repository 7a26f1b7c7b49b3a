"""What the demo reads of a running engine, against a loopback server that answers as vLLM 0.32.0 was seen to answer."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import ClassVar

import pytest

DEMO = Path(__file__).resolve().parents[2] / "examples" / "smollm2-cpu"
MODULES = ("steps", "ask", "serve")


class Engine(BaseHTTPRequestHandler):
    """`answers` path -> (status, text, bytes promised beyond those sent)."""

    answers: ClassVar[dict[str, tuple[int, str, int]]] = {}
    asked: ClassVar[list[dict[str, object]]] = []

    def do_GET(self) -> None:
        status, text, more = self.answers.get(self.path, (404, "", 0))
        self.send_response(status)
        self.send_header("Content-Length", str(len(text.encode()) + more))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_POST(self) -> None:
        self.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Nothing: a test's output is its own."""


@pytest.fixture
def url() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Engine)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    Engine.answers.clear()
    Engine.asked.clear()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    monkeypatch.syspath_prepend(str(DEMO))
    yield {name: importlib.import_module(name) for name in MODULES}
    for name in MODULES:
        sys.modules.pop(name, None)


def _events(*contents: str) -> str:
    chunks = [{"choices": [{"delta": {"role": "assistant", "content": ""}}]}]
    chunks += [{"choices": [{"delta": {"content": content}}]} for content in contents]
    last = {"choices": [], "usage": {"completion_tokens": len(contents) + 1}}
    return "".join(f"data: {json.dumps(event)}\n\n" for event in (*chunks, last)) + "data: [DONE]\n\n"


def test_a_streamed_answer_is_put_together_from_its_pieces(modules: dict[str, ModuleType], url: str) -> None:
    Engine.answers["/v1/chat/completions"] = (200, _events("Made", " in", " Trondheim."), 0)
    streamed = modules["ask"].stream(url, "demo", "Where?")
    assert (streamed.text, streamed.chunks, streamed.tokens) == ("Made in Trondheim.", 3, 4)
    assert Engine.asked[0]["stream"] is True
    assert Engine.asked[0]["temperature"] == 0


@pytest.mark.parametrize(
    ("answer", "said"),
    [((400, "no such model", 0), "answered 400: no such model"), ((200, _events("Made"), 50), "broke off")],
)
def test_an_answer_that_is_none_fails_the_step(
    modules: dict[str, ModuleType], url: str, answer: tuple[int, str, int], said: str
) -> None:
    Engine.answers["/v1/chat/completions"] = answer
    with pytest.raises(modules["steps"].StepFailed, match=said):
        modules["ask"].stream(url, "demo", "Where?")


def test_the_engine_says_what_it_serves_and_what_fits(modules: dict[str, ModuleType], url: str, tmp_path: Path) -> None:
    header = json.dumps({"__metadata__": {}, "w": {"dtype": "I8", "shape": [6], "data_offsets": [0, 6]}}).encode()
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(6))
    Engine.answers["/v1/models"] = (200, json.dumps({"data": [{"id": "demo", "root": str(tmp_path)}]}), 0)
    Engine.answers["/metrics"] = (200, 'vllm:cache_config_info{kv_cache_size_tokens="46592"} 1.0\n', 0)
    seen = modules["serve"].served(url)
    assert (seen.name, seen.weights_bytes, seen.kv_cache_tokens) == ("demo", 6, 46592)


def test_no_engine_there_says_where_to_look(modules: dict[str, ModuleType]) -> None:
    with pytest.raises(modules["steps"].StepFailed) as failed:
        modules["serve"].served("http://127.0.0.1:9")
    assert "deployc logs -f examples/smollm2-cpu/deploy.yaml" in failed.value.go_on


def test_a_command_that_fails_names_itself(modules: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modules["serve"], "command", lambda *_: [sys.executable, "-c", "raise SystemExit(4)"])
    with pytest.raises(modules["steps"].StepFailed, match=r"deployc plan -f .* exit code 4"):
        modules["serve"].deployc("plan")


def test_an_interrupted_command_interrupts_the_demo(
    modules: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(modules["serve"], "command", lambda *_: [sys.executable, "-c", "raise SystemExit(130)"])
    with pytest.raises(KeyboardInterrupt):
        modules["serve"].deployc("apply")
