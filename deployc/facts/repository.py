"""What the hubs have in common: files at the root of a repository at one commit, read by HTTP range."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from deployc.facts.source import SMALL, Entry, check_repository, check_revision
from deployc.facts.web import Patience, Web, host_of


class Repository(ABC):
    """A repository as a source; a hub resolves the revision and lists the files when it is made. Raises Fault."""

    revision: str | None
    where: str
    gated = False  # as far as the hub says so
    _files: Mapping[str, Entry]

    def __init__(
        self, source: str, revision: str | None, endpoint: str, secrets: Mapping[str, str], patience: Patience
    ) -> None:
        self.repository = check_repository(source)
        check_revision(revision, host_of(endpoint), source)
        self._web = Web(endpoint, source, secrets, patience)

    def files(self) -> Mapping[str, Entry]:
        """Size and digest of each file at the root."""
        return self._files

    def read(self, name: str) -> bytes:
        """A small file whole."""
        return self._web.get(self._url(name), name, SMALL)

    def range(self, name: str, begin: int, end: int) -> bytes:
        """Exactly the bytes [begin, end) of a file."""
        return self._web.get(self._url(name), name, end - begin, (begin, end))

    def _at(self, commit: str) -> None:
        """The commit that the revision stands for."""
        self.revision = commit
        self.where = f"{self._web.host}/{self.repository} at {commit[:12]}"

    @abstractmethod
    def _url(self, name: str) -> str:
        """Where a file of this commit lies."""
