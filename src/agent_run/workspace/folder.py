"""A plain folder as a project: its content is kept in a bare repository of our own.

The base is a commit whose id depends on the files alone.
`apply` and `rollback` write files, and only where the folder still shows what they expect.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Final

from agent_run.contract.paths import Scope
from agent_run.errors import ApplyRefused, WorkspaceError
from agent_run.ports.workspace import Applied, Base, Dirty, Stamp, Standing
from agent_run.workspace import commits
from agent_run.workspace.bases import BaseStore
from agent_run.workspace.names import is_gits_own, printable
from agent_run.workspace.plumbing import Entry, Git, bare_repository, write_all
from agent_run.workspace.repository import Scratch, listed
from agent_run.workspace.scan import Found, walk
from agent_run.workspace.writer import LINK, RUNNABLE

_APPLIED: Final = "refs/applied"
_TAKEN_BACK: Final = "refs/taken-back"
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PLAIN: Final = 0o100644
_NO_SCOPE: Final = Scope(allowed=())


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that is in no repository."""

    root: Path
    store: BaseStore

    @property
    def git(self) -> Git:
        """Git over the private repository of this folder."""
        place = self.store.state / "folder.git"
        directory = bare_repository(place, self.store.object_format)
        return Git(self.store.program, directory)

    def apart(self, scratch: Path) -> Git:
        """Return git that reads what is kept of this folder and writes to `scratch`."""
        objects = scratch / "objects"
        objects.mkdir(exist_ok=True)
        return replace(self.git, objects=objects, alternates=(self.git.directory / "objects",))

    def base(self, root: Path, prefix: str, dirty: Dirty) -> Base:
        """Return the folder as it is now."""
        left_out: list[bytes] = []
        with Scratch(self.store.state, "snapshot") as scratch:
            index = replace(self.git, index=scratch / "index")
            rows = list(self._stored(scratch, left_out))
            index.run("update-index", "-z", "--add", "--index-info", stdin=b"".join(rows))
            tree = index.line("write-tree") if rows else self.git.line("mktree")
        message = "The folder as it was\n"
        commit = commits.write(self.git, tree, None, message=message, at=commits.epoch())
        self.git.run("update-ref", f"refs/bases/{commit}", commit)
        self.store.ensure(commit, self.git)
        told = (f"not part of the base: {listed(left_out)}",) if left_out else ()
        return Base(commit, tree, root, prefix, (), told)

    def apply(self, stamp: Stamp) -> Applied:
        """Write the accepted change of a task into the folder."""
        result = commits.accepted(self.git, stamp)
        if result is None or result.parent is None:
            msg = f"task {stamp.task_id!r} has no accepted change to apply"
            raise ApplyRefused(msg)
        applied = f"{_APPLIED}/{stamp.task_id}"
        standing = commits.read(self.git, applied)
        if standing and standing.oid == result.oid:
            msg = f"task {stamp.task_id!r} is in this folder already"
            raise ApplyRefused(msg)
        paths = self._turn(f"{result.oid}^", result.oid)
        self.git.run("update-ref", applied, result.oid)
        return Applied(result.oid, "", result.parent, paths)

    def rollback(self, stamp: Stamp) -> Applied:
        """Write the files back as they were before the change of a task."""
        applied = f"{_APPLIED}/{stamp.task_id}"
        standing = commits.read(self.git, applied)
        if standing is None or standing.parent is None:
            msg = f"task {stamp.task_id!r} is not in this folder, nothing can be taken back"
            raise ApplyRefused(msg)
        paths = self._turn(standing.oid, f"{standing.oid}^")
        self.git.run("update-ref", f"{_TAKEN_BACK}/{stamp.task_id}", standing.oid)
        self.git.run("update-ref", "-d", applied, standing.oid)
        return Applied(standing.parent, "", standing.oid, paths)

    def standing(self, stamp: Stamp) -> Standing | None:
        """Return what the folder shows of the accepted change of a task."""
        result = commits.accepted(self.git, stamp)
        if result is None or result.parent is None:
            return None
        applied = commits.read(self.git, f"{_APPLIED}/{stamp.task_id}")
        gone = commits.read(self.git, f"{_TAKEN_BACK}/{stamp.task_id}")
        before, after = self.git.entries(result.parent), self.git.entries(result.oid)
        paths = tuple(map(printable, _touched(before, after)))
        if applied is not None:
            move = Applied(result.oid, "", result.parent, paths)
            return Standing(move) if applied.oid == result.oid else None
        if gone is None or gone.oid != result.oid:
            return None
        return Standing(Applied(result.parent, "", result.oid, paths), took_back=result.oid)

    # The folder into the repository

    def _stored(self, scratch: Path, left_out: list[bytes]) -> Iterator[bytes]:
        top = os.open(self.root, _FOLDER)
        copies: list[tuple[int, bytes, Path]] = []
        numbers = count()

        def enter(found: Found) -> bool:
            return self._is_content(found, os.fstat(top).st_dev, left_out)

        try:
            for found in walk(top, enter=enter, locked=_unreadable):
                if found.kind not in {"file", "symbolic link"} or _is_dust(found.path):
                    left_out.append(found.path)
                    continue
                copy = scratch / str(next(numbers))
                try:
                    _copy(found, copy)
                except FileNotFoundError:
                    continue  # it went while we looked; the folder is in use
                copies.append((_mode(found), found.path, copy))
        finally:
            os.close(top)
        names = "".join(f"{copy}\n" for _, _, copy in copies).encode()
        out = self.git.line("hash-object", "-w", "--no-filters", "--stdin-paths", stdin=names)
        for (mode, path, _), oid in zip(copies, out.split(), strict=True):
            yield b"%o %s\t%s\0" % (mode, oid.encode(), path)

    def _is_content(self, found: Found, device: int, left_out: list[bytes]) -> bool:
        place = self.root / os.fsdecode(found.path)
        if found.path == b".agent-run" or place.samefile(self.store.state):
            return False
        if _ignores_itself(place):
            left_out.append(found.path + b"/")
            return False
        foreign = found.status.st_dev != device or is_gits_own(os.fsencode(found.name))
        if foreign or _is_dust(found.path + b"/_"):
            left_out.append(found.path + b"/")
            return False
        return True

    # The repository into the folder

    def _turn(self, old: str, new: str) -> tuple[str, ...]:
        """Change the folder from what `old` says to what `new` says, where they differ."""
        before, after = self.git.entries(old), self.git.entries(new)
        touched = _touched(before, after)
        other = [path for path in touched if not self._fits(path, before)]
        if other:
            msg = f"{listed(other)} changed since the work began; nothing was written"
            raise ApplyRefused(msg)
        # What goes makes room for what comes: a file may become a folder.
        order = sorted(touched, key=after.__contains__)
        done: list[bytes] = []
        try:
            for path in order:
                done.append(path)
                self._put(path, after.get(path))
        except OSError as error:
            for path in reversed(done):
                self._put(path, before.get(path))
            msg = f"the folder cannot be written ({error.strerror}); it is as it was before"
            raise ApplyRefused(msg) from error
        return tuple(map(printable, touched))

    def _fits(self, path: bytes, before: dict[bytes, Entry]) -> bool:
        """Say whether the folder has at `path` just what it had before."""
        entry = before.get(path)
        try:
            return self._shows(path, entry) or (entry is None and self._is_ours(path, before))
        except NotADirectoryError:
            # A file above is in order where it is one of ours that will go.
            above = (path[:place] for place, byte in enumerate(path) if byte == ord("/"))
            return entry is None and any(step in before for step in above)

    def _is_ours(self, path: bytes, before: dict[bytes, Entry]) -> bool:
        """Say whether `path` is a folder that holds nothing but files of `before`."""
        top = self.root / os.fsdecode(path)
        if top.is_symlink() or not top.is_dir():
            return False
        inner = (one for one in top.rglob("*") if one.is_symlink() or not one.is_dir())
        return all(os.fsencode(one.relative_to(self.root)) in before for one in inner)

    def _shows(self, path: bytes, entry: Entry | None) -> bool:
        with self._parent(path, make=False) as (folder, name):
            if folder is None:
                return entry is None
            try:
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                return entry is None
            found = Found(path, name, folder, status)
            if entry is None or not stat.S_ISREG(status.st_mode) or _mode(found) != entry.mode:
                return False
            digest = hashlib.new(self.store.object_format, b"blob %d\0" % status.st_size)
            for chunk in found.chunks():
                digest.update(chunk)
            return digest.hexdigest() == entry.oid

    def _put(self, path: bytes, entry: Entry | None) -> None:
        with self._parent(path, make=entry is not None) as (folder, name):
            if folder is None:
                return
            if entry is not None:
                self._place(folder, name, entry)
                return
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
        self._remove_empty(path)

    def _place(self, folder: int, name: str, entry: Entry) -> None:
        aside = f".agent-run-{os.getpid()}.tmp"
        with _created(aside, folder) as fd:
            with self.git.blobs([entry.oid]) as blobs:
                blobs.copy_to(fd)
            os.fchmod(fd, 0o755 if entry.mode == RUNNABLE else 0o644)
        os.replace(aside, name, src_dir_fd=folder, dst_dir_fd=folder)

    def _remove_empty(self, path: bytes) -> None:
        """Remove the folders above `path` that nothing is in any more, as git does."""
        for above in (self.root / os.fsdecode(path)).parents:
            if above == self.root or any(above.iterdir()):
                return
            above.rmdir()

    @contextmanager
    def _parent(self, path: bytes, *, make: bool) -> Iterator[tuple[int | None, str]]:
        """Give the folder that `path` is in, reached without following any link."""
        *above, name = os.fsdecode(path).split("/")
        folder: int | None = os.open(self.root, _FOLDER)
        try:
            for step in above:
                if folder is None:
                    break
                inner = _step(folder, step, make=make)
                os.close(folder)
                folder = inner
            yield folder, name
        finally:
            if folder is not None:
                os.close(folder)


