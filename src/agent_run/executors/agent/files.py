"""Files of the workspace, reached part by part from one folder; no link is ever followed.

The agent's commands may have left links, pipes or worse behind. Whoever opens by handle and
refuses links cannot be led out of the workspace, however the tree changes meanwhile.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent_run.contract.paths import fault_of
from agent_run.errors import WorkspaceError

LARGEST: Final = 2 << 20
"""Bytes of one file that are read or written here."""
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_BESIDE: Final = ".agent-run-new"
_GIT: Final = ".git"


@dataclass(frozen=True, slots=True)
class Entry:
    """One regular file as it stands, told from its folder."""

    path: str
    facts: tuple[int, int, int, int]
    """Inode, size, time of the last change and mode: together they tell when it changed."""


@dataclass(frozen=True, slots=True)
class Files:
    """The files below `root`."""

    root: Path

    def read(self, path: str) -> bytes:
        """Return the content of the regular file at `path`.

        Raises:
            WorkspaceError: There is none, or it is too large.
        """
        with self._folder_of(path) as (folder, name), _named(path):
            handle = os.open(name, _FILE, dir_fd=folder)
            with os.fdopen(handle, "rb") as file:
                facts = os.fstat(handle)
                if not stat.S_ISREG(facts.st_mode):
                    msg = f"{path!r} is not a regular file"
                    raise WorkspaceError(msg)
                content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            msg = f"{path!r} is {facts.st_size} bytes large, {LARGEST} can be read"
            raise WorkspaceError(msg)
        return content

    def exists(self, path: str) -> bool:
        """Say whether anything at all lies at `path`."""
        try:
            with self._folder_of(path) as (folder, name):
                os.stat(name, dir_fd=folder, follow_symlinks=False)
        except (OSError, WorkspaceError):
            return False
        return True

    def is_folder(self, path: str) -> bool:
        """Say whether a folder lies at `path`; the empty path is the workspace itself."""
        if not path:
            return True
        try:
            with self._folder_of(path) as (folder, name):
                facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except (OSError, WorkspaceError):
            return False
        return stat.S_ISDIR(facts.st_mode)

    def write(self, path: str, content: bytes, *, executable: bool | None = None) -> None:
        """Put `content` at `path`, whole or not at all, in a new file that takes its place."""
        with self._folder_of(path, make=True) as (folder, name), _named(path):
            mode = (
                _mode(folder, name) if executable is None else (0o755 if executable else 0o644)
            )
            _unlinked(folder, _BESIDE)
            handle = os.open(_BESIDE, _NEW, 0o600, dir_fd=folder)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                    os.fchmod(handle, mode)
                os.rename(_BESIDE, name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError:
                os.unlink(_BESIDE, dir_fd=folder)
                raise

    def remove(self, path: str) -> None:
        """Take the file at `path` away, if it is there."""
        if self.exists(path):
            with self._folder_of(path) as (folder, name), _named(path):
                _unlinked(folder, name)

    def entries(self, below: str = "") -> Iterator[Entry | str]:
        """Yield every regular file below a folder; of anything else only its path."""
        with self._opened(below) as folder:
            yield from _walk(folder, f"{below.rstrip('/')}/" if below else "")

    @contextmanager
    def _folder_of(self, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        fault = fault_of(path)
        if fault or path.endswith("/"):
            raise WorkspaceError(fault or f"path {path!r} names a folder, expected a file")
        parent, _, name = path.rpartition("/")
        with self._opened(parent, make=make) as folder:
            yield folder, name

    @contextmanager
    def _opened(self, path: str, *, make: bool = False) -> Iterator[int]:
        folder = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in filter(None, path.split("/")):
                folder = _entered(folder, part, path, make=make)
            yield folder
        finally:
            os.close(folder)


def _entered(folder: int, part: str, path: str, *, make: bool) -> int:
    """Return a handle of the folder `part`, and close the one it lies in."""
    with _named(path):
        if make:
            with suppress(FileExistsError):  # whatever it is, it is opened below or refused
                os.mkdir(part, 0o755, dir_fd=folder)
        inner = os.open(part, _FOLDER, dir_fd=folder)
    os.close(folder)
    return inner


def _walk(folder: int, prefix: str) -> Iterator[Entry | str]:
    with os.scandir(folder) as found:
        names = sorted(entry.name for entry in found)
    for name in names:
        if name == _GIT:
            continue
        path = prefix + name
        try:
            facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except OSError:
            yield path  # nobody may look at it, so its path is all there is to tell
            continue
        if stat.S_ISDIR(facts.st_mode):
            yield from _below(folder, name, f"{path}/")
        elif stat.S_ISREG(facts.st_mode):
            told = (facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_mode)
            yield Entry(path, told)
        else:
            yield path


def _below(folder: int, name: str, prefix: str) -> Iterator[Entry | str]:
    try:
        inner = os.open(name, _FOLDER, dir_fd=folder)
    except OSError:
        yield prefix  # it went away or was replaced; its path alone is told
        return
    try:
        yield from _walk(inner, prefix)
    finally:
        os.close(inner)


def _unlinked(folder: int, name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


def _mode(folder: int, name: str) -> int:
    try:
        facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return 0o644
    return stat.S_IMODE(facts.st_mode) & 0o777


@contextmanager
def _named(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        msg = f"{path!r} cannot be used: {error.strerror}"
        raise WorkspaceError(msg) from error
