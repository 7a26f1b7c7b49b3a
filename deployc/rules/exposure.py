"""Who can reach the engine."""

from __future__ import annotations

from collections.abc import Iterator

from deployc.diagnostics import Diagnostic, warning
from deployc.rules.case import Case

LOOPBACK = ("127.", "::1", "[::1]", "localhost")


def open_without_key(case: Case) -> Iterator[Diagnostic]:
    """An address that others reach, and no key."""
    target = case.deploy.target
    if target.bind.startswith(LOOPBACK) or target.api_key is not None:
        return
    yield warning(
        "DC600",
        "others can use the engine without a key",
        f"It listens on {target.bind}:{target.port} and target.api_key is not set.",
        "set target.api_key: {env: NAME}, or bind to 127.0.0.1 behind a proxy that asks for one",
        case.deploy.at("target.bind"),
    )
