"""Where and with what one artifact is built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from deployc.build import process
from deployc.files import beside
from deployc.types.manifest import Progress

if TYPE_CHECKING:
    from deployc.facts.opening import Access

Watch = Callable[[Progress], None]


@dataclass(frozen=True)
class Site:
    """`folder` is that of the deploy.yaml, `lock` the descriptor of the key's lock, which processes of ours inherit.

    `python` is build.python where the file sets it, relative to that folder; `engine_python` that of the engine
    environment, `quantizer` that of llm-compressor's, each None where there is none. `access` is needed where model or
    adapters lie on a hub. `threads` None is one a core.
    """

    folder: Path
    store: Path
    python: str | None
    engine_python: str | None
    quantizer: Path | None
    lock: int
    progress: Watch
    access: Access | None
    threads: int | None

    @cached_property
    def interpreter(self) -> str:
        """The one that builds. Raises Stop DC270."""
        named = str(beside(self.folder, self.python)) if self.python and "/" in self.python else self.python
        return process.interpreter(named, self.engine_python)
