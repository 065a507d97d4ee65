"""Where the link checker may connect to: the public network, and what its owner allows.

The name is looked up here and the address that was checked is the one that is connected to,
so that a name which answers differently the second time gains nothing.
"""

import ipaddress
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import anyio
import httpcore
import httpx

from agent_run.errors import InvalidDocument

_NOBODY_ASKED: Final = frozenset({socket.EAI_AGAIN, socket.EAI_FAIL})


class PrivateAddress(httpcore.ConnectError):
    """The host lies in a network that links of a draft may not reach."""

    def __init__(self, host: str, address: str) -> None:
        super().__init__(f"host {host!r} is at {address}, which is not a public address")
        self.host = host


class LookupFailed(httpcore.ConnectError):
    """Nobody who knows names could be asked; the name may well be there."""


@dataclass(frozen=True, slots=True)
class Door:
    """Which addresses may be connected to."""

    allowed_hosts: frozenset[str] = frozenset()
    """Host names that may be private, in lower case."""
    allow_private: bool = False

    def refuses(self, host: str, address: str) -> bool:
        """Return whether `host`, found at `address`, is out of bounds."""
        if self.allow_private or host.lower() in self.allowed_hosts:
            return False
        return not is_public(address)


PUBLIC_ONLY: Final = Door()


def door_for(hosts: Iterable[str]) -> Door:
    """Return a door that lets links through to these hosts, private or not.

    Raises:
        InvalidDocument: One of them is no name of a host.
    """
    return Door(frozenset(_as_asked(host) for host in hosts))


def _as_asked(host: str) -> str:
    """Return the host as it is connected to: in lower case, and in letters of ASCII."""
    try:
        return httpx.URL(f"http://{host}/").raw_host.decode("ascii").lower()
    except (httpx.InvalidURL, ValueError) as error:
        msg = f"host {host!r} is not the name of a host: {error}"
        raise InvalidDocument(msg) from error


def is_public(address: str) -> bool:
    """Return whether `address` belongs to the public network."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    inner = _wrapped(found)
    return inner.is_global and not inner.is_multicast


def _wrapped(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return the IPv4 address that an IPv6 one leads to, or the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in ipaddress.ip_network("64:ff9b::/96"):
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour or address


class GuardedNetwork(httpcore.AsyncNetworkBackend):
    """Connects only through `door`."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the shape of httpcore's backends
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first address of `host` that may be reached.

        Raises:
            PrivateAddress: One of its addresses may not be.
        """
        addresses = await addresses_of(host, port, timeout)
        for address in addresses:
            if self._door.refuses(host, address):
                raise PrivateAddress(host, address)
        return await self._network.connect_tcp(
            addresses[0],
            port,
            timeout=timeout,
            local_address=local_address,
            socket_options=socket_options,
        )

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds`."""
        await anyio.sleep(seconds)


async def addresses_of(host: str, port: int, limit: float | None) -> list[str]:
    """Return where `host` is, IPv4 first.

    Raises:
        ConnectTimeout: Nobody said so within `limit` seconds.
        LookupFailed: Nobody could be asked.
        ConnectError: There is no such name.
    """
    try:
        with anyio.fail_after(limit):
            found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except TimeoutError as error:
        msg = f"the name {host!r} was not found in time"
        raise httpcore.ConnectTimeout(msg) from error
    except (OSError, UnicodeError, ValueError) as error:
        if getattr(error, "errno", None) in _NOBODY_ASKED:
            msg = f"the name {host!r} could not be looked up"
            raise LookupFailed(msg) from error
        msg = f"the name {host!r} was not found"
        raise httpcore.ConnectError(msg) from error
    # A machine without IPv6 would otherwise fail on hosts that have both.
    ordered = sorted(found, key=lambda one: one[0] != socket.AF_INET)
    return [str(one[4][0]) for one in ordered]
