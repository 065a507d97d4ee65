"""Whether a URL answers: asked politely, in bounded time, with every outcome named.

HEAD first, GET where HEAD is not served; a body is only read where a link names a part of the
page. Redirects are followed by hand, so that each hop passes the same door and is counted.
"""

import ssl
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

import anyio
import anyio.to_thread
import httpcore
import httpx

from agent_run.executors.content.addresses import Door, LookupFailed, PrivateAddress
from agent_run.executors.content.pages import NO_PARTS, Page, Parts, parts_in, read_page
from agent_run.executors.content.proxies import NO_PROXIES, Proxies
from agent_run.executors.content.routes import Routes, open_routes

Finding: TypeAlias = Literal[
    "fine", "moved", "broken", "refused", "private", "silent", "unsure", "part", "unread"
]
"""`unsure`: the server would not say, or not in time; a person or another day may know.
`private`: it was not asked, because it lies in a network of somebody's own.
`silent`: no connection came about, which is the host's fault only if any other host answers.
`part`, `unread`: the page is there; its part was not found, or not looked for."""

_MOVED_FOR_GOOD: Final = frozenset({301, 308})
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_TRY_AGAIN: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_GONE: Final = frozenset({404, 410})
_HEAD_NOT_SERVED: Final = frozenset({400, 403, 404, 405, 406, 410, 501})
_WELL: Final = range(200, 300)
_SILENCE: Final = (
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.TimeoutException,
)
_LONGEST_URL: Final = 8_000
_PORTS: Final = range(1, 65_536)
_OWN_FAULT: Final = 500
"""From here on a status may be that of the proxy and not of the server behind it."""


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
    again: bool = False
    """It was not looked at; another time may tell."""
    parts: Parts = NO_PARTS
    """What is known about the parts of the page that were asked about."""


@dataclass(frozen=True, slots=True)
class _Reply:
    status: int
    headers: dict[str, str]
    page: Page | None = None
    """`None` means that no part of it was asked about."""


@dataclass(slots=True)
class _Asking:
    """One URL on its way through redirects and retries."""

    url: httpx.URL
    method: str = "HEAD"
    parts: frozenset[str] = frozenset()
    hops: int = 0
    tries: int = 0
    moved_to: str | None = None
    temporary: bool = False
    seen: set[str] = field(default_factory=set)


