"""Starting the worker in an interpreter with torch, and listening to it."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from deployc.build import faults
from deployc.diagnostics import Diagnostic, Severity, Stop
from deployc.types.manifest import Progress

BOOTSTRAP = """
import sys
if sys.version_info < (3, 11):
    sys.exit("Python 3.11 or newer is needed; this is " + sys.version.split()[0])
sys.path[:] = [place for place in sys.path if place]
import importlib.util
root = sys.argv[1]
spec = importlib.util.spec_from_file_location("deployc", root + "/__init__.py", submodule_search_locations=[root])
sys.modules["deployc"] = module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
import gc, importlib, types
class Later(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        sys.modules.pop(self.__name__, None)
        return getattr(importlib.import_module(self.__name__), name)
sys.modules.update((name, Later(name)) for name in sys.argv[3:])
gc.disable()
module = importlib.import_module(sys.argv[2])
gc.enable()
module.main()
"""
"""Our own package and nothing else from beside it: the other environment keeps its own versions of all the rest. What
an import makes stays, so that looking for garbage among it is time lost: a tenth of torch's."""

SETTINGS = {
    "OMP_WAIT_POLICY": "passive", "KMP_BLOCKTIME": "0",
    "MALLOC_TRIM_THRESHOLD_": str(2**30), "MALLOC_MMAP_THRESHOLD_": str(2**28),
}  # fmt: skip
"""Threads of GNU's and Intel's OpenMP sleep while they wait: spinning on shared cores cost four times the time. glibc
keeps the memory of a chunk for the next one, rather than asking the kernel for fresh pages each time."""

PACKAGE = Path(__file__).resolve().parent.parent
_PATIENCE = 20.0  # seconds that an interrupted worker has to clean up


def interpreter(python: str | None, engine_python: str | None) -> str:
    """`build.python` if given, else this interpreter if it has torch, else the engine environment's. Stop DC270."""
    if python is not None:
        return python
    if importlib.util.find_spec("torch") is not None:
        return sys.executable
    if engine_python is not None:
        return engine_python
    raise Stop(faults.no_interpreter(f"{sys.executable} has no torch, and there is no engine environment."))


@dataclass(frozen=True, slots=True)
class Begun:
    """A process that imports what it needs and waits for its job; `said` is what it writes to standard error."""

    python: str
    worker: subprocess.Popen[str]
    said: IO[bytes]

    def run(self, job: Mapping[str, Any], progress: Callable[[Progress], None]) -> dict[str, Any]:
        """Its `ready` and `done` events as one object. Raises Stop: the process's own error, DC271, DC278."""
        assert self.worker.stdin is not None  # noqa: S101  # a pipe
        with suppress(BrokenPipeError):  # it is gone already: its exit code and last words say why
            self.worker.stdin.write(json.dumps(job) + "\n")
            self.worker.stdin.flush()
        result: dict[str, Any] = {}
        finished = False
        for event in _events(self.worker):
            kind = event.pop("event")
            if kind == "progress":
                progress(Progress(**event))
            elif kind == "error":
                diagnostic = event["diagnostic"]
                raise Stop(Diagnostic(**{**diagnostic, "severity": Severity(diagnostic["severity"])}))
            else:
                result |= event
                finished = kind == "done"
        code = self.worker.wait()
        if code == 0 and finished:
            return result
        self.said.seek(0)
        last = self.said.read().decode(errors="replace").strip().splitlines()[-1:]
        why = f"it was killed by signal {-code}" if code < 0 else f"exit code {code}"
        detail = ": ".join([why, *last]) + "."
        raise Stop(faults.worker_ended(detail) if result else faults.bad_interpreter(self.python, detail))


def run(
    python: str, job: Mapping[str, Any], lock: int, progress: Callable[[Progress], None], module: str
) -> dict[str, Any]:
    """What a process that runs `module`'s main makes of a job. Raises Stop as `Begun.run`."""
    with begun(python, lock, module) as process:
        return process.run(job, progress)


@contextmanager
def begun(python: str, lock: int, module: str, later: Sequence[str] = ()) -> Iterator[Begun]:
    """A process in a session of its own, so that Ctrl-C reaches it through us alone; it ends with this context.

    `later` are modules that a library imports and this process hardly needs: they are read once something of them is
    asked for. Raises Stop DC271.
    """
    with tempfile.TemporaryFile() as said:
        try:
            worker = subprocess.Popen(
                [python, "-c", BOOTSTRAP, str(PACKAGE), module, *later],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True,
                pass_fds=[lock], start_new_session=True, env={**SETTINGS, **os.environ},
            )  # fmt: skip
        except OSError as wrong:
            raise Stop(faults.bad_interpreter(python, f"{wrong.strerror}.")) from None
        try:
            yield Begun(python, worker, said)
        finally:
            _end(worker)


def _end(worker: subprocess.Popen[str]) -> None:
    if worker.poll() is None:
        worker.terminate()
        try:
            worker.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait()
    for pipe in (worker.stdin, worker.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()


def _events(worker: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    """Events until the worker closes its output; a line torn by its death is left out."""
    for line in worker.stdout or ():
        if line.endswith("\n"):
            yield json.loads(line)
