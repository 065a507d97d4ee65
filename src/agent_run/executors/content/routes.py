"""The ways to web servers: straight through the guarded door, or through a proxy.

Behind a proxy it is the proxy that looks names up and connects. What is known to be private
is kept from it all the same.
"""

import ipaddress
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import httpcore
import httpx

from agent_run.executors.content.addresses import (
    Door,
    GuardedNetwork,
    PrivateAddress,
    addresses_of,
)
from agent_run.executors.content.proxies import Proxies, Proxy

_LOOKUP_SECONDS: Final = 2.0
"""Where only the proxy knows names, nobody waits long for our own lookup to fail."""


class Routes:
    """Pools of connections; opened by `open_routes`."""

    def __init__(
        self,
        direct: httpcore.AsyncConnectionPool,
        proxied: dict[Proxy, httpcore.AsyncConnectionPool],
        door: Door,
        proxies: Proxies,
    ) -> None:
        self._direct = direct
        self._proxied = proxied
        self._door = door
        self._proxies = proxies
        self._guarded: dict[str, str] = {}

    def proxy_for(self, url: httpx.URL) -> Proxy | None:
        """Return the proxy that `url` is asked for through. `None` means none."""
        port = url.port or (443 if url.scheme == "https" else 80)
        return self._proxies.way_to(url.scheme, url.raw_host.decode("ascii"), port)

    def is_outside(self, url: httpx.URL) -> bool:
        """Say whether an answer from there shows that the public network is reached."""
        return url.raw_host.decode("ascii").lower() not in self._door.allowed_hosts

    async def pool_for(self, url: httpx.URL) -> httpcore.AsyncConnectionPool:
        """Return the connections that lead to `url`.

        Raises:
            PrivateAddress: They would lead through a proxy to a private host.
        """
        proxy = self.proxy_for(url)
        if proxy is None:
            return self._direct
        await self._keep_from_proxy(url.raw_host.decode("ascii"))
        return self._proxied[proxy]

    async def _keep_from_proxy(self, host: str) -> None:
        if host not in self._guarded:
            self._guarded[host] = await self._private_address(host)
        address = self._guarded[host]
        if address:
            raise PrivateAddress(host, address)

    async def _private_address(self, host: str) -> str:
        """Return where `host` is if that is out of bounds, else nothing."""
        try:
            found = [str(ipaddress.ip_address(host.strip("[]")))]
        except ValueError:
            try:
                found = await addresses_of(host, 80, _LOOKUP_SECONDS)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                return ""  # only the proxy knows this name
        return next((one for one in found if self._door.refuses(host, one)), "")


@asynccontextmanager
async def open_routes(door: Door, proxies: Proxies, *, at_once: int) -> AsyncIterator[Routes]:
    """Yield routes whose connections are closed at the end."""
    trust = httpx.create_ssl_context(trust_env=False)
    async with AsyncExitStack() as stack:
        direct = httpcore.AsyncConnectionPool(
            ssl_context=trust,
            max_connections=at_once,
            max_keepalive_connections=at_once,
            network_backend=GuardedNetwork(door),
        )
        await stack.enter_async_context(direct)
        proxied: dict[Proxy, httpcore.AsyncConnectionPool] = {}
        for proxy in {one for one in (proxies.http, proxies.https) if one is not None}:
            pool = httpcore.AsyncHTTPProxy(
                proxy.url,
                proxy_auth=proxy.credentials,
                ssl_context=trust,
                proxy_ssl_context=trust if proxy.url.startswith("https:") else None,
                max_connections=at_once,
                max_keepalive_connections=at_once,
                network_backend=httpcore.AnyIOBackend(),
            )
            proxied[proxy] = await stack.enter_async_context(pool)
        yield Routes(direct, proxied, door, proxies)