class Fetcher:
    """Asks servers; one for each draft, opened by `open_fetcher`."""

    def __init__(self, routes: Routes, manners: Manners) -> None:
        self._routes = routes
        self._manners = manners
        self._turns: dict[str, anyio.Semaphore] = {}
        self._silent: Counter[str] = Counter()
        self.heard = False
        """Whether any server of the public network has answered at all."""

    async def ask(self, text: str, parts: frozenset[str] = frozenset()) -> Answer:
        """Return what the server says about the URL `text` and these parts of its page."""
        url = _readable(text)
        if isinstance(url, str):
            return Answer("broken", url)
        async with self._turn(url):
            if self._silent[_host(url)] >= self._manners.patience:
                return Answer("unsure", f"was not asked: {url.host!r} does not answer")
            with anyio.move_on_after(self._manners.url_seconds):
                method = "GET" if parts else "HEAD"
                return await self._asked(_Asking(url, method, parts))
            self._silent[_host(url)] += 1
            return Answer("unsure", f"gave no answer in {self._manners.url_seconds:g} s")

    async def _asked(self, asking: _Asking) -> Answer:
        while True:
            try:
                reply = await self._request(asking)
            except PrivateAddress as error:
                return Answer("private", f"was not asked: {error}")
            except (httpcore.UnsupportedProtocol, httpcore.LocalProtocolError) as error:
                return Answer("broken", f"cannot be asked for: {error}")
            except _SILENCE as error:
                if await self._again(asking, None):
                    continue
                self._silent[_host(asking.url)] += 1
                return self._silence(asking, error)
            answer = await self._answer(asking, reply)
            if answer is not None:
                return answer

    def _silence(self, asking: _Asking, error: Exception) -> Answer:
        said = str(error) or type(error).__name__
        match error:
            case httpcore.TimeoutException():
                return Answer("unsure", f"gave no answer in {self._manners.seconds:g} s")
            case LookupFailed():
                return Answer("unsure", f"was not asked: {said}", again=True)
            case httpcore.ProxyError():
                return Answer("unsure", f"was not asked: the proxy says {said!r}", again=True)
            case _ if isinstance(error.__context__, ssl.SSLError):
                # A reader would be warned; but it may be our list of authorities that is old.
                why = getattr(error.__context__, "verify_message", "") or said
                return Answer("unsure", f"has no safe connection that is trusted here: {why}")
            case httpcore.ConnectError() if self._routes.proxy_for(asking.url):
                return Answer("unsure", f"was not asked: the proxy: {said}", again=True)
            case _:
                return Answer("silent", f"cannot be reached: {said}")

    async def _answer(self, asking: _Asking, reply: _Reply) -> Answer | None:
        """Return the answer that the status is, or None when there is more to ask."""
        status, headers = reply.status, reply.headers
        if status in _WELL:
            return await _arrived(asking, reply.page)
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
            joined = str(asking.url.join(location))
        except (httpx.InvalidURL, ValueError):
            return Answer("broken", f"redirects to {location[:200]!r}, which is not a URL")
        if not joined.startswith(("http://", "https://")):
            return Answer("broken", f"redirects to {location[:200]!r}, which is no web page")
        target = _readable(joined)
        if isinstance(target, str):
            return Answer("broken", f"redirects to {location[:200]!r}, which {target}")
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

    async def _request(self, asking: _Asking) -> _Reply:
        url, limit = asking.url, self._manners.seconds
        limits = {"connect": limit, "read": limit, "write": limit, "pool": None}
        headers = [
            (b"Host", url.netloc),
            (b"User-Agent", self._manners.agent.encode()),
            (b"Accept", b"*/*"),
        ]
        # A server that drips a byte at a time never meets the limit of one read.
        with anyio.move_on_after(limit):
            pool = await self._routes.pool_for(url)
            async with pool.stream(
                asking.method, _target(url), headers=headers, extensions={"timeout": limits}
            ) as response:
                self._hear(url, response.status)
                return await _read(asking, response)
        raise httpcore.ReadTimeout

    def _hear(self, url: httpx.URL, status: int) -> None:
        by_server = status < _OWN_FAULT or self._routes.proxy_for(url) is None
        self.heard = self.heard or (by_server and self._routes.is_outside(url))

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
async def open_fetcher(
    door: Door, manners: Manners, proxies: Proxies = NO_PROXIES
) -> AsyncIterator[Fetcher]:
    """Yield a fetcher whose connections are closed at the end."""
    async with open_routes(door, proxies, at_once=manners.at_once) as routes:
        yield Fetcher(routes, manners)


def _readable(text: str) -> httpx.URL | str:
    """Return the URL that `text` is, or why it is none."""
    if len(text) > _LONGEST_URL:
        return f"has {len(text)} characters, expected at most {_LONGEST_URL}"
    try:
        url = httpx.URL(text)
        host = url.host  # a name in another script is only spelled out, or refused, here
    except (httpx.InvalidURL, ValueError) as error:
        return f"is not a URL: {error}"
    if not host:
        return "is not a URL with a host"
    if url.port is not None and url.port not in _PORTS:
        return f"names the port {url.port}, expected one from 1 to 65535"
    return url


async def _read(asking: _Asking, response: httpcore.Response) -> _Reply:
    headers = _headers(response)
    if asking.method == "HEAD":
        # There is no body, and the connection can be used again.
        await response.aread()
    if not asking.parts or response.status not in _WELL:
        return _Reply(response.status, headers)
    return _Reply(response.status, headers, await read_page(response, headers))


def _target(url: httpx.URL) -> httpcore.URL:
    return httpcore.URL(
        scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
    )


def _headers(response: httpcore.Response) -> dict[str, str]:
    return {
        name.decode("ascii", "replace").lower(): value.decode("latin-1")
        for name, value in response.headers
    }


async def _arrived(asking: _Asking, page: Page | None) -> Answer:
    parts = NO_PARTS
    if page is not None:
        parts = await anyio.to_thread.run_sync(parts_in, page, asking.parts)
    if asking.moved_to is None:
        return Answer("fine", "answers", parts=parts)
    return Answer("moved", "has moved for good", asking.moved_to, parts=parts)


def _host(url: httpx.URL) -> str:
    return f"{url.host}:{url.port or url.scheme}"
