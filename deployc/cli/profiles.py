"""`deployc profiles`: the cards that are known, each figure with its source."""

from __future__ import annotations

from typing import Annotated

import typer

from deployc.cli import options, show
from deployc.diagnostics import ExitCode


def command(
    name: Annotated[str | None, typer.Argument(help="One card, with the source of each figure.")] = None,
    json: options.Json = False,
) -> int:
    """List the GPU profiles, or show one. Example: deployc profiles rtx-4090"""
    from deployc.facts import gpu
    from deployc.units import show_bytes

    if name is not None:
        facts = gpu.profile(name)
        rows = [("memory", facts.memory), ("bandwidth", facts.bandwidth), *facts.flops.items()]
        if json:
            from dataclasses import asdict

            show.json({"format_version": "1.0", **asdict(facts)})
            return ExitCode.OK
        capability = ".".join(map(str, facts.compute_capability or ())) or "unknown"
        lines = [f"{facts.name}: compute capability {capability}, {facts.interconnect}"]
        lines += [
            f"  {what:<10} {_shown(what, spec.value):<14} {spec.basis}: {spec.source}" for what, spec in rows if spec
        ]
        show.text("\n".join(lines))
        return ExitCode.OK
    known = [gpu.profile(one) for one in gpu.names()]
    if json:
        show.json({"format_version": "1.0", "profiles": [facts.name for facts in known]})
    else:
        show.text("\n".join(f"{facts.name:<20} {show_bytes(facts.memory.value)}" for facts in known))
    return ExitCode.OK


def _shown(what: str, value: float) -> str:
    """A figure with its unit, as datasheets write it; memory as CUDA shows it."""
    from deployc.units import show_bytes

    if what == "memory":
        return show_bytes(value)
    if what == "bandwidth":
        return f"{value / 1e9:,.0f} GB/s"
    return f"{value / 1e12:,.1f} {'TOPS' if what.startswith('int') else 'TFLOPS'}"
