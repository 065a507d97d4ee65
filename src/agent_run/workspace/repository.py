"""The user's repository as the source of a base: what is committed, and what is not yet.

Only read here. Objects of uncommitted work are written to a folder of our own.
"""

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from agent_run.errors import UncommittedWork, WorkspaceError
from agent_run.ports.workspace import Base, Dirty
from agent_run.workspace import commits
from agent_run.workspace.bases import BaseStore
from agent_run.workspace.names import printable
from agent_run.workspace.plumbing import Entry, Git, Place, anchor
from agent_run.workspace.removal import remove_tree
from agent_run.workspace.writer import MODULE

_UNMERGED: Final = frozenset({"DD", "AU", "UD", "UA", "DU", "AA", "UU"})
_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class Status:
    """One line of what git says about the user's files."""

    code: str
    path: bytes

    @property
    def untracked(self) -> bool:
        return self.code == "??"


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository of the user's, with its filters switched off."""

    git: Git
    place: Place
    store: BaseStore

    @staticmethod
    def at(
        place: Place, store: BaseStore, settings: tuple[tuple[str, str], ...]
    ) -> "Repository":
        """Return the repository at `place`."""
        git = Git(store.program, place.directory, work_tree=place.top, settings=settings)
        return Repository(replace(git, settings=(*settings, *_no_filters(git))), place, store)

    def status(self) -> tuple[Status, ...]:
        """Return what is not committed."""
        options = ("--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=dirty")
        out = self.git.run("status", *options, "--untracked-files=all")
        return tuple(Status(row[:2].decode(), row[3:]) for row in out.split(b"\0")[:-1])

    def base(self, root: Path, prefix: str, dirty: Dirty) -> Base:
        """Return the state that new work starts from."""
        status = self.status()
        changed = tuple(one.path for one in status if not one.untracked)
        if changed and dirty == "refuse":
            msg = (
                f"uncommitted changes in {listed(changed)}; commit them, or start from them "
                "with dirty = 'carry'"
            )
            raise UncommittedWork(msg)
        head = commits.read(self.git, "HEAD")
        if status and dirty == "carry":
            commit = self._carry(status, head)
            carried = tuple(printable(one.path) for one in status)
        else:
            commit = head.oid if head else self._nothing()
            carried = ()
            self.store.ensure(commit, self.git)
        git = self.store.git(commit)
        tree = git.line("rev-parse", "--verify", f"{commit}^{{tree}}")
        told = _told(git, git.entries(tree), status, carried)
        return Base(commit, tree, root, prefix, carried, told)

    def filtered(self, paths: Iterable[bytes]) -> tuple[bytes, ...]:
        """Return those of `paths` that a git filter, such as LFS, stands between."""
        asked = b"".join(path + b"\0" for path in paths)
        out = self.git.run("check-attr", "-z", "--stdin", "filter", stdin=asked).split(b"\0")
        rows = zip(out[0::3], out[2::3], strict=False)
        return tuple(path for path, value in rows if value not in {b"unspecified", b"unset"})

    def _carry(self, status: tuple[Status, ...], head: commits.Commit | None) -> str:
        unmerged = [one.path for one in status if one.code in _UNMERGED]
        if unmerged:
            msg = f"{listed(unmerged)} is in the middle of a merge; finish or abort that first"
            raise UncommittedWork(msg)
        filtered = self.filtered(one.path for one in status)
        if filtered:
            msg = f"{listed(filtered)} is kept by a git filter such as LFS; commit it first"
            raise UncommittedWork(msg)
        with Scratch(self.store.state, "carry") as scratch:
            source = self.beside(scratch)
            index = self.git.line("rev-parse", "--path-format=absolute", "--git-path", "index")
            if Path(index).exists():
                # With its time: by that git knows which files may have changed unseen.
                shutil.copy2(index, scratch / "index")
            adding = replace(source, index=scratch / "index")
            adding.run("add", "--all")
            tree = adding.line("write-tree")
            message = "Uncommitted work, carried as the base\n"
            parent = head.oid if head else None
            commit = commits.write(source, tree, parent, message=message, at=commits.epoch())
            self.store.ensure(commit, source)
        return commit

    def _nothing(self) -> str:
        """Return a base without files, for a repository without a commit."""
        with Scratch(self.store.state, "empty") as scratch:
            source = self.beside(scratch)
            tree = source.line("mktree")
            message = "The empty base\n"
            commit = commits.write(source, tree, None, message=message, at=commits.epoch())
            self.store.ensure(commit, source)
        return commit

    def beside(self, scratch: Path) -> Git:
        """Return git that reads the user's objects and writes to `scratch`."""
        own = self.git.line("rev-parse", "--path-format=absolute", "--git-path", "objects")
        objects = scratch / "objects"
        objects.mkdir(exist_ok=True)
        return replace(self.git, objects=objects, alternates=(Path(own),))

    def apart(self, scratch: Path) -> Git:
        """Return git like `beside`, but deaf even to the repository's own configuration."""
        near = self.beside(scratch)
        directory = anchor(self.store.state, self.place.object_format)
        return replace(near, directory=directory, work_tree=None, settings=())


class Scratch:
    """A folder of our own for as long as a `with` block lasts."""

    def __init__(self, state: Path, purpose: str) -> None:
        folder = state / "scratch"
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / f"{purpose}-{os.getpid()}-{id(self):x}"

    def __enter__(self) -> Path:
        if self._path.exists():  # left by a dead process that had our number
            remove_tree(self._path)
        self._path.mkdir()
        return self._path

    def __exit__(self, *_: object) -> None:
        remove_tree(self._path)


def listed(paths: Iterable[bytes]) -> str:
    """Return the paths as one phrase, however many they are."""
    names = [repr(printable(path)) for path in paths]
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def check_root(root: Path) -> None:
    """Refuse a folder that cannot be worked in.

    Raises:
        WorkspaceError: it is no folder, or its name would break what git is told.
    """
    if not root.is_dir():
        msg = f"{str(root)!r} is not a folder"
        raise WorkspaceError(msg)
    if "\n" in str(root):
        msg = f"the folder {str(root)!r} has a line break in its name"
        raise WorkspaceError(msg)


def _no_filters(git: Git) -> tuple[tuple[str, str], ...]:
    _, out, _ = git.attempt("config", "-z", "--name-only", "--get-regexp", r"^filter\.")
    names = {os.fsdecode(row).rpartition(".")[0] for row in out.split(b"\0")[:-1]}
    off = (("clean", ""), ("smudge", ""), ("process", ""), ("required", "false"))
    return tuple((f"{name}.{key}", value) for name in sorted(names) for key, value in off)


def _told(
    git: Git, entries: dict[bytes, Entry], status: tuple[Status, ...], carried: tuple[str, ...]
) -> tuple[str, ...]:
    """Return what a person should know about this base."""
    notes: list[str] = []
    modules = [path for path, entry in entries.items() if entry.mode == MODULE]
    if modules:
        notes.append(f"the submodules {listed(modules)} are empty folders in the workspace")
    rules = [path for path in entries if path.rpartition(b"/")[2] == b".gitattributes"]
    with git.blobs(entries[path].oid for path in rules) as blobs:
        if any(b"filter=lfs" in blobs.read() for _ in rules):
            notes.append("files kept by LFS are pointers in the workspace, not their content")
    untracked = [one.path for one in status if one.untracked]
    if untracked and not carried:
        notes.append(f"files git does not know are not in the base: {listed(untracked)}")
    return tuple(notes)
