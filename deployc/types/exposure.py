"""What of a server's HTTP interface its key does not guard, and where the key itself is stored."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Route:
    """A route that does something, of every server of a text model."""

    path: str
    does: str  # "answers chat and completion requests"
    source: str
    since: str
    until: str = ""  # the first version without it; "" = it stays
    developer: bool = False  # there only with VLLM_SERVER_DEV_MODE=1


@dataclass(frozen=True, slots=True)
class Exposure:
    """Of one version. A path that begins with one of `guarded` needs the key."""

    guarded: tuple[str, ...] = ()
    open: tuple[Route, ...] = ()  # those that no key guards
    key_stored_until: str = ""  # the first version that no longer writes the key into its compile cache; "" = this one
