"""HTTP towards a hub: bounded retries and times, redirects that never carry the token to another host, exact ranges.

Every way in which it can fail is a Fault of its own; none of them holds the token.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urljoin, urlsplit

from deployc.facts import faults

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
REDIRECTS = 5
BUSY = (408, 425, 429, 500, 502, 503, 504)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long and how often is asked, in seconds: each wait on the network, a whole answer, before a second try."""

    timeout: float = 15.0
    whole: float = 120.0
    attempts: int = 3
    pause: float = 0.5

    def before(self, attempt: int) -> float:
        """Seconds to wait before a repeated attempt (1, 2, …), doubling, at most 8."""
        return min(self.pause * 2.0 ** (attempt - 1), 8.0)


def patience(env: Mapping[str, str]) -> Patience:
    """The default, with the time that DEPLOYC_HUB_TIMEOUT gives. Raises Fault DC224 where that is no number."""
    text = env.get("DEPLOYC_HUB_TIMEOUT", "")
    if not text:
        return Patience()
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < 86_400:
        raise faults.bad_endpoint(f"DEPLOYC_HUB_TIMEOUT is {text!r}, not a number of seconds.")
    return Patience(timeout=seconds, whole=8 * seconds)


class Again(Exception):
    """A fault that may be gone at the next attempt."""

    def __init__(self, fault: faults.Fault) -> None:
        self.fault = fault
        super().__init__(str(fault))


def origin(url: str) -> tuple[str, str, int]:
    """Scheme, host and port: where a token may go."""
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or (443 if parts.scheme == "https" else 80)


def host_of(url: str) -> str:
    """Host and port as shown to people."""
    return urlsplit(url).netloc.rpartition("@")[2]


def check_endpoint(endpoint: str, key: str) -> str:
    """The endpoint without trailing slash. Raises Fault DC224 where it is no plain http(s) address."""
    try:
        parts = urlsplit(endpoint)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        raise faults.bad_endpoint(f"{key} is not an address.") from None
    if parts.username or parts.password or "@" in parts.netloc:
        raise faults.bad_endpoint(f"{key} holds a user name or password.")
    if not usable or parts.query or parts.fragment or any(c.isspace() for c in endpoint):
        raise faults.bad_endpoint(f"{key} is {endpoint!r}.")
    return endpoint.rstrip("/")


def patiently(ask: Callable[[], T], patience: Patience) -> T:
    """What `ask` returns, asked again after `Again`, at most `patience.attempts` times. Raises the last Fault."""
    for attempt in range(1, patience.attempts + 1):
        try:
            return ask()
        except Again as again:
            if attempt == patience.attempts:
                raise again.fault from None
            time.sleep(patience.before(attempt))
    raise AssertionError("at least one attempt is made")


@cache
def _client() -> httpx.Client:
    """One pool of connections: model and adapters often lie on one host. It takes no cookies from anyone."""
    from http.cookiejar import CookieJar, DefaultCookiePolicy

    import httpx

    return httpx.Client(follow_redirects=False, cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])))


