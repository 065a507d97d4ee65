"""Whether a URL answers: asked politely, in bounded time, with every outcome named.

HEAD first, GET where HEAD is not served; no body is ever read. Redirects are followed by hand,
so that each hop passes the same door and is counted.
"""

import ssl
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

import anyio
import httpcore
import httpx

from agent_run.executors.content.addresses import Door, GuardedNetwork, PrivateAddress

Finding: TypeAlias = Literal["fine", "moved", "broken", "refused", "unsure"]
"""`unsure`: the server would not say, or not in time; a person or another day may know."""

_MOVED_FOR_GOOD: Final = frozenset({301, 308})
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_TRY_AGAIN: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_GONE: Final = frozenset({404, 410})
_HEAD_NOT_SERVED: Final = frozenset({400, 403, 404, 405, 406, 410, 501})
_WELL: Final = range(200, 300)
_SILENCE: Final = (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException)
_LONGEST_URL: Final = 8_000


@dataclass(frozen=True, slots=True)
class Manners:
    """How the link checker behaves towards servers."""

    seconds: float = 10.0
    """For one request."""
    url_seconds: float = 30.0
    """For one URL with all its redirects, waits and retries."""
    all_seconds: float = 300.0
    """For all URLs of a draft; what is not asked by then is reported as not asked."""
    retries: int = 2
    redirects: int = 5
    pause: float = 0.5
    """Seconds before the first retry; it doubles for each one after."""
    longest_wait: float = 10.0
    """A server that asks for more patience than this is not asked again."""
    at_once: int = 16
    at_once_per_host: int = 2
    patience: int = 3
    """After so many URLs without an answer a host is not asked about the others."""
    agent: str = "agent-run-link-check"


