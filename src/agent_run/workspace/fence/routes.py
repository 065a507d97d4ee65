"""Reads a list of hosts that a command may reach."""

from dataclasses import dataclass
from typing import Final

from agent_run.errors import ContractError
from agent_run.ports.fence import Network

LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_DEFAULT_PORT: Final = 443
_LAST_PORT: Final = 65_535
_FIRST_PROXY_PORT: Final = 3_128


@dataclass(frozen=True, slots=True)
class Routes:
    """What lies beyond the fence and may be reached."""

    loopback: tuple[int, ...] = ()
    """Ports of the host's loopback, reached at the same port inside."""
    hosts: frozenset[tuple[str, int]] = frozenset()
    """Reached through a proxy that connects to nothing else."""

    @property
    def proxy_port(self) -> int:
        """A port for the proxy inside that no loopback route uses."""
        port = _FIRST_PROXY_PORT
        while port in self.loopback:
            port += 1
        return port


def routes_of(network: Network) -> Routes:
    """The routes that `network` names; none for `"deny"` and `"allow"`.

    Raises:
        ContractError: an entry is not `host` or `host:port`.
    """
    if isinstance(network, str):
        if network not in {"deny", "allow"}:
            msg = f"network {network!r} is neither 'deny' nor 'allow' nor a tuple of hosts"
            raise ContractError(msg)
        return Routes()
    ports: list[int] = []
    hosts: set[tuple[str, int]] = set()
    for entry in network:
        host, port = split_host(entry)
        if host not in LOOPBACK:
            hosts.add((host, port or _DEFAULT_PORT))
        elif port is None:
            msg = f"network entry {entry!r} is loopback and needs a port"
            raise ContractError(msg)
        elif port not in ports:
            ports.append(port)
    return Routes(loopback=tuple(ports), hosts=frozenset(hosts))


def split_host(entry: str) -> tuple[str, int | None]:
    """Host in small letters and port of `host`, `host:port` or `[v6]:port`.

    Raises:
        ContractError: `entry` is none of these.
    """
    host, colon, port = entry.rpartition(":")
    if not colon or entry.endswith("]") or entry.count(":") > 1 + entry.count("[") * 8:
        host, port = entry, ""
    host = host.removeprefix("[").removesuffix("]").rstrip(".").lower()
    if not host or any(c.isspace() or c in "/@?#*" for c in host):
        msg = f"network entry {entry!r} is not 'host' or 'host:port'"
        raise ContractError(msg)
    if not port:
        return host, None
    if not (port.isascii() and port.isdigit() and 0 < int(port) <= _LAST_PORT):
        msg = f"network entry {entry!r} has port {port!r}, expected 1 to {_LAST_PORT}"
        raise ContractError(msg)
    return host, int(port)