def _touched(before: dict[bytes, Entry], after: dict[bytes, Entry]) -> list[bytes]:
    return sorted(path for path in {*before, *after} if before.get(path) != after.get(path))


def _unreadable(found: Found, error: OSError) -> None:
    msg = f"{printable(found.path)!r} cannot be read: {error.strerror}"
    raise WorkspaceError(msg) from error


def _copy(found: Found, copy: Path) -> None:
    with _created(copy, None) as fd:
        chunks = [found.target()] if _mode(found) == LINK else found.chunks()
        for chunk in chunks:
            write_all(fd, chunk)


def _step(folder: int, name: str, *, make: bool) -> int | None:
    if make:
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        return None


@contextmanager
def _created(path: Path | str, folder: int | None) -> Iterator[int]:
    fd = os.open(path, _NEW, 0o600, dir_fd=folder)
    try:
        yield fd
    finally:
        os.close(fd)


def _mode(found: Found) -> int:
    if found.kind == "symbolic link":
        return LINK
    return RUNNABLE if found.runnable else _PLAIN


def _ignores_itself(place: Path) -> bool:
    """Say whether a tool has marked its own folder, as git understands it, as no content."""
    try:
        return (place / ".gitignore").read_bytes().strip() == b"*"
    except OSError:
        return False


def _is_dust(path: bytes) -> bool:
    return _NO_SCOPE.is_leftover(os.fsdecode(path))
