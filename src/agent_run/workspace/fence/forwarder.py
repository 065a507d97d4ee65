"""Carries a fenced command's connections to the few places it may reach.

Runs on the trusted side. The listening sockets were made inside the fence's network and
handed out, so that nothing of ours needs to run inside and nothing inside can be bent.
"""

import socket
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

import anyio
from anyio.abc import AnyByteStream, SocketListener, SocketStream

from agent_run.errors import ContractError
from agent_run.workspace.fence.routes import Routes, split_host

_HEAD_BYTES: Final = 64 * 1024
_CONNECT_SEC: Final = 30
_TEN_MINUTES: Final = 600
_REQUEST_WORDS: Final = 3
_GONE: Final = (
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.EndOfStream,
    OSError,
)


@dataclass(slots=True)
class Forwarder:
    """Serves the sockets of one command; remembers what it refused."""

    routes: Routes
    proxy_port: int
    refused: list[str] = field(default_factory=list)

    async def serve(self, listening: socket.socket, port: int) -> None:
        """Carry every connection to `listening`, which stands for `port`, until cancelled."""
        listener = await SocketListener.from_socket(listening)
        handler = self._proxy if port == self.proxy_port else _Loopback(port).carry
        async with listener:
            await listener.serve(handler)

    async def _proxy(self, client: SocketStream) -> None:
        async with client:
            try:
                head, rest = await _request_head(client)
                await self._answer(client, head, rest)
            except _GONE:
                # One side went away or fell silent, which is how connections end.
                return

    async def _answer(self, client: SocketStream, head: bytes, rest: bytes) -> None:
        line, _, headers = head.partition(b"\r\n")
        words = line.decode("latin-1").split(" ")
        target = _target(words)
        if target is None:
            await client.send(_status("400 Bad Request"))
            return
        if target not in self.routes.hosts:
            self.refused.append(f"{target[0]}:{target[1]}")
            await client.send(_status("403 Forbidden"))
            return
        try:
            with anyio.fail_after(_CONNECT_SEC):
                server = await anyio.connect_tcp(*target)
        except (OSError, TimeoutError):
            await client.send(_status("502 Bad Gateway"))
            return
        async with server:
            if words[0] == "CONNECT":
                await client.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                await server.send(_as_origin(words, headers))
            await server.send(rest)
            await _carry_both(client, server)


@dataclass(frozen=True, slots=True)
class _Loopback:
    port: int

    async def carry(self, client: SocketStream) -> None:
        async with client:
            try:
                server = await anyio.connect_tcp("127.0.0.1", self.port)
            except OSError:
                # Nobody listens outside; closing is the nearest thing to refusing.
                return
            async with server:
                await _carry_both(client, server)


async def _request_head(client: SocketStream) -> tuple[bytes, bytes]:
    read = b""
    with anyio.fail_after(_TEN_MINUTES):
        while b"\r\n\r\n" not in read and len(read) < _HEAD_BYTES:
            read += await client.receive()
    head, _, rest = read.partition(b"\r\n\r\n")
    return head, rest


def _target(words: list[str]) -> tuple[str, int] | None:
    if len(words) != _REQUEST_WORDS:
        return None
    try:
        if words[0] == "CONNECT":
            host, port = split_host(words[1])
            return (host, port or 443)
        parts = urlsplit(words[1])
        if parts.scheme != "http" or parts.hostname is None:
            return None
        return (parts.hostname.rstrip("."), parts.port or 80)
    except (ContractError, ValueError):
        return None


def _as_origin(words: list[str], headers: bytes) -> bytes:
    """The request as the server itself expects it, one per connection."""
    parts = urlsplit(words[1])
    path = parts.path or "/"
    if parts.query:
        path = f"{path}?{parts.query}"
    kept = [
        line
        for line in headers.split(b"\r\n")
        if line and not line.lower().startswith((b"proxy-", b"connection:"))
    ]
    first = f"{words[0]} {path} {words[2]}".encode("latin-1")
    return b"\r\n".join([first, *kept, b"Connection: close", b"", b""])


async def _carry_both(one: SocketStream, other: SocketStream) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(_carry, one, other)
        group.start_soon(_carry, other, one)


async def _carry(source: AnyByteStream, sink: SocketStream) -> None:
    try:
        async for chunk in source:
            await sink.send(chunk)
        await sink.send_eof()
    except _GONE:
        # The other direction sees the same end and closes both.
        await sink.aclose()


def _status(text: str) -> bytes:
    return f"HTTP/1.1 {text}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
