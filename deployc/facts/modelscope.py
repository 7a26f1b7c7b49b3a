"""A repository of ModelScope at one commit, by its public HTTP API (that of the modelscope package's `HubApi`).

`/api/v1/models/{id}/commits?Ref=` resolves a branch or tag, `/revisions` lists them, `/repo/files?Revision=` has size
and sha256 of every file, `/repo?Revision=&FilePath=` is a file, with ranges. Answers are `{Code, Success, Data, …}`;
an unknown revision is a success without files there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from deployc.facts import faults
from deployc.facts.repository import Repository
from deployc.facts.source import SMALL, Entry, Hub
from deployc.facts.web import Patience

ENDPOINT = "https://www.modelscope.cn"
BRANCH = "master"
"""The default branch of every ModelScope repository."""


class ModelScope(Repository):
    """Its files are pinned by their sha256."""

    hub: Hub = "modelscope"

    def __init__(self, source: str, revision: str | None, endpoint: str, token: str | None, patience: Patience) -> None:
        # older addresses take the session cookie, newer ones the bearer token
        secrets = {"Authorization": f"Bearer {token}", "Cookie": f"m_session_id={token}"} if token else {}
        super().__init__(source, revision, endpoint, secrets, patience)
        commit = self._commit(revision or BRANCH)
        self._at(commit)
        listed = self._data(f"repo/files?{urlencode({'Revision': commit, 'Recursive': 'False'})}", "the listing")
        rows = listed.get("Files") if isinstance(listed, dict) else None
        if not isinstance(rows, list):
            raise faults.no_revision(self._web.host, source, revision or commit, self._known())
        self._files = {r["Path"]: _entry(r) for r in rows if isinstance(r, dict) and r.get("Type") == "blob"}

    def _address(self, rest: str) -> str:
        return f"{self._web.endpoint}/api/v1/models/{self.repository}/{rest}"

    def _url(self, name: str) -> str:
        return self._address(f"repo?{urlencode({'Revision': self.revision, 'FilePath': name})}")

    def _commit(self, revision: str) -> str:
        if re.fullmatch(r"[0-9a-f]{40}", revision):
            return revision
        query = urlencode({"Ref": revision, "PageNumber": 1, "PageSize": 1})
        data = self._data(f"commits?{query}", "the commit list")
        commits = data.get("Commit") if isinstance(data, dict) else None
        if not commits:
            raise faults.no_revision(self._web.host, self.repository, revision, self._known())
        commit = commits[0].get("Id") if isinstance(commits, list) and isinstance(commits[0], dict) else None
        if not isinstance(commit, str) or not re.fullmatch(r"[0-9a-f]{40}", commit):
            raise faults.not_a_hub(self._web.host, f"its commit list of {self.repository} names no commit.")
        return commit

    def _known(self) -> str:
        """The repository's branches and tags, for the fix; "" where they cannot be had."""
        try:
            known = self._data("revisions", "the revisions")["RevisionMap"]
            return ", ".join(r["Revision"] for kind in ("Branches", "Tags") for r in known.get(kind) or [])
        except (faults.Fault, TypeError, KeyError, AttributeError):
            return ""

    def _data(self, rest: str, name: str) -> Any:
        try:
            raw = self._web.get(self._address(rest), name, SMALL)
        except faults.Fault as fault:
            if fault.diagnostic.code == "DC202":  # 404 for an address of the repository itself
                raise faults.no_repository(self._web.host, self.repository, " (HTTP 404)") from None
            raise
        try:
            answer = json.loads(raw)
            if answer.get("Success") is not True:
                detail = f"{name} of {self.repository}: {answer.get('Message')} (code {answer.get('Code')})."
                raise faults.broken(self._web.host, detail)
        except (ValueError, AttributeError):
            raise faults.not_a_hub(self._web.host, f"{name} of {self.repository} is no JSON answer.") from None
        return answer.get("Data")


def _entry(row: Mapping[str, Any]) -> Entry:
    return Entry(int(row.get("Size") or 0), f"sha256:{row.get('Sha256') or ''}")
