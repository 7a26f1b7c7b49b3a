"""A repository of the Hugging Face hub, or of a mirror that speaks its protocol, at one commit.

The listing comes through huggingface_hub (one request: commit, sizes, checksums); small files and header bytes come
by HTTP range from `/{id}/resolve/{commit}/{file}`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from deployc.facts import faults
from deployc.facts.repository import Repository
from deployc.facts.source import Entry, Hub, is_pinned
from deployc.facts.web import BUSY, Again, Patience, of_status, patiently

if TYPE_CHECKING:
    from huggingface_hub.hf_api import ModelInfo

T = TypeVar("T")
ENDPOINT = "https://huggingface.co"


class HuggingFace(Repository):
    """Its files are pinned by the sha256 of large ones, the hub's etag of small ones."""

    hub: Hub = "huggingface"

    def __init__(self, source: str, revision: str | None, endpoint: str, token: str | None, patience: Patience) -> None:
        secrets = {"Authorization": f"Bearer {token}"} if token else {}
        super().__init__(source, revision, endpoint, secrets, patience)
        self._token: str | bool = token or False
        info = self.asked(lambda: self._listing(revision), revision, "the listing")
        commit = info.sha
        if not isinstance(commit, str) or info.siblings is None:
            raise faults.not_a_hub(self._web.host, f"its answer about {source} names no commit or no files.")
        self._at(commit)
        self.gated = bool(info.gated)  # "auto", "manual" or False
        self._files = {s.rfilename: self._entry(s) for s in info.siblings if "/" not in s.rfilename}

    def _url(self, name: str) -> str:
        return f"{self._web.endpoint}/{self.repository}/resolve/{self.revision}/{quote(name)}"

    def _entry(self, sibling: Any) -> Entry:
        """From the listing; from the file's own headers where a mirror lists names only and the file is of interest."""
        if sibling.size is None:
            if not is_pinned(sibling.rfilename):
                return Entry(0, "")
            return self.asked(lambda: self._metadata(sibling.rfilename), None, sibling.rfilename)
        lfs = sibling.lfs
        sha256 = lfs.get("sha256") if isinstance(lfs, dict) else getattr(lfs, "sha256", None)
        return Entry(sibling.size, f"sha256:{sha256}" if sha256 else f"etag:{sibling.blob_id}")

    def _listing(self, revision: str | None) -> ModelInfo:
        from huggingface_hub import HfApi

        api = HfApi(endpoint=self._web.endpoint, token=self._token, library_name="deployc")
        timeout = self._web.patience.timeout
        return api.model_info(self.repository, revision=revision, timeout=timeout, files_metadata=True)

    def _metadata(self, name: str) -> Entry:
        from huggingface_hub import get_hf_file_metadata

        found = get_hf_file_metadata(self._url(name), token=self._token, timeout=self._web.patience.timeout)
        if found.size is None or found.etag is None:
            raise faults.not_a_hub(self._web.host, f"it tells neither size nor checksum of {name}.")
        return Entry(found.size, f"{'sha256' if len(found.etag) == 64 else 'etag'}:{found.etag}")

    def asked(self, ask: Callable[[], T], revision: str | None, name: str) -> T:
        """What huggingface_hub answers; every way to fail as a Fault, those that may pass tried again.

        `name` is what is asked for, for people.
        """
        from huggingface_hub.errors import HfHubHTTPError

        transport: type[Exception] = HfHubHTTPError.__bases__[0]  # requests, httpx …, as this version uses

        def once() -> T:
            try:
                return ask()
            except HfHubHTTPError as wrong:
                raise self._of_answer(wrong, revision, name) from None
            except (transport, OSError) as wrong:
                raise Again(self._of_network(wrong, name)) from None
            except (ValueError, TypeError, KeyError, AttributeError):
                raise faults.not_a_hub(self._web.host, f"it answers about {self.repository} without JSON.") from None

        return patiently(once, self._web.patience)

    def _of_answer(self, wrong: Any, revision: str | None, name: str) -> Exception:
        """The Fault for an error status of the repository's own address."""
        from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

        host, status = self._web.host, wrong.response.status_code
        if isinstance(wrong, RevisionNotFoundError):
            return faults.no_revision(host, self.repository, revision or "")
        if isinstance(wrong, RepositoryNotFoundError) and not isinstance(wrong, GatedRepoError):
            # the hub answers 401 to the anonymous for what is missing as well as for what is private
            detail = ", or it is private and no token was sent (HTTP 401)" if status == 401 else f" (HTTP {status})"
            return faults.no_repository(host, self.repository, detail)
        code = "GatedRepo" if isinstance(wrong, GatedRepoError) else ""
        fault = of_status(status, code, host, self.repository, name, bool(self._token))
        return Again(fault) if status in BUSY else fault

    def _of_network(self, wrong: Exception, name: str) -> faults.Fault:
        kind = type(wrong).__name__
        if "Timeout" in kind:
            return faults.too_slow(self._web.host, self._web.patience.timeout)
        if "Protocol" in kind or "ChunkedEncoding" in kind:
            return faults.cut_off(self._web.host, name, f"{wrong}.")
        return faults.unreachable(self._web.host, f"{wrong or kind}.")
