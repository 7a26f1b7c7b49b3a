"""The cells of a row of JSON, each asked for by its type: one of the wrong type is left out and noted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

LARGEST = 10.0**15
"""Beyond any figure of a row."""


@dataclass(slots=True)
class Cells:
    """The values of a row, each asked for by its type."""

    values: Mapping[str, Any]
    notes: list[str] = field(default_factory=list)

    def number(self, key: str) -> float | None:
        """A finite number that is no fault of writing."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, int | float) and not isinstance(value, bool) and -LARGEST < value < LARGEST:
            return float(value)
        self.notes.append(f"{key}: {value!r:.40} is no number to use, left out")
        return None

    def whole(self, key: str, most: float = LARGEST) -> int | None:
        """A count, from 1."""
        value = self.number(key)
        if value is None:
            return None
        if value == int(value) and 1 <= value <= most:
            return int(value)
        self.notes.append(f"{key}: {value:g} is no count, left out")
        return None

    def flag(self, key: str) -> bool | None:
        """True or false."""
        value = self.values.get(key)
        if value is None or isinstance(value, bool):
            return value
        self.notes.append(f"{key}: {value!r:.40} is not true or false, left out")
        return None

    def text(self, key: str) -> str | None:
        """A word that is not blank."""
        value = self.values.get(key)
        return value if isinstance(value, str) and value.strip() else None

    def object(self, key: str) -> Mapping[str, Any]:
        """An object; an empty one where there is none."""
        value = self.values.get(key)
        return value if isinstance(value, dict) else {}

    def measured(self, names: Mapping[str, str]) -> dict[str, float]:
        """The numbers that there are, by other names."""
        found = {name: self.number(key) for key, name in names.items()}
        return {name: value for name, value in found.items() if value is not None}
