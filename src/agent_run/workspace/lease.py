"""Leases: who works in a checkout now, so that crashed ones go and live ones stay.

A lease is a locked file in the checkout's home.
The kernel lets the lock go when its holder dies, however it dies.
The file also names the holder's process and when that started, for file systems on which
locks do not hold.
"""

import fcntl
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent_run.errors import WorkspaceError
from agent_run.ports.workspace import Lease

_FILE: Final = "lease"
_STARTED: Final = 19  # the field of /proc/<pid>/stat, counted after the name


@dataclass(frozen=True, slots=True)
class Held:
    """A lease that this process holds."""

    home: Path
    fd: int

    def release(self) -> None:
        os.close(self.fd)


def take(home: Path, kind: Lease) -> Held:
    """Take the lease of the checkout at `home`.

    Raises:
        WorkspaceError: another process works there.
    """
    fd = os.open(home / _FILE, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        write(fd, kind)
    except BlockingIOError as error:
        os.close(fd)
        msg = f"the checkout {home.name!r} is in use by another process"
        raise WorkspaceError(msg) from error
    except BaseException:
        os.close(fd)
        raise
    return Held(home, fd)


def write(fd: int, kind: Lease) -> None:
    """Say in the lease file who holds it and what for."""
    holder = {"pid": os.getpid(), "started": started(os.getpid()), "kind": kind}
    os.ftruncate(fd, 0)
    os.pwrite(fd, json.dumps(holder).encode(), 0)


def is_live(home: Path) -> bool:
    """Say whether someone works in the checkout at `home`, or it was promised to a person."""
    try:
        fd = os.open(home / _FILE, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return _says_live(os.pread(fd, 4_096, 0))
    finally:
        os.close(fd)


def started(pid: int) -> str:
    """Return when the process `pid` started, in the kernel's own words; empty if it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[_STARTED]


def _says_live(text: bytes) -> bool:
    try:
        holder = json.loads(text)
        pid, begun, kind = int(holder["pid"]), str(holder["started"]), str(holder["kind"])
    except (ValueError, KeyError, TypeError):
        return False  # torn by a crash while it was written
    if kind == "hand":
        return True
    return bool(begun) and pid != os.getpid() and started(pid) == begun
