"""What an executor left behind, compared with the base, file by file.

Everything that is not an allowed regular file stays out and is named.
The result is a list of changes with their content copied aside: from here on the
executor's folder is not needed any more.
"""

import hashlib
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from agent_run.contract.paths import Scope
from agent_run.contract.verdict import Reason
from agent_run.ports.workspace import Issue
from agent_run.workspace.names import is_gits_own, name_fault, printable
from agent_run.workspace.plumbing import Entry, ObjectFormat, write_all
from agent_run.workspace.scan import ChangedWhileRead, Found, walk
from agent_run.workspace.writer import LINK, MODULE, RUNNABLE

PLAIN: Final = 0o100644
_GIT: Final = b".git"


@dataclass(frozen=True, slots=True)
class Bounds:
    """How large a result may be; more is refused by name, never cut."""

    file_bytes: int = 256 << 20
    total_bytes: int = 1 << 30
    entries: int = 500_000
    """Files, links and folders in the executor's tree together."""
    depth: int = 100


@dataclass(frozen=True, slots=True)
class Staged:
    """A changed file, its content copied aside."""

    mode: int
    oid: str
    size: int
    copy: Path


@dataclass(slots=True)
class Comparison:
    """The executor's tree against the base, filled by `compare`."""

    base: Mapping[bytes, Entry]
    scope: Scope
    object_format: ObjectFormat
    aside: Path
    """Where changed files are copied to."""
    prefix: bytes = b""
    bounds: Bounds = field(default_factory=Bounds)
    staged: dict[bytes, Staged] = field(default_factory=dict)
    deleted: list[bytes] = field(default_factory=list)
    issues: list[Issue] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    _seen: set[bytes] = field(default_factory=set)
    _folders: set[bytes] = field(default_factory=set)
    _hidden: list[bytes] = field(default_factory=list)
    _met: int = 0
    _bytes: int = 0
    _device: int = 0

    def compare(self, top: int) -> None:
        """Walk the folder `top` once and fill in what differs."""
        self._folders = {step for path in self.base for step in _parents(path)}
        self._device = os.fstat(top).st_dev
        for found in walk(top, enter=self._enter, locked=self._locked):
            if found.path != _GIT:
                self._weigh(found)
            if self._met > self.bounds.entries:
                limit = self.bounds.entries
                self._refuse("over_budget", b"", f"the tree holds more than {limit} files")
                self.staged.clear()
                return
        self._find_deleted()

    def issue(self, reason: Reason, path: bytes, what: str) -> None:
        """Write down that `path` stays out of the result."""
        shown = self.shown(path)
        self.issues.append(Issue(reason, shown, f"{shown!r} {what}"))

    def shown(self, path: bytes) -> str:
        """Return `path` as people know it: relative to their root, safe to print."""
        inner = self._relative(path)
        return "../" * self.prefix.count(b"/") + printable(path) if inner is None else inner

    def _refuse(self, reason: Reason, path: bytes, sentence: str) -> None:
        self.issues.append(Issue(reason, self.shown(path), sentence))

    def _relative(self, path: bytes) -> str | None:
        inside = path.startswith(self.prefix)
        return printable(path[len(self.prefix) :]) if inside else None

    def _standing(self, path: bytes, *, in_base: bool) -> str:
        if not path.startswith(self.prefix):
            return "outside"
        text = path[len(self.prefix) :].decode("utf-8", "surrogateescape")
        return self.scope.standing(text, in_base=in_base)

    # Folders

    def _enter(self, found: Found) -> bool:
        self._met += 1
        path = found.path
        if path == _GIT:
            return False
        if self._met > self.bounds.entries or self._is_leftover(path):
            return False
        fault = self._folder_fault(found)
        if fault:
            self._hidden.append(path + b"/")
            self.issue("tampered", path, fault)
        return not fault

    def _locked(self, found: Found, error: OSError) -> None:
        self._hidden.append(found.path + b"/")
        self.issue("tampered", found.path, f"cannot be read: {error.strerror}")

    def _is_leftover(self, path: bytes) -> bool:
        if path in self._folders or path in self.base or self.scope.asks_for_leftovers:
            return False
        inner = path + b"/_"
        if self._standing(inner, in_base=False) != "ephemeral":
            return False
        self.dropped.append(self.shown(path) + "/")
        return True

    def _folder_fault(self, found: Found) -> str | None:
        if is_gits_own(os.fsencode(found.name)):
            return "is a git folder inside the tree"
        if found.status.st_dev != self._device:
            return "is on another file system, mounted into the tree"
        if found.path.count(b"/") >= self.bounds.depth:
            return f"is nested more than {self.bounds.depth} folders deep"
        return None

    # Files

    def _weigh(self, found: Found) -> None:
        self._met += 1
        path = found.path
        entry = self.base.get(path)
        self._seen.add(path)
        try:
            if entry is not None and self._is_same(found, entry):
                return
            standing = self._standing(path, in_base=entry is not None)
            if standing == "ephemeral":
                self.dropped.append(self.shown(path))
            elif found.kind == "symbolic link" and self._is_leftover(path):
                return  # a link in the place of a cache folder is as much a leftover
            elif self._may_enter(found, standing):
                self._stage(found)
        except (ChangedWhileRead, OSError) as error:
            said = error.strerror if isinstance(error, OSError) else str(error)
            self.staged.pop(path, None)
            self.issue("tampered", path, f"cannot be read: {said}")

    def _is_same(self, found: Found, entry: Entry) -> bool:
        if entry.mode == LINK:
            return found.kind == "symbolic link" and self._hash(found.target()) == entry.oid
        if entry.mode == MODULE or found.kind != "file":
            return False
        same_bits = found.runnable == (entry.mode == RUNNABLE)
        if not same_bits or found.status.st_size != entry.size or _privileged(found):
            return False
        return self._hash_of(found) == entry.oid

    def _may_enter(self, found: Found, standing: str) -> bool:
        path, in_base = found.path, found.path in self.base
        fault = self._kind_fault(found) or (None if in_base else name_fault(path))
        if fault:
            # What the base has below a folder that became this is hidden, not deleted.
            self._hidden.append(path + b"/")
            self.issue("tampered", path, fault)
        elif standing == "protected":
            self.issue("tampered", path, f"is protected and was {_verb(in_base=in_base)}")
        elif standing == "outside":
            verb = _verb(in_base=in_base)
            self.issue("out_of_scope", path, f"was {verb} but is not in allowed_paths")
        elif found.status.st_size > self.bounds.file_bytes:
            size, limit = found.status.st_size, self.bounds.file_bytes
            self.issue("over_budget", path, f"is {size} bytes large, {limit} are allowed")
        elif self._bytes + found.status.st_size > self.bounds.total_bytes:
            limit = self.bounds.total_bytes
            self.issue("over_budget", path, f"makes the result larger than {limit} bytes")
        else:
            return True
        return False

    def _kind_fault(self, found: Found) -> str | None:
        if is_gits_own(os.fsencode(found.name)):
            return "has the name of git's own folder"
        if found.kind == "symbolic link":
            target = found.target()
            away = " that leaves the tree" if _leaves(found.path, target) else ""
            return f"is a symbolic link{away} to {printable(target)!r}, not a regular file"
        if found.kind != "file":
            return f"is a {found.kind}, not a regular file"
        if found.status.st_nlink > 1:
            return "is a hard link, so its content may come from outside the tree"
        return "has a setuid or setgid bit" if _privileged(found) else None

    # Content

    def _stage(self, found: Found) -> None:
        copy = self.aside / str(len(self._seen))
        digest = hashlib.new(self.object_format, _header(found.status.st_size))
        fd = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            for chunk in found.chunks():
                digest.update(chunk)
                write_all(fd, chunk)
        finally:
            os.close(fd)
        mode = RUNNABLE if found.runnable else PLAIN
        self.staged[found.path] = Staged(mode, digest.hexdigest(), found.status.st_size, copy)
        self._bytes += found.status.st_size

    def _hash_of(self, found: Found) -> str:
        digest = hashlib.new(self.object_format, _header(found.status.st_size))
        for chunk in found.chunks():
            digest.update(chunk)
        return digest.hexdigest()

    def _hash(self, content: bytes) -> str:
        return hashlib.new(self.object_format, _header(len(content)) + content).hexdigest()

    # What is gone

    def _find_deleted(self) -> None:
        hidden = tuple(self._hidden)
        for path, entry in self.base.items():
            # An empty folder stands for a submodule, and folders are not seen here.
            if path in self._seen or entry.mode == MODULE:
                continue
            if hidden and path.startswith(hidden):
                continue
            standing = self._standing(path, in_base=True)
            if standing == "allowed":
                self.deleted.append(path)
            elif standing == "protected":
                self.issue("tampered", path, "is protected and was deleted")
            else:
                self.issue("out_of_scope", path, "was deleted but is not in allowed_paths")


def open_top(top: Path, identity: tuple[int, int]) -> int | None:
    """Open the executor's folder, or return None if it is not the one we made."""
    fd: int | None = None
    with suppress(OSError):
        fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    if fd is None:
        return None
    status = os.fstat(fd)
    if (status.st_dev, status.st_ino) == identity:
        return fd
    os.close(fd)
    return None


def _header(size: int) -> bytes:
    return b"blob %d\0" % size


def _privileged(found: Found) -> bool:
    return bool(found.status.st_mode & (stat.S_ISUID | stat.S_ISGID))


def _verb(*, in_base: bool) -> str:
    return "changed" if in_base else "added"


def _parents(path: bytes) -> list[bytes]:
    parts = path.split(b"/")[:-1]
    return [b"/".join(parts[: count + 1]) for count in range(len(parts))]


def _leaves(path: bytes, target: bytes) -> bool:
    if target.startswith(b"/"):
        return True
    depth = path.count(b"/")
    for part in target.split(b"/"):
        depth += {b"..": -1, b".": 0, b"": 0}.get(part, 1)
        if depth < 0:
            return True
    return False