POLITE: Final = Manners()


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found out about one URL."""

    finding: Finding
    message: str
    moved_to: str | None = None


@dataclass(slots=True)
class _Asking:
    """One URL on its way through redirects and retries."""

    url: httpx.URL
    method: str = "HEAD"
    hops: int = 0
    tries: int = 0
    moved_to: str | None = None
    temporary: bool = False
    seen: set[str] = field(default_factory=set)


class Fetcher:
    """Asks servers; one for each draft, opened by `open_fetcher`."""

    def __init__(self, pool: httpcore.AsyncConnectionPool, manners: Manners) -> None:
        self._pool = pool
        self._manners = manners
        self._turns: dict[str, anyio.Semaphore] = {}
        self._silent: Counter[str] = Counter()

    async def ask(self, text: str) -> Answer:
        """Return what the server says about the URL `text`."""
        try:
            url = httpx.URL(text)
        except (httpx.InvalidURL, ValueError) as error:
            return Answer("broken", f"is not a URL: {error}")
        if not url.host or len(text) > _LONGEST_URL:
            return Answer("broken", "is not a URL with a host of a sensible length")
        async with self._turn(url):
            if self._silent[_host(url)] >= self._manners.patience:
                return Answer("unsure", f"was not asked: {url.host!r} does not answer")
            with anyio.move_on_after(self._manners.url_seconds):
                return await self._asked(_Asking(url))
            self._silent[_host(url)] += 1
            return Answer("unsure", f"gave no answer in {self._manners.url_seconds:g} s")

    async def _asked(self, asking: _Asking) -> Answer:
        while True:
            try:
                status, headers = await self._request(asking)
            except PrivateAddress as error:
                return Answer("refused", str(error))
            except (httpcore.UnsupportedProtocol, httpcore.LocalProtocolError) as error:
                return Answer("broken", f"cannot be asked for: {error}")
            except _SILENCE as error:
                if await self._again(asking, None):
                    continue
                self._silent[_host(asking.url)] += 1
                return self._silence(error)
            answer = await self._answer(asking, status, headers)
            if answer is not None:
                return answer

    def _silence(self, error: Exception) -> Answer:
        if isinstance(error, httpcore.TimeoutException):
            return Answer("unsure", f"gave no answer in {self._manners.seconds:g} s")
        return Answer("broken", f"cannot be reached: {str(error) or type(error).__name__}")

    async def _answer(
        self, asking: _Asking, status: int, headers: dict[str, str]
    ) -> Answer | None:
        """Return the answer that `status` is, or None when there is more to ask."""
        if status in _WELL:
            return _arrived(asking)
        if status in _REDIRECTS and "location" in headers:
            return self._follow(asking, status, headers["location"])
        if asking.method == "HEAD" and status in _HEAD_NOT_SERVED:
            asking.method = "GET"
            return None
        if status in _TRY_AGAIN and await self._again(asking, headers.get("retry-after")):
            return None
        if status in _GONE:
            return Answer("broken", f"is gone (HTTP {status})")
        return Answer("unsure", f"the server answered HTTP {status}")

    def _follow(self, asking: _Asking, status: int, location: str) -> Answer | None:
        asking.seen.add(str(asking.url))
        try:
            target = asking.url.join(location)
        except (httpx.InvalidURL, ValueError):
            return Answer("broken", f"redirects to {location[:200]!r}, which is not a URL")
        if target.scheme not in {"http", "https"} or not target.host:
            return Answer("broken", f"redirects to {location[:200]!r}, which is no web page")
        if str(target) in asking.seen:
            return Answer("broken", "redirects in a circle")
        asking.hops += 1
        if asking.hops > self._manners.redirects:
            return Answer("broken", f"redirects more than {self._manners.redirects} times")
        asking.temporary = asking.temporary or status not in _MOVED_FOR_GOOD
        if not asking.temporary:
            asking.moved_to = str(target)
        asking.url = target
        return None

    async def _request(self, asking: _Asking) -> tuple[int, dict[str, str]]:
        url, limit = asking.url, self._manners.seconds
        limits = {"connect": limit, "read": limit, "write": limit, "pool": None}
        headers = [
            (b"Host", url.netloc),
            (b"User-Agent", self._manners.agent.encode()),
            (b"Accept", b"*/*"),
        ]
        # A server that drips a byte at a time never meets the limit of one read.
        with anyio.move_on_after(limit):
            async with self._pool.stream(
                asking.method, _target(url), headers=headers, extensions={"timeout": limits}
            ) as response:
                if asking.method == "HEAD":
                    # There is no body, and the connection can be used again.
                    await response.aread()
                return response.status, _headers(response)
        raise httpcore.ReadTimeout

    @asynccontextmanager
    async def _turn(self, url: httpx.URL) -> AsyncIterator[None]:
        # Held until the URL is settled, so that a wait for the turn is not the server's fault.
        limit = self._manners.at_once_per_host
        async with self._turns.setdefault(_host(url), anyio.Semaphore(limit)):
            yield

    async def _again(self, asking: _Asking, retry_after: str | None) -> bool:
        """Wait as long as is asked for and return whether another try is allowed."""
        if asking.tries >= self._manners.retries:
            return False
        wait = self._manners.pause * 2**asking.tries
        if retry_after is not None and retry_after.strip().isdecimal():
            wait = float(retry_after.strip()[:9])
        if wait > self._manners.longest_wait:
            return False
        asking.tries += 1
        await anyio.sleep(wait)
        return True


@asynccontextmanager
async def open_fetcher(door: Door, manners: Manners) -> AsyncIterator[Fetcher]:
    """Yield a fetcher whose connections are closed at the end."""
    pool = httpcore.AsyncConnectionPool(
        ssl_context=_trust(),
        max_connections=manners.at_once,
        max_keepalive_connections=manners.at_once,
        network_backend=GuardedNetwork(door),
    )
    async with pool:
        yield Fetcher(pool, manners)


def _trust() -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=False)


def _target(url: httpx.URL) -> httpcore.URL:
    return httpcore.URL(
        scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
    )


def _headers(response: httpcore.Response) -> dict[str, str]:
    return {
        name.decode("ascii", "replace").lower(): value.decode("latin-1")
        for name, value in response.headers
    }


def _arrived(asking: _Asking) -> Answer:
    if asking.moved_to is None:
        return Answer("fine", "answers")
    return Answer("moved", "has moved for good", asking.moved_to)


def _host(url: httpx.URL) -> str:
    return f"{url.host}:{url.port or url.scheme}"
