"""Whether a start can be seen to have succeeded: who asks, where, and for how long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from deployc.diagnostics import Diagnostic, error, warning
from deployc.rules.case import Case

UNREACHABLE: Mapping[str, str] = {
    "ssl-certfile": "the engine speaks TLS alone, with a certificate that is not made for 127.0.0.1",
    "ssl-keyfile": "the engine speaks TLS alone",
    "uds": "the engine listens on a unix socket and on no port",
    "headless": "the engine has no HTTP server at all",
    "grpc": "the engine speaks gRPC in place of HTTP",
}
"""By flag, why http://…/health is never answered (vllm/entrypoints/openai/cli_args.py, launcher.py)."""


def can_be_asked(case: Case) -> Iterator[Diagnostic]:
    """A flag with which the health check never succeeds."""
    for written, value in case.deploy.engine.args.items():
        name = case.facts.engine.canonical(written)
        if name not in UNREACHABLE or name not in case.facts.engine.flags or value in (None, False):
            continue
        yield error(
            "DC607",
            "the health check cannot reach the engine",
            f"With --{name} {UNREACHABLE[name]}: the check asks http:// on port {case.deploy.target.port}, so the "
            "engine would be stopped as one that never became ready.",
            f"remove engine.args.{written}; a proxy before the engine can have the certificate",
            case.deploy.at(("engine", "args", written)),
        )


def start_has_time(case: Case) -> Iterator[Diagnostic]:
    """A time-out that is shorter than the start is predicted to be."""
    limit, predicted = case.deploy.rollout.health_timeout, case.prediction.startup_seconds
    if limit == "auto" or limit >= predicted.high:
        return
    never = limit < predicted.low
    yield (error if never else warning)(
        "DC606",
        "the start takes longer than it may",
        f"It is predicted to take {predicted.value:,.0f} s ({predicted.low:,.0f} to {predicted.high:,.0f} s): import, "
        f"loading, compilation and CUDA graphs. After {limit:,.0f} s an engine that is not ready is stopped, and "
        f"started anew{', each time' if never else ''}.",
        f"remove rollout.health_timeout, or set it to {2 * predicted.high:.0f}s",
        case.deploy.at("rollout.health_timeout"),
        predicted.basis,
    )
