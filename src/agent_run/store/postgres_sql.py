"""What is asked of Postgres, on a session that somebody lent us."""

import json
from collections.abc import Sequence
from typing import Any, Final

from agent_run.contract.base import RunId
from agent_run.ledger.pages import Entry, Page
from agent_run.ports.store import Chapter, Search, TaskRow
from agent_run.store.rows import BUSY, TASK, beyond_index, microseconds, set_apart, task_row
from agent_run.store.session import NUMBER, TEXT, Kind, Session, Value

AS_TASK: Final[Sequence[Kind]] = (TEXT, TEXT, TEXT, NUMBER, NUMBER, TEXT, NUMBER, NUMBER)
"""How the columns of `TASK` are read."""
TAKEN: Final = "AR001"
"""What the database answers when another wrote the page first."""

_AS_PAGE: Final[Sequence[Kind]] = (NUMBER, TEXT, TEXT, TEXT, TEXT, TEXT)
_AS_ENTRY: Final[Sequence[Kind]] = (NUMBER, TEXT, TEXT, TEXT)
_BODY: Final = (
    "CASE WHEN p.blob IS NULL THEN p.body"
    " ELSE coalesce((SELECT convert_from(b.content, 'UTF8') FROM blobs b"
    " WHERE b.digest = p.blob), '') END"
)
_OF_A_RUN: Final = "FROM pages p WHERE p.run_id = $1 AND p.seq > $2 ORDER BY p.seq LIMIT $3"
_READ: Final = f"SELECT p.seq, p.task_id, p.kind, p.trace_id, {_BODY}, p.digest {_OF_A_RUN}"
_ENTRIES: Final = f"SELECT p.seq, p.task_id, p.kind, {_BODY} {_OF_A_RUN}"
_APPEND: Final = (
    "SELECT append_chapter("
    "c.book, c.after, c.trace, c.at, c.beyond, c.written, c.fresh, c.moved)"
    " FROM json_to_recordset($1) AS c(book text, after bigint, trace text, at bigint,"
    " beyond bigint, written json, fresh json, moved json)"
)
_MOST_LOCKED: Final = 32
"""Locks stand in a table of fixed size that the whole server shares."""
_UNLOCKED: Final = (
    "pg_try_advisory_xact_lock(hashint8extended(number, hashtext(current_schema())))"
)
_AS_JSON: Final = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode


def read(session: Session, run_id: RunId, after: int, limit: int | None) -> list[Page]:
    """Return the pages of a run, in order, from page `after` + 1 on."""
    rows = session.ask(_READ, (run_id, after, limit), _AS_PAGE)
    return [Page(run_id, *row) for row in rows]


def entries(session: Session, run_id: RunId, after: int, limit: int) -> list[Entry]:
    """Return what stands on the pages that `read` returns, without trace and digest."""
    rows = session.ask(_ENTRIES, (run_id, after, limit), _AS_ENTRY)
    return [(seq, task_id, kind, body) for seq, task_id, kind, body in rows]


def find(session: Session, search: Search, *, locking: bool) -> list[TaskRow]:
    """Return open tasks; `locking` passes over those that others have locked."""
    tasks, values = looked_for(search)
    limit = f"LIMIT ${len(values) + 1}"
    if not locking or search.limit > _MOST_LOCKED:
        sql = f"SELECT {TASK} FROM ({tasks} {limit}) AS t"  # noqa: S608
        return [task_row(row) for row in session.ask(sql, (*values, search.limit), AS_TASK)]
    # The inner query is a fence: a task is locked only when its turn comes.
    sql = f"SELECT {TASK} FROM ({tasks} OFFSET 0) AS t WHERE {_UNLOCKED} {limit}"  # noqa: S608
    while True:
        rows = [task_row(row) for row in session.ask(sql, (*values, search.limit), AS_TASK)]
        # Who held the lock may have let go of it after this query began to look: then the
        # row is of before. Under the lock it is looked at again, and does not change any more.
        if all(_unchanged(session, row) for row in rows):
            return rows


