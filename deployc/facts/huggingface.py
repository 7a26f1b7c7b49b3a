"""A repository of the Hugging Face hub, or of a mirror that speaks its protocol, at one commit.

The listing comes through huggingface_hub (one request: commit, sizes, checksums); small files and header bytes come
by HTTP range from `/{id}/resolve/{commit}/{file}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from deployc.facts import faults
from deployc.facts.source import SMALL, Entry, Hub, check_repository, check_revision
from deployc.facts.web import BUSY, Again, Patience, Web, host_of, of_status, patiently

if TYPE_CHECKING:
    from huggingface_hub.hf_api import ModelInfo

ENDPOINT = "https://huggingface.co"


class HuggingFace:
    """A repository as a source. Raises Fault already when made: the revision is resolved to a commit then."""

    hub: Hub = "huggingface"

    def __init__(self, source: str, revision: str | None, endpoint: str, token: str | None, patience: Patience) -> None:
        self.repository = check_repository(source)
        check_revision(revision, host_of(endpoint), source)
        secrets = {"Authorization": f"Bearer {token}"} if token else {}
        self._web = Web(endpoint, source, secrets, patience)
        info = patiently(lambda: self._ask(revision, token), patience)
        commit = info.sha
        if not isinstance(commit, str) or info.siblings is None:
            raise faults.not_a_hub(self._web.host, f"its answer about {source} names no commit or no files.")
        self.revision: str | None = commit
        self.where = f"{self._web.host}/{source} at {commit[:12]}"
        self._files = {s.rfilename: _entry(s) for s in info.siblings if "/" not in s.rfilename}

    def files(self) -> Mapping[str, Entry]:
        """Size and digest of each file at the root: sha256 of large ones, the hub's etag of small ones."""
        return self._files

    def read(self, name: str) -> bytes:
        """A small file whole."""
        return self._web.get(self._url(name), name, SMALL)

    def range(self, name: str, begin: int, end: int) -> bytes:
        """Exactly the bytes [begin, end) of a file."""
        return self._web.get(self._url(name), name, end - begin, (begin, end))

    def _url(self, name: str) -> str:
        return f"{self._web.endpoint}/{self.repository}/resolve/{self.revision}/{quote(name)}"

    def _ask(self, revision: str | None, token: str | None) -> ModelInfo:
        """One request for the repository; every way to fail as a Fault, those that may pass as Again."""
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError

        transport: type[Exception] = HfHubHTTPError.__bases__[0]  # requests, httpx …, as this version uses
        api = HfApi(endpoint=self._web.endpoint, token=token or False, library_name="deployc")
        try:
            return api.model_info(
                self.repository, revision=revision, timeout=self._web.patience.timeout, files_metadata=True
            )
        except HfHubHTTPError as wrong:
            raise self._of_answer(wrong, revision, bool(token)) from None
        except (transport, OSError) as wrong:
            raise Again(self._of_network(wrong)) from None
        except (ValueError, TypeError, KeyError, AttributeError):
            raise faults.not_a_hub(self._web.host, f"it answers about {self.repository} without JSON.") from None

    def _of_answer(self, wrong: Any, revision: str | None, token: bool) -> Exception:
        """The Fault for an error status of the repository's own address."""
        from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

        host, status = self._web.host, wrong.response.status_code
        if isinstance(wrong, RevisionNotFoundError):
            return faults.no_revision(host, self.repository, revision or "")
        if isinstance(wrong, GatedRepoError):
            return of_status(status, "GatedRepo", host, self.repository, "the listing", token)
        if isinstance(wrong, RepositoryNotFoundError):
            # the hub answers 401 to the anonymous for what is missing as well as for what is private
            detail = ", or it is private and no token was sent (HTTP 401)" if status == 401 else f" (HTTP {status})"
            return faults.no_repository(host, self.repository, detail)
        fault = of_status(status, "", host, self.repository, "the listing", token)
        return Again(fault) if status in BUSY else fault

    def _of_network(self, wrong: Exception) -> faults.Fault:
        name = type(wrong).__name__
        if "Timeout" in name:
            return faults.too_slow(self._web.host, self._web.patience.timeout)
        if "Protocol" in name or "ChunkedEncoding" in name:
            return faults.cut_off(self._web.host, "the listing", f"{wrong}.")
        return faults.unreachable(self._web.host, f"{wrong or name}.")


def _entry(sibling: Any) -> Entry:
    lfs = sibling.lfs
    sha256 = lfs.get("sha256") if isinstance(lfs, dict) else getattr(lfs, "sha256", None)
    digest = f"sha256:{sha256}" if sha256 else f"etag:{sibling.blob_id}"
    return Entry(sibling.size or 0, digest)
