"""The ledger in Postgres: for several machines, or for an operator who has one already.

One call writes all chapters of a commit, so a commit costs one round trip. Locks are
advisory: claimers lock tasks and writers lock runs, never each other's rows.
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
from agent_run.ledger.pages import Entry, Page
from agent_run.ledger.state import Status
from agent_run.ports.store import Chapter, RunRow, Search, Snapshot, TaskRow
from agent_run.store.listener import Listener
from agent_run.store.migrations import POSTGRES
from agent_run.store.postgres_sql import AS_TASK, TAKEN, append, entries, find, keep_blob, read
from agent_run.store.rows import TASK, moment_of, set_apart, task_row
from agent_run.store.session import NUMBER, TEXT, Kind, Session, Value

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
    SET enable_hashjoin = off;
    SET enable_mergejoin = off;
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
            with self._connect() as session:
                self._prepare(session)
        except psycopg.Error as error:
            msg = f"the ledger {self._name!r} cannot be opened: {self._said(error)}"
            raise StoreError(msg) from error
        self._pool = ConnectionPool(
            "",
            connection_class=Session,
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
        with self.lent() as session:
            return read(session, run_id, after, limit)

    def entries(self, run_id: RunId, *, after: int, limit: int) -> list[Entry]:
        """Return what stands on the pages that `read` returns, without trace and digest."""
        with self.lent() as session:
            return entries(session, run_id, after, limit)

    def find(self, search: Search) -> list[TaskRow]:
        """Return open tasks, most urgent first: priority, then order of posting."""
        with self.lent() as session:
            return find(session, search, locking=False)

    def append(self, chapters: Sequence[Chapter]) -> None:
        """Write all chapters in one transaction of their own, all or none."""
        if any(set_apart(page) for chapter in chapters for page in chapter.pages):
            with self.exclusive() as writer:
                writer.append(chapters)
            return
        with self.lent(writing=True) as session:
            append(session, chapters)

    def exclusive(self) -> "_Transaction":
        """Begin a transaction that finds, reads and writes in one step."""
        return _Transaction(self)

    def tasks(self, *, task_id: TaskId | None = None) -> list[TaskRow]:
        """Return index rows, the task posted last first."""
        rows = self._rows(
            f"SELECT {TASK} FROM tasks"  # noqa: S608
            f" {'' if task_id is None else 'WHERE task_id = $1'} ORDER BY number DESC",
            () if task_id is None else (task_id,),
            AS_TASK,
        )
        return [task_row(row) for row in rows]

    def runs(self, *, run_id: RunId | None = None, limit: int | None = None) -> list[RunRow]:
        """Return the runs, newest first."""
        rows = self._rows(
            "SELECT run_id, trace_id, opened_at FROM runs"
            " WHERE $1::text IS NULL OR run_id = $1"
            " ORDER BY opened_at DESC, run_id LIMIT $2",
            (run_id, limit),
            (TEXT, TEXT, NUMBER),
        )
        return [RunRow(name, trace, moment_of(at)) for name, trace, at in rows]

    def heads(self) -> Mapping[RunId, int]:
        """Return the newest page of each run, as the index has it."""
        rows = self._rows(
            "SELECT run_id, max(page) FROM (SELECT run_id, changed AS page FROM tasks"
            " UNION ALL SELECT run_id, untasked FROM runs) AS known GROUP BY run_id",
            (),
            (TEXT, NUMBER),
        )
        return dict(rows)

    def counts(self) -> Mapping[Status, int]:
        """Return how many tasks are in each status."""
        rows = self._rows(
            "SELECT status, count(*) FROM tasks GROUP BY status", (), (TEXT, NUMBER)
        )
        return {Status(status): count for status, count in rows}

    def save_snapshot(self, snapshot: Snapshot) -> None:
        """Keep `snapshot` instead of an older one of the same run."""
        with self.lent(writing=True) as session:
            session.execute(
                "INSERT INTO snapshots VALUES (%s, %s, %s, %s) ON CONFLICT (run_id) DO UPDATE"
                " SET seq = excluded.seq, digest = excluded.digest, body = excluded.body"
                " WHERE excluded.seq > snapshots.seq",
                (snapshot.run_id, snapshot.seq, snapshot.digest, snapshot.body),
            )

    def snapshot(self, run_id: RunId) -> Snapshot | None:
        """Return the newest snapshot of the run, if there is one."""
        with self.lent() as session:
            found = session.execute(
                "SELECT * FROM snapshots WHERE run_id = %s", (run_id,), binary=True
            ).fetchone()
        return Snapshot(*found) if found else None

    def put_blob(self, content: bytes) -> str:
        """Keep `content` and return its SHA-256; keeping it twice keeps it once."""
        digest = hashlib.sha256(content).hexdigest()
        with self.lent(writing=True) as session:
            keep_blob(session, digest, content)
        return digest

    def blob(self, digest: str) -> bytes | None:
        """Return what was kept under `digest`, if anything was."""
        with self.lent() as session:
            found = session.execute(
                "SELECT content FROM blobs WHERE digest = %s", (digest,), binary=True
            ).fetchone()
        return bytes(found[0]) if found else None

    def skew(self, now: datetime) -> timedelta:
        """Return how far the server's clock is ahead of `now`."""
        ((there,),) = self._rows(
            "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint", (), (NUMBER,)
        )
        return moment_of(there) - now

    def wait(self, timeout: timedelta) -> bool:
        """Wait until something may have been written, or until `timeout`."""
        try:
            return self._listener.wait(timeout)
        except psycopg.Error as error:
            raise self.unusable(error) from error

    def close(self) -> None:
        """Let go of all sessions."""
        self._listener.close()
        self._pool.close()

    @contextmanager
    def lent(self, *, writing: bool = False) -> Generator[Session]:
        """Lend a session, and tell the user what is wrong with it if anything is."""
        try:
            session = self._pool.getconn()
        except psycopg.Error as error:
            raise self.unusable(error) from error
        try:
            yield session
        except (psycopg.Error, UnicodeError) as error:
            raise self.unusable(error, in_doubt=writing and session.broken) from error
        finally:
            self.give_back(session)

    def borrow(self) -> Session:
        """Return a session, to be given back."""
        try:
            return self._pool.getconn()
        except psycopg.Error as error:
            raise self.unusable(error) from error

    def give_back(self, session: Session) -> None:
        """Return a borrowed session; when it is broken, so may be the others."""
        broken = session.broken
        self._pool.putconn(session)
        if broken:
            self._pool.check()

    def unusable(self, error: Exception, *, in_doubt: bool = False) -> StoreError:
        """Return what to tell the user about an error of the database itself."""
        if getattr(error, "sqlstate", None) == TAKEN:
            return SequenceTaken(self._said(error))
        if isinstance(error, psycopg.errors.DeadlockDetected):
            # Nothing was written, and reading again is the answer, as for a taken page.
            return SequenceTaken(f"another writer came first: {self._said(error)}")
        doubt = "; whether the last pages were written shows when it is read again"
        return StoreError(
            f"the ledger {self._name!r} cannot be used: {self._said(error)}"
            f"{doubt if in_doubt else ''}"
        )

    def _rows(
        self, sql: str, values: Sequence[Value], kinds: Sequence[Kind]
    ) -> list[list[Any]]:
        with self.lent() as session:
            return session.ask(sql, values, kinds)

    def _connect(self) -> Session:
        session = Session.connect("", **self._connect_with, autocommit=True)
        _configure(session)
        return session

    def _said(self, error: Exception) -> str:
        told = getattr(getattr(error, "diag", None), "message_primary", None) or str(error)
        sentence = told.strip().split("\n")[0] or type(error).__name__
        return sentence.replace(self._secret, "***") if self._secret else sentence

    def _prepare(self, session: Session) -> None:
        known = len(POSTGRES)
        with session.transaction():
            session.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATING,))
            session.execute("CREATE TABLE IF NOT EXISTS schema_steps (version bigint)")
            ((version,),) = session.execute(
                "SELECT coalesce(max(version), 0) FROM schema_steps"
            ).fetchall()
            if version > known:
                msg = f"it was written by a newer agent-run (schema {version}, known {known})"
                raise psycopg.DatabaseError(msg)
            for number, step in enumerate(POSTGRES[version:], start=version + 1):
                session.execute(step.encode())
                session.execute("INSERT INTO schema_steps VALUES (%s)", (number,))


class _Transaction:
    """The store inside one transaction; nobody else writes to the runs that it holds."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self._db: Session

    def __enter__(self) -> Self:
        self._db = self._store.borrow()
        try:
            self._db.order(b"BEGIN")
        except psycopg.Error as error:
            self._store.give_back(self._db)
            raise self._store.unusable(error) from error
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                self._db.order(b"COMMIT")
            elif not self._db.broken:
                self._db.order(b"ROLLBACK")
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
        self._db.tell("SELECT hold_run($1)", run_id)

    def append(self, chapters: Sequence[Chapter]) -> None:
        """Write all chapters and their index rows, all or none."""
        try:
            append(self._db, chapters)
        except psycopg.Error as error:
            raise self._store.unusable(error) from error


def _configure(session: Session) -> None:
    session.execute(_SESSION.encode())


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
