"""Keys of the contract that no stage uses yet: refused where they differ from the default, never ignored."""

from __future__ import annotations

from typing import Any

from deployc.diagnostics import Diagnostic, error
from deployc.spec.deploy import Deploy

NOT_YET: dict[str, tuple[Any, ...]] = {
    "quantization.group_size": ("auto",),
    "quantization.calibration": (None,),
    "quantization.quality": (None,),
    "quantization.weights": ("none", "auto", "int8", "checkpoint"),
    "hardware.nodes": (1,),
    "hardware.driver": (None,),
    "hardware.cpus": (None,),
    "hardware.host": ("auto", "linux"),
    "hardware.display": (False,),
    "hardware.price": (None,),
    "engine.parallel.pipeline": (1,),
    "engine.parallel.data": (1,),
    "engine.parallel.expert": (False,),
    "engine.offload.weights": (0,),
    "engine.offload.kv": (0,),
    "engine.speculative": (None,),
    "target.kind": ("process", "docker", "compose", "systemd"),
    "target.docker_host": (None,),
    "target.volumes": ([],),
    "target.networks": ([],),
    "target.labels": ({},),
    "target.extra_hosts": ([],),
    "target.http_proxy": ("inherit",),
    "rollout.strategy": ("auto", "stop-first"),
    "rollout.edge": ("auto", "none"),
    "rollout.golden": (None,),
}
"""Key -> the values that are supported today."""


def unsupported(deploy: Deploy) -> list[Diagnostic]:
    """DC170 for every key or value of the contract that this version would otherwise ignore."""
    found = []
    for dotted, supported in NOT_YET.items():
        value: Any = deploy
        for part in dotted.split("."):
            value = getattr(value, part)
        if value not in supported:
            shown = ", ".join(str(one) for one in supported if one not in (None, [], {}))
            fix = f"use one of: {shown}" if len(supported) > 1 else "remove the key"
            found.append(
                error(
                    "DC170",
                    "not supported yet",
                    f"{dotted}{_shown(value)} has no effect in this version.",
                    fix,
                    deploy.at(dotted),
                )
            )
    return found


def _shown(value: Any) -> str:
    """A single value; the content of lists and maps stands in the file, and may hold what nobody should repeat."""
    return f": {value!r}" if isinstance(value, str | int | float) else ""
