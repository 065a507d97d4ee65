"""A walk through a tree that someone hostile has built, with folder handles only.

Nothing is followed and nothing but regular files is ever opened, so a link, a pipe or a
device cannot make the reader look elsewhere or wait.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from agent_run.errors import WorkspaceError
from agent_run.workspace.removal import open_folder, unlock

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CHUNK: Final = 1 << 20
_KINDS: Final = (
    (stat.S_ISREG, "file"),
    (stat.S_ISDIR, "folder"),
    (stat.S_ISLNK, "symbolic link"),
    (stat.S_ISFIFO, "pipe"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISBLK, "block device"),
    (stat.S_ISCHR, "character device"),
)


class ChangedWhileRead(WorkspaceError):
    """A file was not the same at the end of reading as at its start."""


@dataclass(frozen=True, slots=True)
class Found:
    """One thing in the tree; usable only until the walk goes on."""

    path: bytes
    name: str
    folder: int
    status: os.stat_result

    @property
    def kind(self) -> str:
        """Return `file`, `folder`, `symbolic link`, `pipe`, `socket` or what device it is."""
        mode = self.status.st_mode
        return next((word for test, word in _KINDS if test(mode)), "special file")

    @property
    def runnable(self) -> bool:
        return bool(self.status.st_mode & stat.S_IXUSR)

    def target(self) -> bytes:
        """Return where a symbolic link points."""
        return os.fsencode(os.readlink(self.name, dir_fd=self.folder))

    def chunks(self) -> Iterator[bytes]:
        """Yield the content of a regular file.

        Raises:
            ChangedWhileRead: it is another file now, or grows or shrinks under our hands.
        """
        with self._opened() as fd:
            left = self.status.st_size
            while left:
                chunk = os.read(fd, min(left, _CHUNK))
                if not chunk:
                    break
                left -= len(chunk)
                yield chunk
            if left or os.read(fd, 1):
                msg = "the file changed while it was read"
                raise ChangedWhileRead(msg)

    @contextmanager
    def _opened(self) -> Iterator[int]:
        try:
            fd = os.open(self.name, _READ, dir_fd=self.folder)
        except PermissionError:
            unlock(self.name, self.folder, stat.S_IRUSR)
            fd = os.open(self.name, _READ, dir_fd=self.folder)
        try:
            now = os.fstat(fd)
            same = (now.st_dev, now.st_ino) == (self.status.st_dev, self.status.st_ino)
            if not same or not stat.S_ISREG(now.st_mode):
                msg = "the file was replaced while it was read"
                raise ChangedWhileRead(msg)
            yield fd
        finally:
            os.close(fd)


def walk(
    folder: int,
    *,
    enter: Callable[[Found], bool],
    locked: Callable[[Found, OSError], None],
    below: bytes = b"",
) -> Iterator[Found]:
    """Yield everything in `folder` that is not a folder; `enter` is asked about those.

    `enter` bounds the depth, since each level keeps one handle open, and `locked` is told
    of a folder that cannot be opened.
    """
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries)
    for name in names:
        path = below + os.fsencode(name)
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            continue  # it went while we looked, so it is not there
        found = Found(path, name, folder, status)
        if not stat.S_ISDIR(status.st_mode):
            yield found
        elif enter(found):
            try:
                inner = open_folder(name, folder)
            except OSError as error:
                locked(found, error)
                continue
            try:
                yield from walk(inner, enter=enter, locked=locked, below=path + b"/")
            finally:
                os.close(inner)
