"""The door to the ledger: append pages, read pages, find open tasks.

What touches only our own ledger is sync and short. A store keeps pages and a small index of
tasks in one transaction; it holds no rule and never looks into a page.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, Protocol, TypeAlias

from agent_run.contract.base import RunId, TaskId
from agent_run.ledger.pages import Entry, Page
from agent_run.ledger.state import Status

Wanted: TypeAlias = Literal[
    "ready", "expired", "submitted", "overdue", "undecided", "unapproved"
]
"""Tasks nobody owns; owned beyond their time; waiting for a verdict; questions, decisions and
approvals that waited for a person too long."""


@dataclass(frozen=True, slots=True)
class TaskRow:
    """What the index knows of a task: enough to find it without reading its run."""

    run_id: RunId
    task_id: TaskId
    status: Status
    priority: int
    posted: int
    executor: str
    """The executor the manifest names; the empty string means anybody."""
    due: datetime | None
    """When the claim, or the wait for an answer, ends. `None` means never."""
    changed: int
    """The newest page about the task."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """What the index knows of a run."""

    run_id: RunId
    trace_id: str
    opened_at: datetime


@dataclass(frozen=True, slots=True)
class Chapter:
    """Consecutive pages of one run and the index rows that change with them."""

    run_id: RunId
    after: int
    pages: Sequence[Page]
    rows: Sequence[TaskRow]
    at: datetime


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a run after page `seq`, to spare reading the pages before it."""

    run_id: RunId
    seq: int
    digest: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Search:
    """Which open tasks are looked for."""

    wanted: Wanted
    now: datetime
    run_id: RunId | None = None
    executors: tuple[str, ...] | None = None
    """Only tasks for these executors, or for anybody. `None` takes every task."""
    limit: int = 1


class Reader(Protocol):
    """What can be asked of the ledger."""

    def read(self, run_id: RunId, *, after: int = 0, limit: int | None = None) -> list[Page]:
        """Return the pages of a run, in order, from page `after` + 1 on."""
        ...

    def find(self, search: Search) -> list[TaskRow]:
        """Return open tasks, most urgent first.

        The ready come by priority, then by order of posting; those past their time come by
        how long they are; the submitted by order of posting. Inside `Store.exclusive`, up
        to 32 tasks found at once are locked for this writer until the end of the
        transaction, and tasks that others have locked are passed over. The locks only
        spread claimers over tasks: who owns a task is decided while its run is held.
        """
        ...


class Writer(Reader, Protocol):
    """A transaction in which nobody else writes what it read."""

    def append(self, chapters: Sequence[Chapter]) -> None:
        """Write all chapters and their index rows, all or none.

        Raises:
            SequenceTaken: someone else wrote page `after` + 1 of a chapter first.
        """
        ...

    def hold(self, run_id: RunId) -> None:
        """Wait until no other writer holds the run, and keep others out until the end."""
        ...


class Store(Reader, Protocol):
    """An append-only ledger with an index. Every adapter passes one conformance suite."""

    def append(self, chapters: Sequence[Chapter]) -> None:
        """Write all chapters in one transaction of their own, all or none.

        Raises:
            SequenceTaken: someone else wrote page `after` + 1 of a chapter first.
        """
        ...

    def exclusive(self) -> AbstractContextManager[Writer]:
        """Begin a transaction that finds, reads and writes in one step."""
        ...

    def entries(self, run_id: RunId, *, after: int, limit: int) -> list[Entry]:
        """Return what stands on the pages that `read` returns, without trace and digest.

        For those who count and prove nothing; it takes half the time.
        """
        ...

    def tasks(self, *, task_id: TaskId | None = None) -> list[TaskRow]:
        """Return index rows, the task posted last first."""
        ...

    def runs(self, *, run_id: RunId | None = None, limit: int | None = None) -> list[RunRow]:
        """Return the runs, newest first."""
        ...

    def heads(self) -> Mapping[RunId, int]:
        """Return the newest page of each run, as the index has it.

        A book that ends before that page was cut.
        """
        ...

    def counts(self) -> Mapping[Status, int]:
        """Return how many tasks are in each status."""
        ...

    def save_snapshot(self, snapshot: Snapshot) -> None:
        """Keep `snapshot` instead of an older one of the same run."""
        ...

    def snapshot(self, run_id: RunId) -> Snapshot | None:
        """Return the newest snapshot of the run, if there is one."""
        ...

    def put_blob(self, content: bytes) -> str:
        """Keep `content` and return its SHA-256; keeping it twice keeps it once."""
        ...

    def blob(self, digest: str) -> bytes | None:
        """Return what was kept under `digest`, if anything was."""
        ...

    def skew(self, now: datetime) -> timedelta:
        """Return how far the ledger's own clock is ahead of `now`; zero for a local file."""
        ...

    def wait(self, timeout: timedelta) -> bool:
        """Wait until something may have been written by another, or until `timeout`."""
        ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...
