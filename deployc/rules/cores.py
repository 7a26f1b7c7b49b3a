"""Cores of the host: as many as the engine has processes that each keep one busy."""

from __future__ import annotations

from collections.abc import Iterator

from deployc import units
from deployc.cost.written import written_count
from deployc.diagnostics import Diagnostic, warning
from deployc.rules.case import Case

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TOKENIZERS_PARALLELISM")
"""Variables that set how many threads a library starts: none of them spreads one Python process over cores."""


def enough_cores(case: Case) -> Iterator[Diagnostic]:
    """vLLM's documentation, docs/configuration/optimization.md, 0.33.0: A + DP + N + (1 if DP > 1) physical cores.

    A API servers, DP engine cores, N workers, a coordinator of several engine cores. Each is one Python process, that
    runs one thread of Python at a time. Said where the file states the cores; what the lack costs is DC545.
    """
    cores, replicas = case.deploy.hardware.cpus, case.choices.replicas.value
    if cores is None or case.on_cpu:
        return
    tensor, pipeline = case.choices.tensor_parallel_size.value, case.choices.pipeline_parallel_size.value
    servers, workers = _servers(case), tensor * pipeline
    needed = (servers + 1 + workers) * replicas
    if cores >= needed:
        return
    many = f" each of {replicas} engines" if replicas > 1 else ""
    set_here = [name for name in THREADS if name in case.deploy.engine.env]
    why = "does not help: one process runs one thread of Python at a time."
    useless = f" {' and '.join(set_here)} {why}" if set_here else ""
    yield warning(
        "DC547",
        "fewer host cores than the engine has busy processes",
        f"{servers} API server{'s' if servers > 1 else ''}, 1 engine core and {workers} GPU "
        f"worker{'s' if workers > 1 else ''}{many} are processes that each keep a core busy: {needed} in all, "
        f"hardware.cpus is {units.show_count(cores)}. They wait for one another, and the GPU for them.{useless}",
        f"give it {needed} physical cores or more ({2 * needed} vCPUs where two share a core)"
        + (", or serve fewer engines on this host" if replicas > 1 else ""),
        case.deploy.at("hardware.cpus"),
    )


def _servers(case: Case) -> int:
    """API server processes: `api.servers`, or the engine's flag; one by default."""
    asked = case.deploy.api.servers
    if asked != "auto":
        return asked
    written = written_count(case.deploy, case.facts, "api-server-count")
    return written.value if written is not None else 1
