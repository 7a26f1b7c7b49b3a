"""Keys of the contract that no stage uses yet: refused where they say something, never ignored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from deployc.diagnostics import Diagnostic
from deployc.spec import faults
from deployc.spec.faults import fault, said
from deployc.spec.written import Written

_ZERO = (0, "0", "0B", "0GiB")
NOT_YET: dict[str, tuple[tuple[Any, ...], str]] = {
    "hardware.nodes": ((1,), "one machine is planned for"),
    "hardware.host": (("auto", "linux"), "what WSL2 holds of a card is not in the cost model"),
    "hardware.display": ((False,), "what a screen holds of a card is not in the cost model; use reserved_memory"),
    "engine.parallel.pipeline": ((1,), "layers are not spread over cards"),
    "engine.parallel.data": ((1,), "use replicas"),
    "engine.parallel.expert": ((False,), "experts are not spread over cards"),
    "engine.offload.weights": (_ZERO, "offloading is not in the cost model"),
    "engine.offload.kv": (_ZERO, "offloading is not in the cost model"),
    "engine.speculative": ((None,), "speculative decoding is not in the cost model"),
    "target.kind": (("process", "docker", "compose", "systemd"), "no manifests for it are made"),
    "target.docker_host": ((None,), "the environment's Docker engine is used"),
    "target.volumes": (([],), "no further volumes are mounted"),
    "target.networks": (([],), "no further networks are joined"),
    "target.labels": (({},), "no further labels are set"),
    "target.extra_hosts": (([],), "no further hosts are set"),
    "target.http_proxy": (("inherit",), "the environment's proxy is used"),
    "rollout.strategy": (("auto", "stop-first"), "the old engine is stopped before the new one starts"),
    "rollout.edge": (("auto", "none"), "nothing stands before the engine"),
    "rollout.golden": ((None,), "no answers are kept"),
}
"""Key -> the values that change nothing or are supported today, and why others are refused."""


def unsupported(written: Written) -> Iterator[Diagnostic]:
    """DC170 for every key or value of the contract that this version would otherwise ignore."""
    for dotted, (supported, why) in NOT_YET.items():
        path = tuple(dotted.split("."))
        value = written.get(*path)
        if path not in written.spans or value is None or value in supported:
            continue
        shown = ", ".join(str(one) for one in supported if one not in (None, [], {}))
        fix = f"write one of {shown}" if len(supported) > 1 and supported is not _ZERO else "remove the key"
        yield fault(
            faults.NOT_YET, f"`{dotted}` has {said(value)}, which nothing would heed: {why}.", fix, written.at(*path)
        )
