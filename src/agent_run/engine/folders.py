"""Private folders of attempts and rooms, which go when their owner is done or dead.

A folder is held by a lock beside it. The kernel lets the lock go when its holder dies,
however it dies, so what can be locked by somebody else was left behind.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_LOCK: Final = ".lock"
_OPEN: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def held_folder(folder: Path, remove: Callable[[Path], None]) -> Iterator[Path]:
    """Make `folder`, keep it for this process, and remove it at the end."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = folder.with_name(folder.name + _LOCK)
    handle = os.open(lock, _OPEN, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        if folder.exists():  # left by a dead process that had the same claim
            remove(folder)
        folder.mkdir(mode=0o700)
        yield folder
    finally:
        if folder.exists():
            remove(folder)
        lock.unlink(missing_ok=True)
        os.close(handle)


def sweep(place: Path, remove: Callable[[Path], None]) -> tuple[str, ...]:
    """Remove the folders in `place` whose owner is dead, and return their names."""
    if not place.is_dir():
        return ()
    removed: list[str] = []
    for lock in sorted(place.glob(f"*{_LOCK}")):
        folder = lock.with_name(lock.name.removesuffix(_LOCK))
        handle = os.open(lock, _OPEN, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue  # its owner is alive
        else:
            if folder.is_dir():
                remove(folder)
                removed.append(folder.name)
            lock.unlink(missing_ok=True)
        finally:
            os.close(handle)
    return tuple(removed)
