"""Servers on loopback that speak the hubs' HTTP, with faults to order; they count what they sent and to whom."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
OLDER = "fedcba9876543210fedcba9876543210fedcba98"
Files = Mapping[str, bytes]


@dataclass
class Reply:
    """An answer: `cut` sends only so many bytes of the body, `delay` waits before it, `trickle` before each byte."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    delay: float = 0.0
    trickle: float = 0.0


@dataclass
class Seen:
    """A request that came and the bytes of body that went back."""

    path: str
    headers: Mapping[str, str]
    sent: int


def as_json(value: Any, status: int = 200) -> Reply:
    return Reply(status, json.dumps(value).encode(), {"Content-Type": "application/json"})


def html(status: int = 200) -> Reply:
    return Reply(status, b"<!DOCTYPE html><html>log in</html>", {"Content-Type": "text/html; charset=utf-8"})


def ranged(body: bytes, header: str | None) -> Reply:
    """The file, or the range of it that was asked for."""
    match = re.fullmatch(r"bytes=(\d+)-(\d+)", header or "")
    if not match:
        return Reply(body=body, headers={"Content-Type": "application/octet-stream"})
    begin, end = int(match[1]), int(match[2]) + 1
    if begin >= len(body):
        return Reply(416)
    part = body[begin:end]
    return Reply(206, part, {"Content-Range": f"bytes {begin}-{begin + len(part) - 1}/{len(body)}"})


class Server(ThreadingHTTPServer):
    """Base: `faults` maps a part of a path to the replies that are given first when it is asked for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seen: list[Seen] = []
        self.faults: dict[str, list[Reply]] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def answer(self, path: str, query: Mapping[str, list[str]], headers: Mapping[str, str]) -> Reply:
        raise NotImplementedError

    def sent_of(self, name: str) -> int:
        """Bytes of body sent for requests whose address names this file."""
        return sum(s.sent for s in self.seen if name in unquote(s.path))

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up early is what some tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer waits 40 ms for an acknowledgement
    server: Server

    def do_GET(self) -> None:
        path = urlsplit(self.path)
        ordered = next((r for part, r in self.server.faults.items() if part in unquote(self.path) and r), None)
        headers = {key.lower(): value for key, value in self.headers.items()}
        reply = ordered.pop(0) if ordered else self.server.answer(unquote(path.path), parse_qs(path.query), headers)
        time.sleep(reply.delay)
        body = reply.body if reply.cut is None else reply.body[: reply.cut]
        self.server.seen.append(Seen(self.path, headers, len(body)))
        self.send_response(reply.status)
        for key, value in reply.headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        if self.command == "GET" and reply.trickle:
            self._trickle(body, reply.trickle)
        elif self.command == "GET":
            self.wfile.write(body)
        if reply.cut is not None:
            self.close_connection = True

    def _trickle(self, body: bytes, pause: float) -> None:
        for at in range(len(body)):
            time.sleep(pause)
            self.wfile.write(body[at : at + 1])

    do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:
        pass


class Cdn(Server):
    """Where large files really lie: /file?…, open to all."""

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, bytes] = {}

    def answer(self, path: str, query: Mapping[str, list[str]], headers: Mapping[str, str]) -> Reply:
        assert query == {"signature": ["abc"]}
        return ranged(self.files[path.removeprefix("/")], headers.get("range"))


class HubServer(Server):
    """The Hugging Face hub's protocol: one listing a revision, `resolve` with ranges, X-Error-Code."""

    def __init__(self, repositories: Mapping[str, Files], token: str | None = None, cdn: Cdn | None = None) -> None:
        super().__init__()
        self.repositories, self.token, self.cdn = repositories, token, cdn
        self.gated = False
        self.names_only = False  # as a mirror that knows nothing of `blobs`

    def answer(self, path: str, query: Mapping[str, list[str]], headers: Mapping[str, str]) -> Reply:
        allowed = self.token is None or headers.get("authorization") == f"Bearer {self.token}"
        listing = re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/revision/(.+))?", path)
        file = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
        tree = re.fullmatch(r"/api/models/([^/]+/[^/]+)/tree/([^/]+)", path)
        match = listing or tree or file
        files = self.repositories.get(match[1]) if match else None
        if match is None or files is None or (not allowed and not self.gated):
            return Reply(401 if not headers.get("authorization") else 404, headers={"X-Error-Code": "RepoNotFound"})
        if (match[2] or "main") not in ("main", "v1", COMMIT):
            return Reply(404, headers={"X-Error-Code": "RevisionNotFound"})
        if listing:
            assert query["blobs"][0].lower() == "true"
            siblings = [
                {"rfilename": name} if self.names_only else self._sibling(name, body) for name, body in files.items()
            ]
            gate = "manual" if self.gated else False
            return as_json({"id": match[1], "sha": COMMIT, "siblings": siblings, "private": False, "gated": gate})
        if tree:
            assert query["recursive"][0].lower() == "true"
            return as_json([self._row(name, body) for name, body in files.items()])
        if not allowed or file is None:
            status = 403 if headers.get("authorization") else 401
            return Reply(status, headers={"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted."})
        reply = self._file(file[3], files, headers)
        entry = self._sibling(file[3], files.get(file[3], b""))
        reply.headers["X-Repo-Commit"] = COMMIT
        reply.headers["X-Linked-Size"] = str(entry["size"])
        reply.headers["X-Linked-ETag"] = f'"{entry["lfs"]["sha256"] if "lfs" in entry else entry["blobId"]}"'
        return reply

    def _sibling(self, name: str, body: bytes) -> dict[str, Any]:
        entry: dict[str, Any] = {"rfilename": name, "size": len(body), "blobId": hashlib.sha1(body).hexdigest()}  # noqa: S324
        if name.endswith(".safetensors"):
            entry["lfs"] = {"sha256": hashlib.sha256(body).hexdigest(), "size": len(body), "pointerSize": 135}
        return entry

    def _row(self, name: str, body: bytes) -> dict[str, Any]:
        """One file of the tree, where a blob's id is called `oid`."""
        entry = self._sibling(name, body)
        lfs = {"lfs": {"oid": entry["lfs"]["sha256"], "size": len(body), "pointerSize": 135}} if "lfs" in entry else {}
        return {"type": "file", "path": name, "size": len(body), "oid": entry["blobId"], **lfs}

    def _file(self, name: str, files: Files, headers: Mapping[str, str]) -> Reply:
        if name not in files:
            return Reply(404, headers={"X-Error-Code": "EntryNotFound"})
        if self.cdn is not None and name.endswith(".safetensors"):
            self.cdn.files[name] = files[name]
            return Reply(302, headers={"Location": f"{self.cdn.url}/{quote(name)}?signature=abc"})
        return ranged(files[name], headers.get("range"))


