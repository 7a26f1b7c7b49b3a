"""Does the engine serve: /health, the right name in /v1/models, one real completion. No proxy is asked on the way."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PROMPT = "Hello"
COMPLETION_TOKENS = 4


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where an engine listens, as what, and the key that its /v1 routes ask for ("" = none)."""

    bind: str
    port: int
    served_name: str
    api_key: str = ""

    @property
    def host(self) -> str:
        """An address to reach it by: the loopback where it listens on every address."""
        return {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(self.bind, self.bind)  # noqa: S104

    @property
    def url(self) -> str:
        """The base URL for clients on this host."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


class Unhealthy(Exception):
    """What was asked and what came instead. `final` = waiting longer cannot mend it."""

    def __init__(self, detail: str, *, final: bool = False) -> None:
        self.final = final
        super().__init__(detail)


def live(endpoint: Endpoint, timeout: float = 1.0) -> bool:
    """Whether GET /health answers 200 within `timeout` seconds."""
    try:
        return _ask(endpoint, "GET", "/health", timeout)[0] == http.client.OK
    except Unhealthy:
        return False


def verify(endpoint: Endpoint, timeout: float) -> str:
    """The text of one completion by the model of the right name; Unhealthy where any of it is not so."""
    names = served_names(endpoint, min(timeout, 10.0))
    if endpoint.served_name not in names:
        shown = ", ".join(map(repr, names)) or "no model"
        raise Unhealthy(f"/v1/models lists {shown}, not {endpoint.served_name!r}", final=True)
    question = {"model": endpoint.served_name, "prompt": PROMPT, "max_tokens": COMPLETION_TOKENS, "temperature": 0}
    status, answer = _ask(endpoint, "POST", "/v1/completions", timeout, question)
    if status != http.client.OK:
        raise Unhealthy(f"/v1/completions answers {status}: {json.dumps(answer)[:300]}", final=True)
    try:
        return str(answer["choices"][0]["text"])
    except (KeyError, IndexError, TypeError):
        raise Unhealthy(f"/v1/completions answers without a choice: {json.dumps(answer)[:300]}", final=True) from None


def served_names(endpoint: Endpoint, timeout: float = 10.0) -> list[str]:
    """The names in /v1/models; Unhealthy where it does not answer with a list of models."""
    status, answer = _ask(endpoint, "GET", "/v1/models", timeout)
    if status != http.client.OK:
        raise Unhealthy(f"/v1/models answers {status}: {json.dumps(answer)[:300]}", final=True)
    try:
        return [str(model["id"]) for model in answer["data"]]
    except (KeyError, TypeError):
        raise Unhealthy(f"/v1/models answers no list of models: {json.dumps(answer)[:300]}", final=True) from None


def _ask(
    endpoint: Endpoint, method: str, path: str, timeout: float, body: Mapping[str, Any] | None = None
) -> tuple[int, Any]:
    headers = {"Content-Type": "application/json"}
    if endpoint.api_key:
        headers["Authorization"] = f"Bearer {endpoint.api_key}"
    connection = http.client.HTTPConnection(endpoint.host, endpoint.port, timeout=timeout)
    try:
        connection.request(method, path, json.dumps(body) if body else None, headers)
        response = connection.getresponse()
        text = response.read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as failure:
        raise Unhealthy(f"{method} {endpoint.url}{path}: {failure or type(failure).__name__}") from failure
    finally:
        connection.close()
    try:
        return response.status, json.loads(text) if text else None
    except ValueError:
        return response.status, text
