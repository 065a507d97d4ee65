"""A temporary directory whose contents a stranger wrote, removed whatever they are."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def private_directory(below: Path) -> Iterator[Path]:
    """A fresh directory with `home` and `tmp` in it, gone afterwards."""
    path = Path(tempfile.mkdtemp(prefix="agent-run-", dir=below)).resolve()
    try:
        for name in ("home", "tmp"):
            (path / name).mkdir()
        yield path
    finally:
        remove_hostile(path)


def remove_hostile(top: Path) -> None:
    """Remove a tree without recursion, long paths, or a step through a link.

    Each directory hands its own directories up to `top` before it goes, so that no depth
    is too deep and no path too long.
    """
    count = 0
    top.chmod(0o700)
    while folders := _emptied(top):
        for folder in folders:
            folder.chmod(0o700)
            for inner in _emptied(folder):
                inner.chmod(0o700)
                count += 1
                while os.path.lexists(top / str(count)):
                    count += 1
                inner.rename(top / str(count))
            folder.rmdir()
    top.rmdir()


def _emptied(folder: Path) -> list[Path]:
    """The directories in `folder`, after everything else in it is removed."""
    inner: list[Path] = []
    with os.scandir(folder) as entries:
        for entry in list(entries):
            if entry.is_dir(follow_symlinks=False):
                inner.append(Path(entry.path))
            else:
                Path(entry.path).unlink()
    return inner
