"""Watches one command from its start to the death of its last process.

Runs as the first process of the fence's pid namespace or, without one, as the process that
inherits every orphan. Either way nothing that the command starts can leave its keeper.
"""

import os
import select
import time

from agent_run.workspace.fence import tree
from agent_run.workspace.fence.spec import Spec

_SIGKILL, _SIGSTOP, _SIGXCPU, _SIGXFSZ = 9, 19, 24, 25
_TICK, _TICK_WITHOUT_HANDLE = 0.05, 0.01
_REST = 20
"""A look at the tree may cost one part in this many."""
_DISK_STEP = 32 * 1024 * 1024
"""So much less free space calls for a new count of the writable trees."""


class Keeper:
    """Holds the child `pid` to the limits of `spec`; `control` is the line to our caller."""

    def __init__(self, spec: Spec, pid: int, control: int, *, first: bool) -> None:
        self._spec = spec
        self._pid = pid
        self._control = control
        self._first = first
        self._started = time.monotonic()
        self._tick = _TICK
        self._free = self._free_bytes()

    def outcome(self) -> str:
        """How it ended: `exited N`, `signalled N`, `limit NAME` or `stopped`."""
        poller = select.poll()
        poller.register(self._control, select.POLLIN | select.POLLHUP)
        handle = _process_handle(self._pid)
        if handle is None:
            self._tick = _TICK_WITHOUT_HANDLE
        else:
            poller.register(handle, select.POLLIN)
        while True:
            ready = [number for number, _event in poller.poll(self._patience())]
            status = self._reap()
            if status is not None:
                return _told(status)
            if self._control in ready:
                return "stopped"
            broken = self._broken_limit()
            if broken is not None:
                return f"limit {broken}"

    def end_all(self) -> None:
        """Return when no process of the command is left, dead ones included."""
        while True:
            if self._first:
                _kill_everyone()
            else:
                self._kill_descendants()
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    continue
            except ChildProcessError:
                return
            time.sleep(0.001)

    def over_disk(self) -> bool:
        """Whether the writable trees hold more than is granted, counted now."""
        limit = self._spec.disk_bytes
        return limit is not None and tree.disk_bytes(self._spec.counted, limit) > limit

    def _patience(self) -> float:
        wait = self._tick
        if self._spec.wall_sec is not None:
            left = self._started + self._spec.wall_sec - time.monotonic()
            wait = min(wait, max(left, 0))
        return wait * 1000

    def _reap(self) -> int | None:
        found = None
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == self._pid:
                    found = status
                if not pid:
                    return found
        except ChildProcessError:
            return found

    def _broken_limit(self) -> str | None:
        spec, before = self._spec, time.monotonic()
        if spec.wall_sec is not None and before - self._started >= spec.wall_sec:
            return "timeout"
        if (spec.cpu_sec, spec.memory_bytes, spec.processes) != (None, None, None):
            usage = tree.Usage(self._everyone())
            broken = self._broken_usage(usage)
            if broken is not None:
                return broken
        broken = self._broken_disk()
        self._tick = max(self._tick, (time.monotonic() - before) * _REST)
        return broken

    def _broken_usage(self, usage: tree.Usage) -> str | None:
        spec = self._spec
        if spec.processes is not None and usage.threads > spec.processes:
            return "processes"
        if spec.cpu_sec is not None:
            waited = os.times()
            cpu = usage.cpu_sec + waited.children_user + waited.children_system
            if cpu > spec.cpu_sec:
                return "cpu"
        if spec.memory_bytes is None:
            return None
        private = self._private_bytes()
        if usage.resident + private <= spec.memory_bytes:
            return None
        return "memory" if usage.proportional() + private > spec.memory_bytes else None

    def _broken_disk(self) -> str | None:
        if self._spec.disk_bytes is None:
            return None
        free = self._free_bytes()
        if free > self._free - min(_DISK_STEP, self._spec.disk_bytes):
            return None
        self._free = free
        return "disk" if self.over_disk() else None

    def _free_bytes(self) -> int:
        if self._spec.disk_bytes is None:
            return 0
        return sum(map(_free, self._spec.counted))

    def _private_bytes(self) -> int:
        """Memory that private files take; they live in memory when they are mounts of ours."""
        total = 0
        for kind, path, _source in self._spec.layout if self._first else []:
            if kind == "private":
                place = os.statvfs(path)
                total += (place.f_blocks - place.f_bfree) * place.f_frsize
        return total

    def _everyone(self) -> list[int]:
        return tree.everyone_else() if self._first else tree.descendants(os.getpid())

    def _kill_descendants(self) -> None:
        """Stop all before killing any: what is stopped cannot start another."""
        stopped: set[int] = set()
        while True:
            new = set(tree.descendants(os.getpid())) - stopped
            if not new:
                break
            for pid in new:
                _signal(pid, _SIGSTOP)
            stopped |= new
        for pid in stopped:
            _signal(pid, _SIGKILL)
        if not stopped:
            # Where there is no `/proc` to look into, the command's own group is all we know.
            _signal(-self._pid, _SIGKILL)


def _told(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"exited {code}"
    if code == -_SIGXCPU:
        return "limit cpu"
    return "limit disk" if code == -_SIGXFSZ else f"signalled {-code}"


def _kill_everyone() -> None:
    try:
        os.kill(-1, _SIGKILL)
    except ProcessLookupError:
        return


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        # Gone, or another user's by way of a set-id program, which only an open machine
        # allows; the others must be reached all the same, and the wait tells the rest.
        return


def _free(path: str) -> int:
    try:
        place = os.statvfs(path)
    except FileNotFoundError:
        return 0
    return place.f_bavail * place.f_frsize


def _process_handle(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