def _unchanged(session: Session, row: TaskRow) -> bool:
    found = session.ask(
        "SELECT changed FROM tasks WHERE task_id = $1 AND run_id = $2",
        (row.task_id, row.run_id),
        (NUMBER,),
    )
    return [tuple(one) for one in found] == [(row.changed,)]


def looked_for(search: Search) -> tuple[str, list[Value]]:
    """Return a query for the tasks in question, in order, and its values."""
    names = None if search.executors is None else list(dict.fromkeys(("", *search.executors)))
    values, scope = list[Value](), ""
    if search.run_id is not None:
        values.append(search.run_id)
        scope = f" AND run_id = ${len(values)}"
    order = "priority DESC, number"
    status = "ready"
    if search.wanted != "ready":
        status, late = BUSY[search.wanted]
        order = "due, number"
        if late:
            values.append(microseconds(search.now))
            scope += f" AND due <= ${len(values)}"
    elif names is not None and search.run_id is None:
        # One sorted index scan for each executor, merged: none is read further than needed.
        each = [_chosen("ready", f" AND executor = ${n + 1}", order) for n in range(len(names))]
        merged = " UNION ALL ".join(f"({query})" for query in each)
        return f"SELECT * FROM ({merged}) AS each ORDER BY {order}", list(names)  # noqa: S608
    if names is not None:
        numbers = range(len(values) + 1, len(values) + len(names) + 1)
        scope += f" AND executor IN ({', '.join(f'${number}' for number in numbers)})"
        values += names
    return _chosen(status, scope, order), values


def _chosen(status: str, scope: str, order: str) -> str:
    return f"SELECT number, {TASK} FROM tasks WHERE status = '{status}'{scope} ORDER BY {order}"  # noqa: S608


def append(session: Session, chapters: Sequence[Chapter]) -> None:
    """Write all chapters and their index rows in one round trip, all or none.

    In one order for everybody, so that no two writers wait for each other.
    """
    in_order = sorted(chapters, key=lambda chapter: chapter.run_id)
    session.tell(_APPEND, _AS_JSON([_chapter(session, chapter) for chapter in in_order]))


def keep_blob(session: Session, digest: str, content: bytes) -> None:
    """Keep `content` under its digest, once."""
    session.execute(
        b"INSERT INTO blobs VALUES (%s, %b) ON CONFLICT (digest) DO NOTHING", (digest, content)
    )


def _chapter(session: Session, chapter: Chapter) -> dict[str, Any]:
    fresh = [_fresh(row) for row in chapter.rows if row.posted > chapter.after]
    moved = [_moved(row) for row in chapter.rows if row.posted <= chapter.after]
    return {
        "book": chapter.run_id,
        "after": chapter.after,
        "trace": chapter.pages[0].trace_id,
        "at": microseconds(chapter.at),
        "beyond": beyond_index(chapter),
        "written": [_page(session, page) for page in chapter.pages],
        "fresh": fresh or None,
        "moved": moved or None,
    }


def _page(session: Session, page: Page) -> dict[str, Any]:
    body, blob, apart = page.body, None, set_apart(page)
    if apart:
        body, blob = "", apart[0]
        keep_blob(session, *apart)
    return {
        "seq": page.seq,
        "task_id": page.task_id,
        "kind": page.kind,
        "trace_id": page.trace_id,
        "body": body,
        "blob": blob,
        "digest": page.digest,
    }


def _moved(row: TaskRow) -> dict[str, Any]:
    return {
        "task_id": row.task_id,
        "status": row.status.value,
        "due": None if row.due is None else microseconds(row.due),
        "changed": row.changed,
    }


def _fresh(row: TaskRow) -> dict[str, Any]:
    return {
        **_moved(row),
        "priority": row.priority,
        "posted": row.posted,
        "executor": row.executor,
    }
