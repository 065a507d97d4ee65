"""Which proxy a web page is asked for through, if its owner configured one.

A value like any other: who reads the environment hands it in. What stands in the address of a
proxy may be a password, so that no message ever shows more than its host.
"""

import ipaddress
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from agent_run.errors import InvalidDocument

_SCHEMES: Final = frozenset({"http", "https"})
_APART: Final = re.compile(r"[\s,]+")


@dataclass(frozen=True, slots=True, repr=False)
class Proxy:
    """One proxy, and how it knows us."""

    url: str
    """Without user and password."""
    user: str = ""
    password: str = ""

    def __repr__(self) -> str:
        return f"Proxy({self.url!r})"

    @property
    def credentials(self) -> tuple[str, str] | None:
        """User and password. `None` means that it asks for none."""
        return (self.user, self.password) if self.user or self.password else None


@dataclass(frozen=True, slots=True)
class Proxies:
    """The proxies by scheme, and the hosts that are asked without one."""

    http: Proxy | None = None
    """`None` means that these pages are asked for without a proxy; so for `https`."""
    https: Proxy | None = None
    bypassed: tuple[str, ...] = ()
    """Names with all below them, addresses, networks, `host:port`, or `*` for all."""
    fault: str = ""
    """Why what was configured cannot be used, and no page be asked for. Empty means it can."""

    def way_to(self, scheme: str, host: str, port: int | None) -> Proxy | None:
        """Return the proxy for this page. `None` means the direct way."""
        proxy = self.https if scheme == "https" else self.http
        if proxy is None or any(_matches(one, host.lower(), port) for one in self.bypassed):
            return None
        return proxy


NO_PROXIES: Final = Proxies()


def proxies_from(*, http: str = "", https: str = "", bypass: str = "") -> Proxies:
    """Return the proxies at these addresses; an empty one means none.

    Raises:
        InvalidDocument: An address is not one of an HTTP proxy.
    """
    left_out = tuple(one.lower() for one in _APART.split(bypass) if one)
    return Proxies(_proxy(http), _proxy(https), left_out)


def _proxy(address: str) -> Proxy | None:
    text = address.strip()
    if not text:
        return None
    parts, port = _parts(text if "://" in text else f"http://{text}")
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    place = f"{parts.scheme}://{host}" + (f":{port}" if port else "")
    return Proxy(place, unquote(parts.username or ""), unquote(parts.password or ""))


def _parts(address: str) -> tuple[SplitResult, int | None]:
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        msg = "the address of a proxy is not a URL, expected one like 'http://proxy:3128'"
        raise InvalidDocument(msg) from error
    if parts.scheme not in _SCHEMES or not parts.hostname:
        shown = f"{parts.scheme}://{parts.hostname or ''}"
        msg = f"proxy {shown!r} is not of HTTP, expected one like 'http://proxy:3128'"
        raise InvalidDocument(msg)
    return parts, port


def _matches(entry: str, host: str, port: int | None) -> bool:
    if entry == "*":
        return True
    bare, colon, number = entry.rpartition(":")
    if colon and number.isdecimal() and ":" not in bare.strip("[]"):
        return int(number) == port and _matches(bare, host, port)
    name = entry.lstrip("*").lstrip(".").strip("[]")
    if host == name or host.endswith(f".{name}"):
        return bool(name)
    return _in_network(name, host.strip("[]"))


def _in_network(network: str, host: str) -> bool:
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False
