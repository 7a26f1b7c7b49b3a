"""A stand-in for `vllm serve`: the same flags, routes and exit behaviour as far as apply sees them; it knows no model.

What goes wrong is chosen by STANDIN, a comma-separated list:
crash, oom, hang, no-port, wrong-name, refuse-completion, exit-on-request, ignore-term, worker, tell-secrets, bad-bytes;
and by STANDIN_CRASH_IF, a path: crash at start if it exists.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

MODES = set(os.environ.get("STANDIN", "").split(","))
OUT_OF_MEMORY = (
    "ValueError: Free memory on device cuda:0 (3.1/23.5 GiB) on startup is less than desired GPU memory utilization "
    "(0.92, 21.62 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes."
)


def flag(name: str, default: str) -> str:
    """The value of --name in the arguments."""
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


NAME = (
    "another-model" if "wrong-name" in MODES else flag("--served-model-name", sys.argv[2] if len(sys.argv) > 2 else "")
)
KEY = os.environ.get("VLLM_API_KEY")


class Routes(BaseHTTPRequestHandler):
    """/health, /v1/models, /v1/completions, /v1/chat/completions (streamed when asked)."""

    def do_GET(self) -> None:
        if self.path == "/health":
            self._answer(200, None)
        elif self.path == "/v1/models" and self._allowed():
            self._answer(200, {"object": "list", "data": [{"id": NAME, "object": "model"}]})

    def do_POST(self) -> None:
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self._allowed():
            return
        if "exit-on-request" in MODES:
            os._exit(7)
        if "refuse-completion" in MODES or question["model"] != NAME:
            self._answer(404, {"error": {"message": f"The model `{question['model']}` does not exist."}})
        elif question.get("stream"):
            self._stream()
        elif self.path == "/v1/completions":
            self._answer(200, {"choices": [{"text": " a word"}], "usage": {"completion_tokens": 2}})
        else:
            self._answer(200, {"choices": [{"message": {"role": "assistant", "content": "a word"}}]})

    def _stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for word in ("a", " word"):
            chunk = {"choices": [{"delta": {"content": word}}]}
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")

    def _allowed(self) -> bool:
        if KEY and self.headers["Authorization"] != f"Bearer {KEY}":
            self._answer(401, {"error": "Unauthorized"})
            return False
        return True

    def _answer(self, status: int, body: Any) -> None:
        content = json.dumps(body).encode() if body is not None else b""
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def main() -> None:
    """Start as told, serve until SIGTERM or SIGINT."""
    print(f"stand-in engine {NAME}, arguments {sys.argv[1:]}")
    if "tell-secrets" in MODES:
        print(f"api key {KEY} in {dict(os.environ)}")
    if "bad-bytes" in MODES:
        sys.stdout.buffer.write(b"\x1b]0;owned\x07\xff\xfe \x1b[31mred\x1b[0m 10%\r20%\r100%\n")
    if "oom" in MODES:
        print(OUT_OF_MEMORY)
        sys.exit(1)
    if "crash" in MODES or Path(os.environ.get("STANDIN_CRASH_IF", "/nowhere")).exists():
        print("RuntimeError: Engine core initialization failed. See root cause above.")
        sys.exit(1)
    if "no-port" in MODES:
        print("OSError: [Errno 98] Address already in use")
        sys.exit(1)
    if "worker" in MODES:
        worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        print(f"worker {worker.pid}")
    if "ignore-term" in MODES:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    else:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    if "hang" in MODES:
        time.sleep(600)
    host = flag("--host", "127.0.0.1")
    ThreadingHTTPServer.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
    ThreadingHTTPServer((host, int(flag("--port", "8000"))), Routes).serve_forever()


if __name__ == "__main__":
    main()
