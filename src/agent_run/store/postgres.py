"""The ledger in Postgres: for several machines, or for an operator who has one already.

One call of one function in the database writes a whole chapter, so a commit costs one round
trip. Locks are advisory and taken in one order: first the run, then its rows.
"""

import hashlib
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Final, Self

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool

from agent_run.contract.base import RunId, TaskId
from agent_run.errors import SequenceTaken, StoreError
from agent_run.ledger.pages import Page
from agent_run.ledger.state import Status
from agent_run.ports.store import Chapter, RunRow, Search, Snapshot, TaskRow
from agent_run.store.listener import Listener
from agent_run.store.migrations import POSTGRES
from agent_run.store.postgres_sql import (
    Connection,
    append,
    find,
    keep_blob,
    order,
    query,
    read,
)
from agent_run.store.rows import TASK, moment_of, set_apart, task_row

_MOST_CONNECTIONS: Final = 8
_PATIENCE: Final = 30.0
"""Seconds until a server that does not answer is reported."""
_MIGRATING: Final = 7_236_912_644_001
_SESSION: Final = """
    SELECT set_config('synchronous_commit', 'on', false)
        WHERE current_setting('synchronous_commit') = 'off';
    SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED;
    SET lock_timeout = '60s';
    SET idle_in_transaction_session_timeout = '60s';
    SET plan_cache_mode = force_generic_plan;
    SET enable_seqscan = off;
    SET enable_bitmapscan = off;
    SET jit = off;
    SET client_min_messages = warning;
"""
"""Durable whatever the server's default is; nobody waits for ever for a stopped process; and
one plan for all sizes, because a plan made for an empty table is slow on a full one."""
_KEEPALIVE: Final = {
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "connect_timeout": 10,
}


class PostgresStore:
    """Pages, index, blobs and snapshots in one schema of a Postgres database."""

    def __init__(self, url: str) -> None:
        self._connect_with, self._name, self._secret = _address(url)
        try:
            with self._connect() as connection:
                self._prepare(connection)
        except psycopg.Error as error:
            msg = f"the ledger {self._name!r} cannot be opened: {self._said(error)}"
            raise StoreError(msg) from error
        self._pool = ConnectionPool(
            "",
            kwargs={**self._connect_with, "autocommit": True},
            configure=_configure,
            min_size=1,
            max_size=_MOST_CONNECTIONS,
            timeout=_PATIENCE,
            num_workers=1,
            open=True,
        )
        self._listener = Listener(self._connect)

    def read(self, run_id: RunId, *, after: int = 0, limit: int | None = None) -> list[Page]:
        """Return the pages of a run, in order, from page `after` + 1 on."""
        with self.lent() as connection:
            return read(connection, run_id, after, limit)

    def find(self, search: Search) -> list[TaskRow]:
        """Return open tasks, most urgent first: priority, then order of posting."""
        with self.lent() as connection:
            return find(connection, search, locking=False)

    def append(self, chapters: Sequence[Chapter]) -> None:
        """Write all chapters in one transaction of their own, all or none."""
        if any(set_apart(page) for chapter in chapters for page in chapter.pages):
            with self.exclusive() as writer:
                writer.append(chapters)
            return
        with self.lent(writing=True) as connection:
            append(connection, chapters)

    def exclusive(self) -> "_Transaction":
        """Begin a transaction that finds, reads and writes in one step."""
        return _Transaction(self)

    def tasks(self, *, task_id: TaskId | None = None) -> list[TaskRow]:
        """Return index rows, the task posted last first."""
        rows = self._rows(
            f"SELECT {TASK} FROM tasks"  # noqa: S608
            f" {'' if task_id is None else 'WHERE task_id = %s'} ORDER BY number DESC",
            () if task_id is None else (task_id,),
        )
        return [task_row(row) for row in rows]

    def runs(self, *, run_id: RunId | None = None, limit: int | None = None) -> list[RunRow]:
        """Return the runs, newest first."""
        rows = self._rows(
            "SELECT run_id, trace_id, opened_at FROM runs"
            " WHERE %s::text IS NULL OR run_id = %s"
            " ORDER BY opened_at DESC, run_id LIMIT %s",
            (run_id, run_id, limit),
        )
        return [RunRow(name, trace, moment_of(at)) for name, trace, at in rows]

    def heads(self) -> Mapping[RunId, int]:
        """Return the newest page of each run, as the index has it."""
        rows = self._rows(
            "SELECT run_id, max(page) FROM (SELECT run_id, changed AS page FROM tasks"
            " UNION ALL SELECT run_id, untasked FROM runs) AS known GROUP BY run_id",
            (),
        )
        return dict(rows)

    def counts(self) -> Mapping[Status, int]:
        """Return how many tasks are in each status."""
        rows = self._rows("SELECT status, count(*) FROM tasks GROUP BY status", ())
        return {Status(status): count for status, count in rows}

    def save_snapshot(self, snapshot: Snapshot) -> None:
        """Keep `snapshot` instead of an older one of the same run."""
        with self.lent(writing=True) as connection:
            connection.execute(
                "INSERT INTO snapshots VALUES (%s, %s, %s, %s) ON CONFLICT (run_id) DO UPDATE"
                " SET seq = excluded.seq, digest = excluded.digest, body = excluded.body"
                " WHERE excluded.seq > snapshots.seq",
                (snapshot.run_id, snapshot.seq, snapshot.digest, snapshot.body),
            )

    def snapshot(self, run_id: RunId) -> Snapshot | None:
        """Return the newest snapshot of the run, if there is one."""
        rows = self._rows("SELECT * FROM snapshots WHERE run_id = %s", (run_id,))
        return Snapshot(*rows[0]) if rows else None

    def put_blob(self, content: bytes) -> str:
        """Keep `content` and return its SHA-256; keeping it twice keeps it once."""
        digest = hashlib.sha256(content).hexdigest()
        with self.lent(writing=True) as connection:
            keep_blob(connection, digest, content)
        return digest

    def blob(self, digest: str) -> bytes | None:
        """Return what was kept under `digest`, if anything was."""
        rows = self._rows("SELECT content FROM blobs WHERE digest = %s", (digest,))
        return bytes(rows[0][0]) if rows else None

    def skew(self, now: datetime) -> timedelta:
        """Return how far the server's clock is ahead of `now`."""
        ((there,),) = self._rows(
            "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint", ()
        )
        return moment_of(there) - now

    def wait(self, timeout: timedelta) -> bool:
        """Wait until something may have been written, or until `timeout`."""
        try:
            return self._listener.wait(timeout)
        except psycopg.Error as error:
            raise self.unusable(error) from error

    def close(self) -> None:
        """Let go of all connections."""
        self._listener.close()
        self._pool.close()

    @contextmanager
    def lent(self, *, writing: bool = False) -> Generator[Connection]:
        """Lend a connection, and tell the user what is wrong with it if anything is."""
        try:
            connection = self._pool.getconn()
        except psycopg.Error as error:
            raise self.unusable(error) from error
        try:
            yield connection
        except (psycopg.Error, UnicodeError) as error:
            raise self.unusable(error, in_doubt=writing and connection.broken) from error
        finally:
            self.give_back(connection)

    def borrow(self) -> Connection:
        """Return a connection, to be given back."""
        try:
            return self._pool.getconn()
        except psycopg.Error as error:
            raise self.unusable(error) from error

    def give_back(self, connection: Connection) -> None:
        """Return a borrowed connection; when it is broken, so may be the others."""
        broken = connection.broken
        self._pool.putconn(connection)
        if broken:
            self._pool.check()

    def unusable(self, error: Exception, *, in_doubt: bool = False) -> StoreError:
        """Return what to tell the user about an error of the database itself."""
        if isinstance(error, psycopg.errors.DeadlockDetected):
            # Nothing was written, and reading again is the answer, as for a taken page.
            return SequenceTaken(f"another writer came first: {self._said(error)}")
        doubt = "; whether the last pages were written shows when it is read again"
        return StoreError(
            f"the ledger {self._name!r} cannot be used: {self._said(error)}"
            f"{doubt if in_doubt else ''}"
        )

    def _rows(self, sql: str, values: Sequence[object]) -> list[Any]:
        with self.lent() as connection:
            return query(connection, sql, values)

    def _connect(self) -> Connection:
        connection = psycopg.connect("", **self._connect_with, autocommit=True)
        _configure(connection)
        return connection

    def _said(self, error: Exception) -> str:
        told = getattr(getattr(error, "diag", None), "message_primary", None) or str(error)
        sentence = told.strip().split("\n")[0] or type(error).__name__
        return sentence.replace(self._secret, "***") if self._secret else sentence

    def _prepare(self, connection: Connection) -> None:
        known = len(POSTGRES)
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATING,))
            connection.execute("CREATE TABLE IF NOT EXISTS schema_steps (version bigint)")
            ((version,),) = query(
                connection, "SELECT coalesce(max(version), 0) FROM schema_steps", ()
            )
            if version > known:
                msg = f"it was written by a newer agent-run (schema {version}, known {known})"
                raise psycopg.DatabaseError(msg)
            for number, step in enumerate(POSTGRES[version:], start=version + 1):
                connection.execute(step.encode())
                connection.execute("INSERT INTO schema_steps VALUES (%s)", (number,))


