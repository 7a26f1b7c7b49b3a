"""The bundle's files as a mapping that is filled when the first of them is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from deployc.emit.shipment import Shipment


class Texts(Mapping[str, str]):
    """Path -> text. `plan` needs the digest alone: it neither renders a file nor loads the template engine."""

    def __init__(self, shipment: Shipment, digest: str) -> None:
        self._shipment, self._digest = shipment, digest

    @cached_property
    def _texts(self) -> Mapping[str, str]:
        from deployc.emit.files import files

        return files(self._shipment, self._digest)

    def __getitem__(self, path: str) -> str:
        return self._texts[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)
