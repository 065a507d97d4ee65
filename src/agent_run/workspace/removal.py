"""Removal of a tree that someone hostile has built: deep, locked, full of links.

Nothing is followed, and a tree of any depth costs two open folders: each folder found is
first moved up to the top.
"""

import fcntl
import os
import stat
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_HANDLE: Final[int] = getattr(os, "O_PATH", os.O_RDONLY)
_BATCH: Final = 4_096


def remove_tree(path: Path) -> None:
    """Remove the folder `path` and all that is in it."""
    top = open_folder(path.name, None, parent=path.parent)
    names = count()
    try:
        while inner := _first_names(top):
            for name in inner:
                if _is_folder(top, name):
                    _flatten(top, name, names)
                else:
                    os.unlink(name, dir_fd=top)
    finally:
        os.close(top)
    path.rmdir()


def empty_out(trash: Path, scratch: Path) -> None:
    """Remove all that is in `trash`, and what dead processes left in `scratch`."""
    fd = os.open(trash, _FOLDER)
    try:
        # One process at a time; the others wait, so that space is free when they go on.
        fcntl.flock(fd, fcntl.LOCK_EX)
        left = [one for one in trash.iterdir() if one.is_dir()]
        if scratch.is_dir():
            left += [one for one in scratch.iterdir() if not _is_alive(one.name.split("-")[1])]
        for one in left:
            remove_tree(one)
    finally:
        os.close(fd)


def open_folder(name: str, at: int | None, *, parent: Path | None = None) -> int:
    """Open a folder for reading, with our own permissions restored if they were taken."""
    where = name if parent is None else str(parent / name)
    try:
        return os.open(where, _FOLDER, dir_fd=at)
    except PermissionError:
        unlock(where, at, stat.S_IRWXU)
        return os.open(where, _FOLDER, dir_fd=at)


def unlock(name: str, at: int | None, bits: int) -> None:
    """Add permission `bits` to a file or folder of ours, never through a link."""
    handle = os.open(name, _HANDLE | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
    try:
        mode = os.fstat(handle).st_mode
        if not stat.S_ISLNK(mode):
            os.chmod(f"/proc/self/fd/{handle}", stat.S_IMODE(mode) | bits)  # noqa: PTH101
    finally:
        os.close(handle)


def _is_alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _flatten(top: int, name: str, names: Iterator[int]) -> None:
    inner = open_folder(name, top)
    try:
        # Without write permission in it nothing can be taken out of a folder.
        if os.fstat(inner).st_mode & stat.S_IRWXU != stat.S_IRWXU:
            os.fchmod(inner, stat.S_IRWXU)
        while found := _first_names(inner):
            for one in found:
                if _is_folder(inner, one):
                    _move_up(inner, one, top, names)
                else:
                    os.unlink(one, dir_fd=inner)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=top)


def _move_up(inner: int, name: str, top: int, names: Iterator[int]) -> None:
    if (
        os.stat(name, dir_fd=inner, follow_symlinks=False).st_mode & stat.S_IRWXU
        != stat.S_IRWXU
    ):
        # A folder that may not be written to may not be moved either.
        unlock(name, inner, stat.S_IRWXU)
    while True:
        try:
            os.rename(name, f"\x01{next(names)}", src_dir_fd=inner, dst_dir_fd=top)
        except (FileExistsError, NotADirectoryError):
            continue
        return


def _is_folder(at: int, name: str) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode)


def _first_names(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry, _ in zip(entries, range(_BATCH), strict=False)]
