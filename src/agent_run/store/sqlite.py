"""The ledger in one SQLite file: the default, for one machine.

Writers queue at a lock file before they begin, because SQLite's own lock lets the quick
starve the patient. The compare-and-set of a run's head decides who writes the next page.
"""

import fcntl
import hashlib
import sqlite3
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from agent_run.contract.base import RunId, TaskId
from agent_run.errors import SequenceTaken, StoreError
from agent_run.ledger.pages import Page
from agent_run.ledger.state import Status
from agent_run.ports.store import Chapter, RunRow, Search, Snapshot, TaskRow, Wanted
from agent_run.store.migrations import SQLITE

LARGEST_BODY: Final = 32_768
"""Longer bodies are kept among the blobs, so that reading the index stays quick."""

_TASK: Final = "run_id, task_id, status, priority, posted, executor, due, changed"
_RUN: Final = "run_id, head, digest, trace_id, opened_at, changed_at"
_URGENT_FIRST: Final = "priority DESC, number"
_KINDS: Final[Mapping[Wanted, tuple[Status, str]]] = {
    "ready": (Status.READY, _URGENT_FIRST),
    "submitted": (Status.SUBMITTED, _URGENT_FIRST),
    "expired": (Status.CLAIMED, "due"),
    "overdue": (Status.ASKED, "due"),
}
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
        found: list[tuple[int, TaskRow]] = []
        for where, values in _conditions(search):
            rows = self._rows(
                f"SELECT number, {_TASK} FROM tasks WHERE {where} LIMIT ?",  # noqa: S608
                (*values, search.limit),
            )
            found += [(row[0], _task_row(row[1:])) for row in rows]
        found.sort(key=lambda item: (-item[1].priority, item[0]))
        return [row for _, row in found[: search.limit]]

    def append(self, chapters: Sequence[Chapter]) -> None:
        """Write all chapters in one transaction of their own, all or none."""
        with self.exclusive() as writer:
            writer.append(chapters)
        self._written.set()

    @contextmanager
    def exclusive(self) -> Generator["_Writer"]:
        """Begin a transaction that finds, reads and writes in one step."""
        with self._mutex, self._queued():
            db = self._db
            self._run("BEGIN IMMEDIATE")
            try:
                with self._translated():
                    yield _Writer(self, db)
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
            self._run("COMMIT")

    def tasks(
        self, *, run_id: RunId | None = None, task_id: TaskId | None = None
    ) -> list[TaskRow]:
        """Return index rows, newest run first, in order of posting."""
        named = [("t.run_id", run_id), ("t.task_id", task_id)]
        where = " AND ".join(f"{column} = ?" for column, value in named if value is not None)
        columns = ", ".join(f"t.{column}" for column in _TASK.split(", "))
        rows = self._rows(
            f"SELECT {columns} FROM tasks t JOIN runs r USING (run_id)"  # noqa: S608
            f" WHERE {where or 'TRUE'} ORDER BY r.number DESC, t.posted",
            [value for _, value in named if value is not None],
        )
        return [_task_row(row) for row in rows]

    def runs(self, *, run_id: RunId | None = None, limit: int | None = None) -> list[RunRow]:
        """Return the runs, newest first."""
        rows = self._rows(
            f"SELECT {_RUN} FROM runs WHERE ? IS NULL OR run_id = ?"  # noqa: S608
            " ORDER BY number DESC LIMIT ?",
            (run_id, run_id, -1 if limit is None else limit),
        )
        return [_run_row(row) for row in rows]

    def counts(self) -> Mapping[Status, int]:
        """Return how many tasks are in each status."""
        rows = self._rows("SELECT status, count(*) FROM tasks GROUP BY status", ())
        return {Status(status): count for status, count in rows}

    def save_snapshot(self, snapshot: Snapshot) -> None:
        """Keep `snapshot` instead of an older one of the same run."""
        with self.exclusive():
            self._run(
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
            self._run("INSERT OR IGNORE INTO blobs VALUES (?, ?)", (digest, content))
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

    def _run(self, sql: str, values: Sequence[object] = ()) -> int:
        with self._translated():
            return self._db.execute(sql, values).rowcount

    @contextmanager
    def _translated(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            msg = f"the ledger {str(self._path)!r} cannot be used: {error}"
            raise StoreError(msg) from error


class _Writer:
    """The store inside one transaction; nobody else writes until it ends."""

    def __init__(self, store: SqliteStore, db: sqlite3.Connection) -> None:
        self.read = store.read
        self.find = store.find
        self._db = db

    def hold(self, run_id: RunId) -> None:
        """Do nothing: the whole file is held."""

    def append(self, chapters: Sequence[Chapter]) -> None:
        """Write all chapters and their index rows."""
        for chapter in chapters:
            self._move_head(chapter)
            self._write_pages(chapter.pages)
            self._index(chapter.rows)

    def _move_head(self, chapter: Chapter) -> None:
        last, at = chapter.pages[-1], _microseconds(chapter.at)
        if chapter.after:
            moved = self._db.execute(
                "UPDATE runs SET head = ?, digest = ?, changed_at = ?"
                " WHERE run_id = ? AND head = ?",
                (last.seq, last.digest, at, chapter.run_id, chapter.after),
            )
        else:
            moved = self._db.execute(
                "INSERT INTO runs (run_id, head, digest, trace_id, opened_at, changed_at)"
                " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (run_id) DO NOTHING",
                (chapter.run_id, last.seq, last.digest, last.trace_id, at, at),
            )
        if moved.rowcount != 1:
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

    def _index(self, rows: Sequence[TaskRow]) -> None:
        self._db.executemany(
            f"INSERT INTO tasks ({_TASK}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
            " ON CONFLICT (task_id, run_id) DO UPDATE"
            " SET status = excluded.status, due = excluded.due, changed = excluded.changed",
            map(_indexed, rows),
        )


def _indexed(row: TaskRow) -> tuple[object, ...]:
    due = None if row.due is None else _microseconds(row.due)
    named = (row.run_id, row.task_id, row.status.value, row.priority)
    return (*named, row.posted, row.executor, due, row.changed)


def _run_row(row: Sequence[Any]) -> RunRow:
    run_id, head, digest, trace_id, opened_at, changed_at = row
    return RunRow(run_id, head, digest, trace_id, _moment(opened_at), _moment(changed_at))


def _conditions(search: Search) -> list[tuple[str, tuple[object, ...]]]:
    """Return one condition for each index that answers a part of the search."""
    status, order = _KINDS[search.wanted]
    where, values = f"status = '{status}'", list[object]()
    if order == "due":
        where, values = f"{where} AND due <= ?", [_microseconds(search.now)]
    if search.run_id is not None:
        where, values = f"{where} AND run_id = ?", [*values, search.run_id]
    if search.executors is None:
        return [(f"{where} ORDER BY {order}", tuple(values))]
    names = dict.fromkeys(("", *search.executors))
    return [(f"{where} AND executor = ? ORDER BY {order}", (*values, name)) for name in names]


def _task_row(row: Sequence[Any]) -> TaskRow:
    run_id, task_id, status, priority, posted, executor, due, changed = row
    moment = None if due is None else _moment(due)
    return TaskRow(run_id, task_id, Status(status), priority, posted, executor, moment, changed)


def _microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def _moment(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)