class _Transaction:
    """The store inside one transaction; nobody else writes to the runs that it holds."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self._db: Connection

    def __enter__(self) -> Self:
        self._db = self._store.borrow()
        try:
            order(self._db, b"BEGIN")
        except psycopg.Error as error:
            self._store.give_back(self._db)
            raise self._store.unusable(error) from error
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                order(self._db, b"COMMIT")
            elif not self._db.broken:
                order(self._db, b"ROLLBACK")
        except psycopg.Error as fault:
            raise self._store.unusable(fault, in_doubt=error is None) from fault
        finally:
            self._store.give_back(self._db)
        if isinstance(error, psycopg.Error | UnicodeError):
            raise self._store.unusable(error) from error

    def read(self, run_id: RunId, *, after: int = 0, limit: int | None = None) -> list[Page]:
        """Return the pages of a run, in order, from page `after` + 1 on."""
        return read(self._db, run_id, after, limit)

    def find(self, search: Search) -> list[TaskRow]:
        """Return open tasks that nobody else has found and not yet let go of."""
        return find(self._db, search, locking=True)

    def hold(self, run_id: RunId) -> None:
        """Wait until no other writer holds the run, and keep others out until the end."""
        order(self._db, b"SELECT hold_run($1)", run_id)

    def append(self, chapters: Sequence[Chapter]) -> None:
        """Write all chapters and their index rows, all or none."""
        append(self._db, chapters)


def _configure(connection: Connection) -> None:
    connection.execute(_SESSION.encode())


def _address(url: str) -> tuple[dict[str, Any], str, str]:
    """Return how to connect, how to call the ledger in public, and what to keep secret."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error:
        # Not `from error`: what could not be read may hold the password.
        msg = "the address of the ledger cannot be read, expected postgresql://user@host/name"
        raise StoreError(msg) from None
    place = f"{parts.get('host') or 'localhost'}"
    name = f"postgresql://{place}/{parts.get('dbname') or ''}"
    return {**_KEEPALIVE, **parts}, name, str(parts.get("password") or "")
