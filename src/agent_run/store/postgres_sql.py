"""What is asked of Postgres, on a connection that somebody lent us."""

import json
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import psycopg
from psycopg.pq import ExecStatus

from agent_run.contract.base import RunId
from agent_run.errors import SequenceTaken
from agent_run.ledger.pages import Page
from agent_run.ports.store import Chapter, Search, TaskRow
from agent_run.store.rows import BUSY, TASK, beyond_index, microseconds, set_apart, task_row

Connection: TypeAlias = psycopg.Connection[Any]

_MOST_LOCKED: Final = 32
"""Locks stand in a table of fixed size that the whole server shares."""
_UNLOCKED: Final = (
    "pg_try_advisory_xact_lock(hashint8extended(number, hashtext(current_schema())))"
)
_DONE: Final = frozenset({ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK})
_AS_JSON: Final = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode


def read(connection: Connection, run_id: RunId, after: int, limit: int | None) -> list[Page]:
    """Return the pages of a run, in order, from page `after` + 1 on."""
    rows = query(
        connection,
        "SELECT p.seq, p.task_id, p.kind, p.trace_id, CASE WHEN p.blob IS NULL THEN p.body"
        " ELSE coalesce((SELECT convert_from(b.content, 'UTF8') FROM blobs b"
        " WHERE b.digest = p.blob), '') END, p.digest"
        " FROM pages p WHERE p.run_id = %s AND p.seq > %s ORDER BY p.seq LIMIT %s",
        (run_id, after, limit),
    )
    return [Page(run_id, *row) for row in rows]


def find(connection: Connection, search: Search, *, locking: bool) -> list[TaskRow]:
    """Return open tasks; `locking` passes over those that others have locked."""
    tasks, values = _looked_for(search)
    if locking and search.limit <= _MOST_LOCKED:
        # The inner query is a fence: a task is locked only when its turn comes.
        sql = f"SELECT {TASK} FROM ({tasks} OFFSET 0) AS t WHERE {_UNLOCKED} LIMIT %s"  # noqa: S608
    else:
        sql = f"SELECT {TASK} FROM ({tasks} LIMIT %s) AS t"  # noqa: S608
    return [task_row(row) for row in query(connection, sql, (*values, search.limit))]


def _looked_for(search: Search) -> tuple[str, list[object]]:
    """Return a query for the tasks in question, in order, and its values."""
    chosen = f"SELECT number, {TASK} FROM tasks WHERE "  # noqa: S608
    executors = None if search.executors is None else list({"", *search.executors})
    scope, values = "", list[object]()
    if search.run_id is not None:
        scope, values = " AND run_id = %s", [search.run_id]
    if search.wanted != "ready":
        status, late = BUSY[search.wanted]
        if late:
            scope, values = f"{scope} AND due <= %s", [*values, microseconds(search.now)]
        if executors is not None:
            scope, values = f"{scope} AND executor = ANY(%s)", [*values, executors]
        return f"{chosen} status = '{status.value}'{scope} ORDER BY due, number", values
    order = " ORDER BY priority DESC, number"
    if executors is None:
        return f"{chosen} status = 'ready'{scope}{order}", values
    if search.run_id is not None:
        within = f"{chosen} status = 'ready'{scope} AND executor = ANY(%s){order}"
        return within, [*values, executors]
    # One sorted index scan for each executor, merged: none is read further than needed.
    each = f"({chosen} status = 'ready' AND executor = %s{order})"
    merged = " UNION ALL ".join([each] * len(executors))
    return f"SELECT * FROM ({merged}) AS each{order}", list(executors)  # noqa: S608


def append(connection: Connection, chapters: Sequence[Chapter]) -> None:
    """Write all chapters and their index rows, or say which page is taken."""
    heads, pages, fresh, moved = list[Any](), list[Any](), list[Any](), list[Any]()
    for chapter in chapters:
        heads.append(_head(chapter))
        pages += [_page(connection, page) for page in chapter.pages]
        for row in chapter.rows:
            (fresh if row.posted > chapter.after else moved).append(_row(row))
    values = [_AS_JSON(part) if part else None for part in (heads, pages, fresh, moved)]
    ((taken,),) = query(connection, "SELECT append_chapters(%s, %s, %s, %s)", values)
    if taken is not None:
        after = next(chapter.after for chapter in chapters if chapter.run_id == taken)
        msg = f"page {after + 1} of run {taken!r} is taken"
        raise SequenceTaken(msg)


def _head(chapter: Chapter) -> dict[str, object]:
    return {
        "run_id": chapter.run_id,
        "after": chapter.after,
        "trace_id": chapter.pages[0].trace_id,
        "at": microseconds(chapter.at),
        "untasked": beyond_index(chapter),
    }


def _page(connection: Connection, page: Page) -> dict[str, object]:
    body, blob, apart = page.body, None, set_apart(page)
    if apart:
        body, blob = "", apart[0]
        keep_blob(connection, *apart)
    return {
        "run_id": page.run_id,
        "seq": page.seq,
        "task_id": page.task_id,
        "kind": page.kind,
        "trace_id": page.trace_id,
        "body": body,
        "blob": blob,
        "digest": page.digest,
    }


def _row(row: TaskRow) -> dict[str, object]:
    return {
        "run_id": row.run_id,
        "task_id": row.task_id,
        "status": row.status.value,
        "priority": row.priority,
        "posted": row.posted,
        "executor": row.executor,
        "due": None if row.due is None else microseconds(row.due),
        "changed": row.changed,
    }


def keep_blob(connection: Connection, digest: str, content: bytes) -> None:
    """Keep `content` under its digest, once."""
    connection.execute(
        b"INSERT INTO blobs VALUES (%s, %b) ON CONFLICT (digest) DO NOTHING", (digest, content)
    )


def query(connection: Connection, sql: str, values: Sequence[object]) -> list[Any]:
    """Return all rows that `sql` gives."""
    return connection.execute(sql.encode(), values, prepare=True).fetchall()


def order(connection: Connection, words: bytes, *values: str) -> None:
    """Run what gives no rows, straight through libpq: a third of the cost of a cursor."""
    wire = connection.pgconn
    if values:
        done = wire.exec_params(words, [value.encode() for value in values])
    else:
        done = wire.exec_(words)
    if done.status not in _DONE:
        raise psycopg.errors.error_from_result(done)
    if words == b"COMMIT" and done.command_status != words:
        msg = "the transaction had failed and was not committed"
        raise psycopg.DatabaseError(msg)