class Web:
    """Requests to one hub. `secrets` are headers that go to the endpoint's own origin and nowhere else."""

    def __init__(self, endpoint: str, repository: str, secrets: Mapping[str, str], patience: Patience) -> None:
        self.endpoint, self.host, self.repository = endpoint, host_of(endpoint), repository
        self.patience = patience
        self._secrets = dict(secrets)

    def get(self, url: str, name: str, limit: int, span: tuple[int, int] | None = None) -> bytes:
        """The body of `url`, at most `limit` bytes; with `span` exactly its bytes [begin, end). Raises Fault."""
        return patiently(lambda: self._once(url, name, limit, span), self.patience)

    def _once(self, url: str, name: str, limit: int, span: tuple[int, int] | None) -> bytes:
        import httpx

        host, client, seconds = host_of(url), _client(), self.patience.timeout
        try:
            for _ in range(REDIRECTS + 1):
                host = host_of(url)
                with client.stream("GET", url, headers=self._headers(url, span), timeout=seconds) as response:
                    if not response.has_redirect_location:
                        return self._body(response, host, name, limit, span)
                    url = self._redirected(url, response.headers["Location"])
        except httpx.TimeoutException:
            raise Again(faults.too_slow(host, self.patience.timeout)) from None
        except httpx.RemoteProtocolError as wrong:
            raise Again(faults.cut_off(host, name, f"{wrong}.")) from None
        except httpx.ProxyError as wrong:
            raise Again(faults.unreachable(host, f"the proxy refuses: {wrong}.")) from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as wrong:
            raise Again(faults.unreachable(host, f"{wrong or type(wrong).__name__}.")) from None
        raise faults.not_a_hub(host, f"{name} is redirected more than {REDIRECTS} times.")

    def _headers(self, url: str, span: tuple[int, int] | None) -> dict[str, str]:
        headers = {"User-Agent": "deployc", "Accept-Encoding": "identity"}
        if span is not None:
            headers["Range"] = f"bytes={span[0]}-{span[1] - 1}"
        return headers | self._secrets if origin(url) == origin(self.endpoint) else headers

    def _redirected(self, url: str, location: str) -> str:
        target = urljoin(url, location)
        if urlsplit(target).scheme not in ("http", "https"):
            raise faults.not_a_hub(host_of(url), f"it redirects to {urlsplit(target).scheme}://.")
        if urlsplit(url).scheme == "https" and urlsplit(target).scheme == "http":
            raise faults.not_a_hub(host_of(url), f"it redirects from https to unprotected http ({host_of(target)}).")
        return target

    def _body(self, response: httpx.Response, host: str, name: str, limit: int, span: tuple[int, int] | None) -> bytes:
        """The wanted bytes of an answer: never more are taken off the connection than asked for."""
        self._check_status(response, host, name)
        if "html" in response.headers.get("Content-Type", ""):
            raise faults.not_a_hub(host, f"an HTML page came in place of {name}.")
        skip, want = 0, limit + 1
        if span is not None:
            # a server that ignores Range sends the file from its start: what was asked for is near the start
            skip, want = (span[0], span[1]) if response.status_code == 200 else (0, span[1] - span[0])
        deadline = time.monotonic() + self.patience.whole
        content = bytearray()
        for chunk in response.iter_raw():
            content += chunk
            if len(content) >= want:
                break
            if time.monotonic() > deadline:
                raise Again(faults.too_slow(host, self.patience.whole))
        if span is None and len(content) > limit:
            raise faults.not_a_hub(host, f"{name} is larger than {limit // 2**20} MiB.")
        if span is not None and len(content) < want:
            raise Again(faults.cut_off(host, name, f"{len(content):,} of {want:,} bytes came."))
        return bytes(content[skip:want] if span is not None else content)

    def _check_status(self, response: httpx.Response, host: str, name: str) -> None:
        if response.status_code in (200, 206):
            return
        code = response.headers.get("X-Error-Code", "")
        fault = of_status(response.status_code, code, host, self.repository, name, bool(self._secrets))
        raise Again(fault) if response.status_code in BUSY else fault


def of_status(status: int, code: str, host: str, repository: str, name: str, token: bool) -> faults.Fault:
    """The Fault for an HTTP status and the hub's X-Error-Code, when `name` of a repository was asked for."""
    if code == "GatedRepo" or status in (401, 403):
        why = "is gated: its owner lets in those who accepted its terms" if code == "GatedRepo" else "needs access"
        have = "the token that was sent is not enough" if token else "no token was sent"
        fix = (
            f"Accept the terms on https://{host}/{repository} with the account of the token."
            if token
            else "Name a token in target.hub_token, e.g. {env: HF_TOKEN}, or set HF_TOKEN (MODELSCOPE_API_TOKEN) here."
        )
        return faults.refused(host, f"{repository} {why} (HTTP {status}); {have}.", fix)
    if code == "RepoNotFound":
        return faults.no_repository(host, repository, f" (HTTP {status})")
    if status == 404:
        return faults.missing_file(name, f"{repository} on {host}", "Check the repository and revision in a browser.")
    if status == 416:
        return faults.bad_header(name, f"{repository} on {host}", "it is shorter than its header says: truncated.")
    if status in BUSY or status >= 500:
        return faults.broken(host, f"HTTP {status} for {name} of {repository}.")
    return faults.not_a_hub(host, f"HTTP {status} for {name} of {repository}.")
