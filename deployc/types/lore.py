"""What is known of the engine beyond one version's own facts: tool data, in no lockfile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Gone:
    """A flag of `vllm serve` that went."""

    gone: str  # the first version without it
    source: str
    why: str = ""  # what became of what it did
    instead: str = ""  # what to set in deploy.yaml, with `{value}` for the value written; "" = nothing is needed
    useless: str = ""  # the version from which on it did nothing; "" = it did what it said to the end

    def put(self, value: str) -> str:
        """What to set in deploy.yaml instead, for this value of the flag."""
        return self.instead.format(value=value)


@dataclass(frozen=True, slots=True)
class Lore:
    """Each field is a file of profiles/engines/, read for the version that the file names."""

    gone: Mapping[str, Gone] = field(default_factory=dict)  # flag, by every version


NO_LORE = Lore()
"""Facts as RESOLVE hands them on: `pipeline` puts the rest in beside them."""
