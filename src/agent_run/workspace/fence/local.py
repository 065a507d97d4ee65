"""The fence on this machine: starts the helper, listens to it, and believes only its end.

The helper exits when the last process of the command is dead, so its exit is the proof
that every path through `run` waits for, cancelled or not.
"""

import errno
import os
import socket
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import Process, TaskGroup

from agent_run.errors import FenceBroken
from agent_run.ports.fence import FenceReport, Finished, Launch, OnLine
from agent_run.workspace.fence import outcome
from agent_run.workspace.fence.capture import Capture
from agent_run.workspace.fence.forwarder import Forwarder
from agent_run.workspace.fence.helper import Line, line_to_helper
from agent_run.workspace.fence.policy import Ground, fields_for
from agent_run.workspace.fence.private import private_directory
from agent_run.workspace.fence.routes import Routes, routes_of

_DEATH_SEC: Final = 30
"""How long a killed tree may take to die before we say that it did not."""
_DRAIN_SEC: Final = 5
_MOST_HANDLES: Final = 16


@dataclass(frozen=True, slots=True)
class LocalFence:
    """Runs commands behind the strongest fence that was found to work."""

    ground: Ground
    found: FenceReport

    def report(self) -> FenceReport:
        """What this fence holds and lacks."""
        return self.found

    async def run(self, launch: Launch, *, on_line: OnLine | None = None) -> Finished:
        """How the command ended, when nothing of it is alive any more; see `Fence.run`."""
        routes = routes_of(launch.network)
        with self._private() as private, _proxy_socket(routes, self.ground) as proxy:
            port = routes.proxy_port if proxy is None else proxy.getsockname()[1]
            ground = replace(self.ground, private=private, proxy_port=port)
            fields = fields_for(launch, ground, routes)
            forwarder = Forwarder(routes=routes, proxy_port=port)
            with line_to_helper(fields) as line:
                capture = Capture(launch.limits.output_bytes, on_line, _hang_up(line))
                run = _Run(line=line, capture=capture, forwarder=forwarder)
                started = anyio.current_time()
                await run.to_its_end(proxy)
                elapsed = anyio.current_time() - started
        if capture.trouble is not None:
            raise capture.trouble
        ended = outcome.read(run.said, launch, over_output=capture.over)
        return Finished(
            ended=ended.ended,
            exit_code=ended.exit_code,
            signal=ended.signal,
            detail=ended.detail,
            stdout=capture.text("stdout"),
            stderr=capture.text("stderr"),
            stdout_truncated=capture.truncated("stdout"),
            stderr_truncated=capture.truncated("stderr"),
            elapsed_ms=round(elapsed * 1000),
            cpu_ms=ended.cpu_ms,
            refused_hosts=tuple(dict.fromkeys(forwarder.refused)),
            fence=self.found,
        )

    @contextmanager
    def _private(self) -> Iterator[Path | None]:
        if self.ground.tier == "namespaces":
            yield None
            return
        with private_directory(self.ground.stage) as path:
            yield path


@dataclass(slots=True)
class _Run:
    line: Line
    capture: Capture
    forwarder: Forwarder
    said: list[str] = field(default_factory=list)
    """What the helper told us, line by line."""

    async def to_its_end(self, proxy: socket.socket | None) -> None:
        """Return, or raise, only when the helper is gone and all of the command with it."""
        with _pipe() as stdout, _pipe() as stderr:
            async with (
                anyio.create_task_group() as services,
                self._helper(stdout[1], stderr[1]) as process,
            ):
                os.close(stdout[1])
                os.close(stderr[1])
                if proxy is not None:
                    port = self.forwarder.proxy_port
                    services.start_soon(self.forwarder.serve, proxy.dup(), port)
                await self._listen(process, services, stdout[0], stderr[0])
                services.cancel_scope.cancel()

    async def _listen(
        self, process: Process, services: TaskGroup, stdout: int, stderr: int
    ) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(self.capture.drain, "stdout", stdout)
            group.start_soon(self.capture.drain, "stderr", stderr)
            group.start_soon(self._hear, services)
            await process.wait()
            # All writers are dead, so the rest is in the pipes; without a fence one may have
            # got away with the other end, and nobody waits for that one.
            group.cancel_scope.deadline = anyio.current_time() + _DRAIN_SEC
        if group.cancel_scope.cancelled_caught:
            self.capture.cut()

    async def _hear(self, services: TaskGroup) -> None:
        heard = b""
        ours = self.line.ours
        handles: list[int] = []
        while ours.fileno() >= 0:
            await anyio.wait_readable(ours)
            chunk, new, _flags, _from = socket.recv_fds(ours, 65_536, _MOST_HANDLES)
            handles += new
            if not chunk:
                return
            *lines, heard = (heard + chunk).split(b"\n")
            for line in lines:
                word, _, rest = line.decode(errors="replace").partition(" ")
                if word == "listening":
                    listening = socket.socket(fileno=handles.pop(0))
                    services.start_soon(self.forwarder.serve, listening, int(rest))
                else:
                    self.said.append(f"{word} {rest}")

    @asynccontextmanager
    async def _helper(self, stdout: int, stderr: int) -> AsyncIterator[Process]:
        process = await anyio.open_process(
            self.line.command,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            cwd="/",
            env={},
            start_new_session=True,
            pass_fds=self.line.handles,
        )
        try:
            self.line.theirs.close()
            yield process
        finally:
            _hang_up(self.line)()
            with anyio.CancelScope(shield=True):
                await _prove_death(process)


@contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    """A pipe whose reading end never blocks; closed afterwards where it still is open."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    try:
        yield reading, writing
    finally:
        os.close(reading)


@contextmanager
def _proxy_socket(routes: Routes, ground: Ground) -> Iterator[socket.socket | None]:
    """The proxy's socket where it cannot be made inside a network of the fence's own."""
    if not routes.hosts or ground.tier == "namespaces":
        yield None
        return
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        proxy.setblocking(False)  # noqa: FBT003
        yield proxy


def _hang_up(line: Line) -> Callable[[], None]:
    """Tells the helper to end everything, by closing our direction of the line only."""

    def stop() -> None:
        try:
            line.ours.shutdown(socket.SHUT_WR)
        except OSError as error:
            # The helper is gone already, and with it what there was to stop.
            if error.errno not in {errno.ENOTCONN, errno.EPIPE}:
                raise

    return stop


async def _prove_death(process: Process) -> None:
    with anyio.move_on_after(_DEATH_SEC) as patience:
        await process.wait()
    if patience.cancelled_caught:
        process.kill()
        await process.wait()
        msg = f"the command was not dead {_DEATH_SEC} s after it was killed"
        raise FenceBroken(msg)