class ModelScopeServer(Server):
    """ModelScope's protocol: everything in an envelope, an unknown revision is a success without content."""

    def __init__(self, repositories: Mapping[str, Files], token: str | None = None) -> None:
        super().__init__()
        self.repositories, self.token = repositories, token

    def answer(self, path: str, query: Mapping[str, list[str]], headers: Mapping[str, str]) -> Reply:
        match = re.fullmatch(r"/api/v1/models/([^/]+/[^/]+)/(commits|revisions|repo/files|repo)", path)
        files = self.repositories.get(match[1]) if match else None
        if match is None or files is None:
            return as_json({"Code": 10010205001, "Message": "record not found", "Success": False}, 404)
        if self.token is not None and headers.get("authorization") != f"Bearer {self.token}":
            return as_json({"Code": 10010205002, "Message": "no permission", "Success": False}, 403)
        known = (query.get("Revision") or query.get("Ref") or ["master"])[0] in ("master", "v1", COMMIT)
        if match[2] == "commits":
            commits = [{"Id": COMMIT, "Title": "upload"}] if known else None
            return _envelope({"Commit": commits, "TotalCount": len(commits or [])})
        if match[2] == "revisions":
            return _envelope({"RevisionMap": {"Branches": [{"Revision": "master"}], "Tags": [{"Revision": "v1"}]}})
        if match[2] == "repo/files":
            rows = [{"Path": "assets", "Type": "tree", "Size": 0}, *(self._row(n, b) for n, b in files.items())]
            return _envelope({"Files": rows if known else None, "LatestCommitter": None})
        name = query["FilePath"][0]
        if name not in files:
            return as_json({"Code": 10010205003, "Message": "file not found", "Success": False}, 404)
        return ranged(files[name], headers.get("range"))

    def _row(self, name: str, body: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(body).hexdigest()
        return {"Path": name, "Name": name, "Type": "blob", "Size": len(body), "Sha256": digest, "Revision": OLDER}


def _envelope(data: Any) -> Reply:
    return as_json({"Code": 200, "Success": True, "Message": "", "RequestId": "r", "Data": data})


@contextmanager
def serving(*servers: Server) -> Iterator[None]:
    threads = [threading.Thread(target=s.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True) for s in servers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()
