"""How something that people already run is started, read from a command, a file or a snippet: each with its place.

`types/bundle.py` has what we start; here stands what others wrote, right or wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from deployc.diagnostics import Span

Source = Literal["command", "docker", "compose", "unit", "dockerfile", "config", "python"]


@dataclass(frozen=True, slots=True)
class Piece:
    """One value as written, and where."""

    value: str
    at: Span


@dataclass(frozen=True, slots=True)
class FoundFlag:
    """One option of the engine. `written` is its name as it stands there ("--max_model_len", "max_num_seqs=").

    `value` is True for a bare switch; text as a command line has it; a plain value of YAML or Python as it is there;
    a list where several words followed.
    """

    written: str
    value: Any
    at: Span

    @property
    def name(self) -> str:
        """ "max-model-len": no dashes in front, dashes inside; what follows a dot is a key and stays as it is."""
        flag, dot, key = self.written.lstrip("-").partition(".")
        return flag.replace("_", "-") + dot + key

    @property
    def text(self) -> str:
        """The value as it would stand on a command line; "" for a switch."""
        if isinstance(self.value, list):
            return " ".join(map(str, self.value))
        return "" if self.value is True else str(self.value)


@dataclass(frozen=True, slots=True)
class Reservation:
    """Cards that a container asks for, each as it is written; `runtime` of nvidia counts as all of them."""

    at: Span
    count: str = ""  # "" where it is not said, "all" or a number
    device_ids: tuple[str, ...] = ()
    driver: str = ""
    capabilities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Health:
    """A container's health check. `words` is the command as it runs: ("CMD-SHELL", "curl -f …")."""

    words: tuple[str, ...]
    at: Span
    start_period: Piece | None = None
    interval: Piece | None = None
    retries: Piece | None = None


@dataclass(frozen=True, slots=True)
class Published:
    """A port that a container publishes. `address` is "" where none is written: then it is every address."""

    address: str
    host: str
    container: str
    at: Span


@dataclass(frozen=True, slots=True)
class FoundLaunch:
    """How one engine is started."""

    source: Source
    at: Span
    name: str = ""  # of the service, container or unit
    version: str = ""  # of vLLM where the text installs one; an image's tag says it otherwise
    program: tuple[Piece, ...] = ()  # the words before model and flags, as they run: ("vllm", "serve")
    model: Piece | None = None
    model_flag: bool = False  # the model was given as --model, not as the positional argument
    flags: tuple[FoundFlag, ...] = ()
    stray: tuple[Piece, ...] = ()  # words that belong to no flag
    shell: Piece | None = None  # the one text that a shell takes apart: `sh -c "…"`, CMD without brackets
    env: Mapping[str, Piece] = field(default_factory=dict)
    env_files: tuple[Piece, ...] = ()
    build_args: Mapping[str, Piece] = field(default_factory=dict)  # ARG of a Dockerfile
    image: Piece | None = None
    entrypoint: tuple[Piece, ...] | None = None  # set in place of the image's
    arguments: tuple[Piece, ...] = ()  # what follows the image, or `command:`
    published: tuple[Published, ...] = ()
    network: Piece | None = None
    ipc: Piece | None = None
    shm_size: Piece | None = None
    cards: tuple[Reservation, ...] = ()
    runtime: Piece | None = None
    restart: Piece | None = None
    user: Piece | None = None
    volumes: tuple[Piece, ...] = ()
    health: Health | None = None
    grace: Piece | None = None  # seconds from TERM to KILL: stop_grace_period, --stop-timeout, TimeoutStopSec
    depends: Mapping[str, str] = field(default_factory=dict)  # service -> condition
    unit: Mapping[str, Piece] = field(default_factory=dict)  # settings of a unit, the last of each name

    def flag(self, *names: str) -> FoundFlag | None:
        """The last one written of these (the engine's own reading), by any spelling with dashes or underscores."""
        found = [flag for flag in self.flags if flag.name in names]
        return found[-1] if found else None

    @property
    def in_a_container(self) -> bool:
        """Whether an image runs it."""
        return self.image is not None

    @property
    def tag(self) -> str:
        """The image's tag, "" without one; a digest is none."""
        last = self.image.value.partition("@")[0].rpartition("/")[2] if self.image else ""
        return last.partition(":")[2]
