"""Keeps what a command prints, up to a limit that is never passed silently."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import anyio

from agent_run.ports.fence import OnLine, Stream

_CHUNK: Final = 256 * 1024


@dataclass(slots=True)
class Capture:
    """Both streams of one command; `stop` is called once when there is reason to end it."""

    limit: int
    on_line: OnLine | None
    stop: Callable[[], None]
    over: bool = False
    """Whether the command wrote more than `limit`."""
    trouble: Exception | None = None
    """What `on_line` raised."""
    _kept: dict[Stream, bytearray] = field(
        default_factory=lambda: {"stdout": bytearray(), "stderr": bytearray()}
    )
    _cut: set[Stream] = field(default_factory=set)
    _told: dict[Stream, int] = field(default_factory=lambda: {"stdout": 0, "stderr": 0})
    """How far the lines of each stream have been given away."""

    def text(self, stream: Stream) -> bytes:
        """What was kept of `stream`."""
        return bytes(self._kept[stream])

    def truncated(self, stream: Stream) -> bool:
        """Whether the command wrote more to `stream` than was kept."""
        return stream in self._cut

    def cut(self) -> None:
        """Say that reading ended before the streams did."""
        self._cut |= {"stdout", "stderr"}

    async def drain(self, stream: Stream, handle: int) -> None:
        """Read the non-blocking `handle` to its end; past the limit, read and drop."""
        while True:
            await anyio.wait_readable(handle)
            try:
                chunk = os.read(handle, _CHUNK)
            except BlockingIOError:
                continue
            if not chunk:
                self._tell(stream, last=True)
                return
            self._keep(stream, chunk)

    def _keep(self, stream: Stream, chunk: bytes) -> None:
        room = self.limit - sum(map(len, self._kept.values()))
        self._kept[stream] += chunk[:room]
        if len(chunk) > room:
            self._cut.add(stream)
            if not self.over:
                self.over = True
                self.stop()
        self._tell(stream, since=len(self._kept[stream]) - min(len(chunk), max(room, 0)))

    def _tell(self, stream: Stream, *, since: int = 0, last: bool = False) -> None:
        if self.on_line is None or self.trouble is not None:
            return
        kept, start = self._kept[stream], self._told[stream]
        end = len(kept) if last else kept.rfind(b"\n", since) + 1
        if end <= start:
            return
        self._told[stream] = end
        lines = bytes(kept[start:end]).removesuffix(b"\n").split(b"\n")
        try:
            for line in lines:
                self.on_line(stream, line)
        except Exception as error:  # noqa: BLE001 - raised again when the command is dead
            self.trouble = error
            self.stop()
