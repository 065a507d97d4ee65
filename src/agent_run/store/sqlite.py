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
from contextlib import ExitStack, closing, contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, Any, Final, Self

from agent_run.contract.base import RunId, TaskId
from agent_run.errors import SequenceTaken, StoreError
from agent_run.ledger.pages import Entry, Page
from agent_run.ledger.state import Status
from agent_run.ports.store import Chapter, RunRow, Search, Snapshot, TaskRow
from agent_run.store.migrations import SQLITE
from agent_run.store.rows import (
    BUSY,
    TASK,
    beyond_index,
    microseconds,
    moment_of,
    set_apart,
    task_row,
)

_POLL: Final = 0.02
_BODY: Final = (
    "CASE WHEN p.blob IS NULL THEN p.body ELSE coalesce("
    "(SELECT CAST(b.content AS TEXT) FROM blobs b WHERE b.digest = p.blob), '') END"
)
_OF_A_RUN: Final = "FROM pages p WHERE p.run_id = ? AND p.seq > ? ORDER BY p.seq LIMIT ?"


class SqliteStore:
    """Pages, index, blobs and snapshots in one file, with write-ahead log and full sync."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mutex = threading.RLock()
        self._written = threading.Condition()
        self._heard = threading.local()
        self._commits = 0
        try:
            with ExitStack() as undo:
                self._queue = undo.enter_context(
                    path.with_name(path.name + "-queue").open("ab")
                )
                self._db = sqlite3.connect(
                    path, isolation_level=None, timeout=60, check_same_thread=False
                )
                undo.enter_context(closing(self._db))
                self._prepare()
                undo.pop_all()
        except (sqlite3.Error, OSError) as error:
            msg = f"the ledger {str(path)!r} cannot be opened: {error}"
            raise StoreError(msg) from error
        self._opened = self._version()

    def read(self, run_id: RunId, *, after: int = 0, limit: int | None = None) -> list[Page]:
        """Return the pages of a run, in order, from page `after` + 1 on."""
        rows = self._rows(
            f"SELECT p.seq, p.task_id, p.kind, p.trace_id, {_BODY}, p.digest {_OF_A_RUN}",
            (run_id, after, -1 if limit is None else limit),
        )
        return [Page(run_id, *row) for row in rows]

    def entries(self, run_id: RunId, *, after: int, limit: int) -> list[Entry]:
        """Return what stands on the pages that `read` returns, without trace and digest."""
        sql = f"SELECT p.seq, p.task_id, p.kind, {_BODY} {_OF_A_RUN}"
        return self._rows(sql, (run_id, after, limit))

    def find(self, search: Search) -> list[TaskRow]:
        """Return open tasks: the ready by priority, the others by how long they wait."""
        if search.wanted != "ready":
            rows = self._find_busy(search)
        elif search.run_id is not None:
            named, executors = _named(search)
            rows = self._rows(
                f"SELECT number, {TASK} FROM tasks WHERE status = 'ready' AND run_id = ?"  # noqa: S608
                f"{named} ORDER BY priority DESC, number LIMIT ?",
                (search.run_id, *executors, search.limit),
            )
        else:
            rows = self._find_ready(search)
        return [task_row(row[1:]) for row in rows]

    def _find_ready(self, search: Search) -> list[Any]:
        found: list[Any] = []
        for executor in self._executors(search):
            found += self._rows(
                f"SELECT number, {TASK} FROM tasks WHERE status = 'ready' AND executor = ?"  # noqa: S608
                " ORDER BY priority DESC, number LIMIT ?",
                (executor, search.limit),
            )
        if len(found) > 1:
            found.sort(key=_urgency)
        return found[: search.limit]

    def _find_busy(self, search: Search) -> list[Any]:
        status, overdue = BUSY[search.wanted]
        named, executors = _named(search)
        scope = "" if search.run_id is None else " AND run_id = ?"
        late = " AND due <= ?" if overdue else ""
        return self._rows(
            f"SELECT number, {TASK} FROM tasks WHERE status = '{status.value}'"  # noqa: S608
            f"{late}{scope}{named} ORDER BY {'due, ' if overdue else ''}number LIMIT ?",
            (
                *((microseconds(search.now),) if overdue else ()),
                *(() if search.run_id is None else (search.run_id,)),
                *(*executors, search.limit),
            ),
        )

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

    def exclusive(self) -> "_Transaction":
        """Begin a transaction that finds, reads and writes in one step."""
        return _Transaction(self, self._db, self._mutex, self._queue)

    def tasks(self, *, task_id: TaskId | None = None) -> list[TaskRow]:
        """Return index rows, the task posted last first."""
        rows = self._rows(
            f"SELECT {TASK} FROM tasks"  # noqa: S608
            f" {'' if task_id is None else 'WHERE task_id = ?'} ORDER BY number DESC",
            () if task_id is None else (task_id,),
        )
        return [task_row(row) for row in rows]

    def runs(self, *, run_id: RunId | None = None, limit: int | None = None) -> list[RunRow]:
        """Return the runs, newest first."""
        rows = self._rows(
            "SELECT run_id, trace_id, opened_at FROM runs WHERE ? IS NULL OR run_id = ?"
            " ORDER BY opened_at DESC, run_id LIMIT ?",
            (run_id, run_id, -1 if limit is None else limit),
        )
        return [RunRow(name, trace, moment_of(at)) for name, trace, at in rows]

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
        """Wait until something may have been written, or until `timeout`.

        Each thread is woken by what it has not yet heard of.
        """
        until = time.monotonic() + timeout.total_seconds()
        heard = getattr(self._heard, "version", self._opened)
        while (version := self._version()) == heard:
            left = until - time.monotonic()
            if left <= 0:
                return False
            with self._written:
                self._written.wait(min(_POLL, left))
        self._heard.version = version
        return True

    def committed(self) -> None:
        """Wake the threads of this process, for which the file's own version stays."""
        self._commits += 1
        with self._written:
            self._written.notify_all()

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

    def _version(self) -> tuple[int, int]:
        """Return what changes with every commit: of other connections, and of this one."""
        ((version,),) = self._rows("PRAGMA data_version", ())
        return version, self._commits

    @contextmanager
    def _queued(self) -> Generator[None]:
        fcntl.flock(self._queue, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._queue, fcntl.LOCK_UN)

    def _rows(self, sql: str, values: Sequence[object]) -> list[Any]:
        with self._mutex:
            try:
                return self._db.execute(sql, values).fetchall()
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
        self._appended = False

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
        if error is None and self._appended:
            self._store.committed()

    def _leave(self) -> None:
        fcntl.flock(self._queue, fcntl.LOCK_UN)
        self._mutex.release()

    def hold(self, run_id: RunId) -> None:
        """Do nothing: the whole file is held."""

    def append(self, chapters: Sequence[Chapter]) -> None:
        """Write all chapters and their index rows."""
        self._appended = True
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
                (chapter.run_id, first.trace_id, microseconds(chapter.at)),
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
        body, blob, apart = page.body, None, set_apart(page)
        if apart:
            body, blob = "", apart[0]
            self._db.execute("INSERT OR IGNORE INTO blobs VALUES (?, ?)", apart)
        sealed = (body, blob, page.digest)
        return (page.run_id, page.seq, page.task_id, page.kind, page.trace_id, *sealed)

    def _index(self, chapter: Chapter) -> None:
        for row in chapter.rows:
            due = None if row.due is None else microseconds(row.due)
            if row.posted > chapter.after:
                named = (row.run_id, row.task_id, row.status.value, row.priority)
                self._db.execute(
                    f"INSERT INTO tasks ({TASK}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
                    (*named, row.posted, row.executor, due, row.changed),
                )
            else:
                self._db.execute(
                    "UPDATE tasks SET status = ?, due = ?, changed = ?"
                    " WHERE task_id = ? AND run_id = ?",
                    (row.status.value, due, row.changed, row.task_id, row.run_id),
                )
        beyond = beyond_index(chapter)
        if beyond:
            self._db.execute(
                "UPDATE runs SET untasked = ? WHERE run_id = ?", (beyond, chapter.run_id)
            )


def _named(search: Search) -> tuple[str, tuple[str, ...]]:
    """Return a condition on executors, and its values."""
    if search.executors is None:
        return "", ()
    names = ("", *search.executors)
    return f" AND executor IN ({', '.join('?' * len(names))})", names


def _urgency(row: Sequence[Any]) -> tuple[int, int]:
    number, _run, _task, _status, priority, *_rest = row
    return (-priority, number)
