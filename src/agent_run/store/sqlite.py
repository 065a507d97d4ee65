"""The ledger in one SQLite file: the default, for one machine.

Writers queue at a lock file before they begin, because SQLite's own lock lets the quick
starve the patient. The compare-and-set of a run's head decides who writes the next page.
"""

import fcntl
import hashlib
import sqlite3
import threading
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any, Final, Self

from agent_run.contract.base import RunId, TaskId
from agent_run.errors import SequenceTaken, StoreError
from agent_run.ledger.pages import Page
from agent_run.ledger.state import Status
from agent_run.ports.store import Chapter, RunRow, Search, Snapshot, TaskRow, Wanted
from agent_run.store.migrations import SQLITE

LARGEST_BODY: Final = 32_768
"""Longer bodies are kept among the blobs, so that reading the index stays quick."""

_TASK: Final = "run_id, task_id, status, priority, posted, executor, due, changed"
_BUSY: Final[Mapping[Wanted, tuple[Status, bool]]] = {
    "submitted": (Status.SUBMITTED, False),
    "expired": (Status.CLAIMED, True),
    "overdue": (Status.ASKED, True),
}
"""What is looked for -> status, and whether only what is past its time counts."""
_POLL: Final = 0.02
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class SqliteStore:
    """Pages, index, blobs and snapshots in one file, with write-ahead log and full sync."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mutex = threading.RLock()
        self._written = threading.Event()
        try:
            self._queue = path.with_name(path.name + "-queue").open("ab")
            self._db = sqlite3.connect(
                path, isolation_level=None, timeout=60, check_same_thread=False
            )
            self._prepare()
        except (sqlite3.Error, OSError) as error:
            msg = f"the ledger {str(path)!r} cannot be opened: {error}"
            raise StoreError(msg) from error
        self._seen = self._version()

    def read(self, run_id: RunId, *, after: int = 0, limit: int | None = None) -> list[Page]:
        """Return the pages of a run, in order, from page `after` + 1 on."""
        rows = self._rows(
            "SELECT p.seq, p.task_id, p.kind, p.trace_id,"
            " CASE WHEN p.blob IS NULL THEN p.body"
            " ELSE (SELECT CAST(b.content AS TEXT) FROM blobs b WHERE b.digest = p.blob) END,"
            " p.digest FROM pages p WHERE p.run_id = ? AND p.seq > ? ORDER BY p.seq LIMIT ?",
            (run_id, after, -1 if limit is None else limit),
        )
        return [Page(run_id, *row) for row in rows]

    def find(self, search: Search) -> list[TaskRow]:
        """Return open tasks, most urgent first: priority, then order of posting."""
        if search.wanted != "ready":
            return self._find_busy(search)
        found: list[Any] = []
        for executor in self._executors(search):
            found += self._rows(
                f"SELECT number, {_TASK} FROM tasks"  # noqa: S608
                " WHERE status = 'ready' AND executor = ? AND (? IS NULL OR run_id = ?)"
                " ORDER BY priority DESC, number LIMIT ?",
                (executor, search.run_id, search.run_id, search.limit),
            )
        if len(found) > 1:
            found.sort(key=_urgency)
        return [_task_row(row[1:]) for row in found[: search.limit]]

    def _find_busy(self, search: Search) -> list[TaskRow]:
        status, overdue = _BUSY[search.wanted]
        rows = self._rows(
            f"SELECT {_TASK} FROM tasks WHERE status = ? AND (? IS NULL OR run_id = ?)"  # noqa: S608
            f" {'AND due <= ? ORDER BY due, number' if overdue else 'ORDER BY number'} LIMIT ?",
            (
                *(status, search.run_id, search.run_id),
                *((_microseconds(search.now),) if overdue else ()),
                -1 if search.executors is not None else search.limit,
            ),
        )
        found = [_task_row(row) for row in rows]
        if search.executors is not None:
            wanted = {"", *search.executors}
            found = [row for row in found if row.executor in wanted]
        return found[: search.limit]

    def _executors(self, search: Search) -> Iterator[str]:
        """Yield the executors to look under, by jumping from one to the next in the index."""
        if search.executors is not None:
            yield from dict.fromkeys(("", *search.executors))
            return
        sql = "SELECT min(executor) FROM tasks WHERE status = 'ready' AND executor "
        ((executor,),) = self._rows(f"{sql} >= ''", ())
        while executor is not None:
            yield executor
            ((executor,),) = self._rows(f"{sql} > ?", (executor,))

    def append(self, chapters: Sequence[Chapter]) -> None:
        """Write all chapters in one transaction of their own, all or none."""
        with self.exclusive() as writer:
            writer.append(chapters)
        self._written.set()

    def exclusive(self) -> "_Transaction":
        """Begin a transaction that finds, reads and writes in one step."""
        return _Transaction(self, self._db, self._mutex, self._queue)

    def tasks(self, *, task_id: TaskId | None = None) -> list[TaskRow]:
        """Return index rows, the task posted last first."""
        rows = self._rows(
            f"SELECT {_TASK} FROM tasks"  # noqa: S608
            f" {'' if task_id is None else 'WHERE task_id = ?'} ORDER BY number DESC",
            () if task_id is None else (task_id,),
        )
        return [_task_row(row) for row in rows]

    def runs(self, *, run_id: RunId | None = None, limit: int | None = None) -> list[RunRow]:
        """Return the runs, newest first."""
        rows = self._rows(
            "SELECT run_id, trace_id, opened_at FROM runs WHERE ? IS NULL OR run_id = ?"
            " ORDER BY opened_at DESC, run_id LIMIT ?",
            (run_id, run_id, -1 if limit is None else limit),
        )
        return [RunRow(name, trace, _moment(at)) for name, trace, at in rows]

    def heads(self) -> Mapping[RunId, int]:
        """Return the newest page of each run, as the index has it."""
        rows = self._rows(
            "SELECT run_id, max(page) FROM (SELECT run_id, changed AS page FROM tasks"
            " UNION ALL SELECT run_id, untasked FROM runs) GROUP BY run_id",
            (),
        )
        return dict(rows)

    def counts(self) -> Mapping[Status, int]:
        """Return how many tasks are in each status."""
        rows = self._rows("SELECT status, count(*) FROM tasks GROUP BY status", ())
        return {Status(status): count for status, count in rows}

    def save_snapshot(self, snapshot: Snapshot) -> None:
        """Keep `snapshot` instead of an older one of the same run."""
        with self.exclusive():
            self._db.execute(
                "INSERT INTO snapshots VALUES (?, ?, ?, ?) ON CONFLICT (run_id) DO UPDATE"
                " SET seq = excluded.seq, digest = excluded.digest, body = excluded.body"
                " WHERE excluded.seq > snapshots.seq",
                (snapshot.run_id, snapshot.seq, snapshot.digest, snapshot.body),
            )

    def snapshot(self, run_id: RunId) -> Snapshot | None:
        """Return the newest snapshot of the run, if there is one."""
        rows = self._rows("SELECT * FROM snapshots WHERE run_id = ?", (run_id,))
        return Snapshot(*rows[0]) if rows else None

    def put_blob(self, content: bytes) -> str:
        """Keep `content` and return its SHA-256; keeping it twice keeps it once."""
        digest = hashlib.sha256(content).hexdigest()
        with self.exclusive():
            self._db.execute("INSERT OR IGNORE INTO blobs VALUES (?, ?)", (digest, content))
        return digest

    def blob(self, digest: str) -> bytes | None:
        """Return what was kept under `digest`, if anything was."""
        rows = self._rows("SELECT content FROM blobs WHERE digest = ?", (digest,))
        return bytes(rows[0][0]) if rows else None

    def skew(self, now: datetime) -> timedelta:
        """Return zero: a local file has no clock but this machine's."""
        return timedelta()

    def wait(self, timeout: timedelta) -> bool:
        """Wait until something may have been written, or until `timeout`."""
        until = time.monotonic() + timeout.total_seconds()
        while True:
            if self._written.wait(max(0.0, min(_POLL, until - time.monotonic()))):
                self._written.clear()
                return True
            version = self._version()
            if version != self._seen:
                self._seen = version
                return True
            if time.monotonic() >= until:
                return False

    def close(self) -> None:
        """Let go of the file."""
        with self._mutex:
            self._db.close()
            self._queue.close()

    def _prepare(self) -> None:
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version > len(SQLITE):
            msg = f"it was written by a newer agent-run (schema {version}, known {len(SQLITE)})"
            raise sqlite3.DatabaseError(msg)
        if version == len(SQLITE):
            return
        with self._queued():
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            for number, step in enumerate(SQLITE[version:], start=version + 1):
                self._db.executescript(f"BEGIN;{step}PRAGMA user_version = {number};COMMIT;")

    def _version(self) -> int:
        (row,) = self._rows("PRAGMA data_version", ())
        return int(row[0])

    @contextmanager
    def _queued(self) -> Generator[None]:
        fcntl.flock(self._queue, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._queue, fcntl.LOCK_UN)

    def _rows(self, sql: str, values: Sequence[object]) -> list[Any]:
        with self._mutex, self._translated():
            return self._db.execute(sql, values).fetchall()

    @contextmanager
    def _translated(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self.unusable(error) from error

    def unusable(self, error: sqlite3.Error) -> StoreError:
        """Return what to tell the user about an error of the database itself."""
        return StoreError(f"the ledger {str(self._path)!r} cannot be used: {error}")


class _Transaction:
    """The store inside one transaction; nobody else writes until it ends.

    A class with two plain methods, because generator context managers took a fifth of the
    time of a commit.
    """

    def __init__(
        self,
        store: SqliteStore,
        db: sqlite3.Connection,
        mutex: threading.RLock,
        queue: IO[bytes],
    ) -> None:
        self.read = store.read
        self.find = store.find
        self._store = store
        self._db = db
        self._mutex = mutex
        self._queue = queue

    def __enter__(self) -> Self:
        self._mutex.acquire()
        try:
            fcntl.flock(self._queue, fcntl.LOCK_EX)
            self._db.execute("BEGIN IMMEDIATE")
        except BaseException as error:
            self._leave()
            if isinstance(error, sqlite3.Error):
                raise self._store.unusable(error) from error
            raise
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            self._db.execute("COMMIT" if error is None else "ROLLBACK")
        except sqlite3.Error as fault:
            raise self._store.unusable(fault) from fault
        finally:
            self._leave()
        if isinstance(error, sqlite3.Error):
            raise self._store.unusable(error) from error

    def _leave(self) -> None:
        fcntl.flock(self._queue, fcntl.LOCK_UN)
        self._mutex.release()

    def hold(self, run_id: RunId) -> None:
        """Do nothing: the whole file is held."""

    def append(self, chapters: Sequence[Chapter]) -> None:
        """Write all chapters and their index rows."""
        for chapter in chapters:
            self._follow(chapter)
            self._write_pages(chapter.pages)
            self._index(chapter)

    def _follow(self, chapter: Chapter) -> None:
        """Make sure that the chapter begins where the book ends."""
        first = chapter.pages[0]
        if chapter.after:
            newest = self._db.execute(
                "SELECT max(seq) FROM pages WHERE run_id = ?", (chapter.run_id,)
            ).fetchone()[0]
            follows = newest == chapter.after
        else:
            opened = self._db.execute(
                "INSERT INTO runs (run_id, trace_id, opened_at, untasked) VALUES (?, ?, ?, 0)"
                " ON CONFLICT (run_id) DO NOTHING",
                (chapter.run_id, first.trace_id, _microseconds(chapter.at)),
            )
            follows = opened.rowcount == 1
        if not follows:
            msg = f"page {chapter.after + 1} of run {chapter.run_id!r} is taken"
            raise SequenceTaken(msg)

    def _write_pages(self, pages: Sequence[Page]) -> None:
        self._db.executemany(
            "INSERT INTO pages VALUES (?, ?, ?, ?, ?, ?, ?, ?)", map(self._page, pages)
        )

    def _page(self, page: Page) -> tuple[object, ...]:
        body, blob = page.body, None
        if len(body) > LARGEST_BODY:
            content = body.encode()
            body, blob = "", hashlib.sha256(content).hexdigest()
            self._db.execute("INSERT OR IGNORE INTO blobs VALUES (?, ?)", (blob, content))
        sealed = (body, blob, page.digest)
        return (page.run_id, page.seq, page.task_id, page.kind, page.trace_id, *sealed)

    def _index(self, chapter: Chapter) -> None:
        for row in chapter.rows:
            due = None if row.due is None else _microseconds(row.due)
            if row.posted > chapter.after:
                named = (row.run_id, row.task_id, row.status.value, row.priority)
                self._db.execute(
                    f"INSERT INTO tasks ({_TASK}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
                    (*named, row.posted, row.executor, due, row.changed),
                )
            else:
                self._db.execute(
                    "UPDATE tasks SET status = ?, due = ?, changed = ?"
                    " WHERE task_id = ? AND run_id = ?",
                    (row.status.value, due, row.changed, row.task_id, row.run_id),
                )
        untasked = max((page.seq for page in chapter.pages if not page.task_id), default=0)
        if untasked:
            self._db.execute(
                "UPDATE runs SET untasked = ? WHERE run_id = ?", (untasked, chapter.run_id)
            )


def _urgency(row: Sequence[Any]) -> tuple[int, int]:
    number, _run, _task, _status, priority, *_rest = row
    return (-priority, number)


def _task_row(row: Sequence[Any]) -> TaskRow:
    run_id, task_id, status, priority, posted, executor, due, changed = row
    moment = None if due is None else _moment(due)
    return TaskRow(run_id, task_id, Status(status), priority, posted, executor, moment, changed)


def _microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def _moment(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)
