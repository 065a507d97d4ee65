"""What a workspace is asked for: a throwaway checkout, its result as one tree, one commit.

A tree id is what is judged, verified and promoted; the directory an executor worked in is
read once, by `collect`, and never again.
All calls block on disk and on git: call them from a thread.
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol

from agent_run.contract.verdict import Reason

Dirty = Literal["carry", "refuse"]
"""What happens to uncommitted work: it becomes part of the base, or nothing starts."""

Kind = Literal["added", "changed", "deleted", "mode"]

Lease = Literal["process", "hand"]
"""Whether a checkout dies with the process that made it, or waits for a person."""


@dataclass(frozen=True, slots=True)
class Base:
    """The state that work starts from, fixed by content."""

    commit: str
    """The commit work starts from; one of our own where the state was never committed."""
    tree: str
    root: Path
    """The folder that allowed paths are relative to."""
    prefix: str = ""
    """Where `root` lies in the repository, ending in `/`; empty at its top."""
    carried: tuple[str, ...] = ()
    """Uncommitted files that are part of this base."""
    notes: tuple[str, ...] = ()
    """Sentences a person should read: files left out, submodules, stored pointers."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A throwaway copy of the base for one claim. Plain data: another process may use it."""

    path: Path
    """Where the executor works."""
    top: Path
    """The whole copy; the same as `path` unless the root lies below the repository's top."""
    home: Path
    """Our own folder around the copy, not for the executor."""
    base: Base
    task_id: str
    claim: int
    identity: tuple[int, int] = (0, 0)
    """Device and inode of `top`, so that a swapped folder is noticed."""


@dataclass(frozen=True, slots=True)
class Change:
    """One file of the result that differs from the base."""

    path: str
    kind: Kind
    mode: str
    """Git's mode after the change, `100644` or `100755`; empty if deleted."""
    size: int
    """Bytes after the change; 0 if deleted."""
    blob: str = ""
    """The object id of the new content; empty if deleted."""
    added: int | None = None
    """Lines added. None means that the file is binary."""
    removed: int | None = None


@dataclass(frozen=True, slots=True)
class Issue:
    """Something in the executor's tree that did not enter the result, and why."""

    reason: Reason
    path: str
    """Safe to print: bytes that are no text are written as escapes."""
    sentence: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """The base plus the allowed regular files, as one tree; and what was left out."""

    tree: str
    changes: tuple[Change, ...] = ()
    refused: tuple[Issue, ...] = ()
    dropped: tuple[str, ...] = ()
    """Caches and build output that were left behind; never judged."""
    store: Path | None = None
    """Where the new objects wait until they are promoted. None if there are none."""

    @property
    def lines(self) -> int:
        """Lines added and removed, binary files not counted."""
        return sum((one.added or 0) + (one.removed or 0) for one in self.changes)


@dataclass(frozen=True, slots=True)
class Stamp:
    """Under whose name and when a commit is made."""

    task_id: str
    at: datetime
    trace_id: str = ""
    claim: int = 0
    attempt: int = 0
    commit: str = ""
    """The accepted commit, as the ledger has it. Empty means what the task's ref shows."""


@dataclass(frozen=True, slots=True)
class Result:
    """An accepted change: one commit at one ref."""

    commit: str
    ref: str
    tree: str


@dataclass(frozen=True, slots=True)
class Applied:
    """What `apply` or `rollback` did to the current branch."""

    commit: str
    """The branch's new commit; for a plain folder, the result that its files now show."""
    branch: str
    """The branch that moved, `HEAD` if detached, empty for a plain folder."""
    before: str
    """The commit the branch was at; empty if it had none."""
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Standing:
    """How the accepted change of a task is found on the current branch."""

    move: Applied
    """The newest move of the branch that was about it."""
    took_back: str = ""
    """The commit that this move took back; empty if it brought the change, which is there."""


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep did with the checkouts it found."""

    removed: tuple[str, ...]
    live: tuple[str, ...]
    """Left alone, because someone works there or a person was promised they stay."""


class Workspace(Protocol):
    """Checkouts of one project, and the way of a result back to its owner."""

    def base(self, *, dirty: Dirty = "refuse") -> Base:
        """Return the state that new work starts from.

        Raises:
            UncommittedWork: there is uncommitted work and `dirty` is "refuse".
            WorkspaceError: the repository cannot serve as a base; the message says why.
        """
        ...

    def base_at(self, results: tuple[str, ...]) -> Base:
        """Return as a base what contains all of these commits: one of them, or their join.

        Raises:
            WorkspaceError: two of them conflict, or one is not in this project.
        """
        ...

    def prepare(
        self, base: Base, *, task_id: str, claim: int, lease: Lease = "process"
    ) -> Checkout:
        """Return a fresh copy of `base` that shares nothing with the user's repository."""
        ...

    def reopen(self, task_id: str, claim: int) -> Checkout:
        """Return the checkout that `prepare` made for this claim, leased to this process."""
        ...

    def collect(
        self, checkout: Checkout, *, allowed: tuple[str, ...], protected: tuple[str, ...] = ()
    ) -> Candidate:
        """Return what the executor left behind, as a tree made of allowed files only.

        Every process that could write there must be dead.
        """
        ...

    def materialize(
        self, base: Base, candidate: Candidate | None, *, into: Path, repository: bool = False
    ) -> Path:
        """Write the candidate, or the base if None, to the new folder `into`.

        Return the folder in it that the allowed paths are relative to.
        `repository` adds a throwaway git folder that knows the base commit only.
        """
        ...

    def diff(self, base: Base, candidate: Candidate) -> bytes:
        """Return the patch from base to candidate, for people to read."""
        ...

    def promote(
        self, base: Base, candidate: Candidate, *, stamp: Stamp, message: str
    ) -> Result:
        """Store the candidate as one commit at `refs/agent-run/<task_id>`.

        Raises:
            StaleClaim: a later claim of the same trace is already there.
            WorkspaceError: someone else moved the ref meanwhile.
        """
        ...

    def result(self, task_id: str) -> Result | None:
        """Return the accepted change of a task, or None if there is none."""
        ...

    def accepted(
        self, commit: str, *, allowed: tuple[str, ...], protected: tuple[str, ...] = ()
    ) -> tuple[Base, Candidate] | None:
        """Return an accepted change as its judge saw it; None if it is not here any more.

        What is not allowed by these lists is named as refused, though it is part of the tree.
        """
        ...

    def standing(self, stamp: Stamp) -> Standing | None:
        """Return what the current branch itself shows of the change; None if nothing."""
        ...

    def apply(self, stamp: Stamp) -> Applied:
        """Bring the accepted change of a task to the current branch.

        Raises:
            ApplyRefused: it cannot be done without touching other work; nothing was changed.
        """
        ...

    def rollback(self, stamp: Stamp) -> Applied:
        """Take an applied change back with a new commit.

        Raises:
            ApplyRefused: it cannot be done without touching other work; nothing was changed.
        """
        ...

    def park(self, checkout: Checkout) -> None:
        """Let go of a checkout that must outlive this process until someone discards it."""
        ...

    def candidate(self, task_id: str, claim: int) -> Candidate | None:
        """Return what `collect` found for this claim, from any process; None if not yet."""
        ...

    def discard(self, checkout: Checkout) -> None:
        """Give a checkout up; `sweep` frees its space."""
        ...

    def sweep(self) -> Swept:
        """Remove discarded and orphaned checkouts, never one that is in use."""
        ...
