"""Files written from blobs, byte for byte: no filter, attribute or line ending applies.

Symbolic links are made last, so that no file is ever written through one.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from agent_run.errors import WorkspaceError
from agent_run.workspace.names import is_gits_own, printable
from agent_run.workspace.plumbing import Entry, Git

LINK: Final = 0o120000
MODULE: Final = 0o160000
RUNNABLE: Final = 0o100755
_STEPS: Final = frozenset({b"", b".", b".."})
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def write_tree(git: Git, entries: Mapping[bytes, Entry], into: Path) -> None:
    """Write `entries` below the existing, empty folder `into`.

    Raises:
        WorkspaceError: a path would leave the folder, or this file system cannot hold it.
    """
    links = {path for path, entry in entries.items() if entry.mode == LINK}
    for path in entries:
        _check(path, links)
    order = sorted(entries, key=lambda path: (entries[path].mode == LINK, path))
    held = [path for path in order if entries[path].mode != MODULE]
    for path in order:
        if entries[path].mode == MODULE:
            (into / os.fsdecode(path)).mkdir(parents=True, exist_ok=True)
    try:
        _write(git, entries, held, os.fsencode(into))
    except FileExistsError as error:
        name = printable(os.fsencode(error.filename))
        msg = f"two files of the tree want the same name {name!r} on this file system"
        raise WorkspaceError(msg) from error


def _write(git: Git, entries: Mapping[bytes, Entry], held: list[bytes], root: bytes) -> None:
    current, folder = b"", os.open(root, _FOLDER)
    try:
        with git.blobs(entries[path].oid for path in held) as blobs:
            for path in held:
                parent, _, name = path.rpartition(b"/")
                if parent != current:
                    os.close(folder)
                    folder = -1
                    folder = _folder(root, parent)
                    current = parent
                mode = entries[path].mode
                if mode == LINK:
                    os.symlink(blobs.read(), name, dir_fd=folder)
                    continue
                bits = 0o755 if mode == RUNNABLE else 0o644
                fd = os.open(name, _NEW, bits, dir_fd=folder)
                try:
                    blobs.copy_to(fd)
                finally:
                    os.close(fd)
    finally:
        if folder >= 0:
            os.close(folder)


def _folder(root: bytes, path: bytes) -> int:
    whole = root + b"/" + path if path else root
    with suppress(FileNotFoundError):
        return os.open(whole, _FOLDER)
    Path(os.fsdecode(whole)).mkdir(parents=True, exist_ok=True)
    return os.open(whole, _FOLDER)


def _check(path: bytes, links: set[bytes]) -> None:
    parts = path.split(b"/")
    leaves = not _STEPS.isdisjoint(parts)
    if not path.isascii() or b"git" in path.lower():
        leaves = leaves or any(map(is_gits_own, parts))
    steps = (b"/".join(parts[:count]) for count in range(1, len(parts))) if links else ()
    if leaves or any(step in links for step in steps):
        msg = f"the tree holds {printable(path)!r}, which would leave its folder"
        raise WorkspaceError(msg)
