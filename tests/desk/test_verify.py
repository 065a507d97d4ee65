"""`verify` on both stores, against someone who can write to the database by other means."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Final

import psycopg
import pytest

from agent_run.desk import Desk
from agent_run.ledger.commands import Claim, WriteNote
from agent_run.ports.store import Store
from tests.support.stores import judge, open_desk, post, submit

CHANGED: Final = "UPDATE pages SET body = replace(body, 'bob', 'eve') WHERE seq = 2"
OTHER_TASK: Final = "UPDATE pages SET task_id = 'u' WHERE seq = 2"
MISSING: Final = "DELETE FROM pages WHERE seq = 3"
CUT: Final = "DELETE FROM pages WHERE seq >= 4"
GONE: Final = "DELETE FROM pages WHERE seq > 0"
FIRST_GONE: Final = "DELETE FROM pages WHERE seq = 1"
BLOB: Final = "DELETE FROM blobs"
REORDERED: Final = (
    "UPDATE pages SET seq = 99 WHERE seq = 2; UPDATE pages SET seq = 2 WHERE seq = 3;"
    "UPDATE pages SET seq = 3 WHERE seq = 99"
)
ADDED: Final = (
    "INSERT INTO pages SELECT run_id, 6, task_id, kind, trace_id, body, blob, digest"
    " FROM pages WHERE seq = 5"
)


@pytest.fixture
def desk(store: Store) -> Desk:
    desk = open_desk(store)
    desk.handle("r", post("t"), Claim(task_id="t", owner="bob"))
    desk.handle("r", submit("t", 2))
    desk.handle("r", judge("t"))
    desk.handle("r", WriteNote(actor="ann", topic="the end", body="x" * 40_000, task_id="t"))
    desk.handle("other", post("t"))
    return desk


@pytest.fixture
def tamper(address: str) -> Callable[[str], None]:
    """Return a way to write to the database past the store and its triggers."""

    def write(sql: str) -> None:
        if address.startswith("postgresql://"):
            with psycopg.connect(address, autocommit=True) as connection:
                connection.execute(b"ALTER TABLE pages DISABLE TRIGGER USER")
                connection.execute(sql.encode())
            return
        with closing(sqlite3.connect(address)) as db:
            db.execute("DROP TRIGGER pages_are_never_changed")
            db.execute("DROP TRIGGER pages_are_never_removed")
            db.executescript(sql)

    return write


def test_an_honest_ledger_has_nothing_to_say(desk: Desk) -> None:
    assert list(desk.verify()) == []


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (CHANGED, "2 does not follow from the page before it"),
        (OTHER_TASK, "2 is filed under another task"),
        (MISSING, "3 page 3 is missing"),
        (FIRST_GONE, "1 page 1 is missing"),
        (REORDERED, "2 does not follow from the page before it"),
        (CUT, "4 the pages up to 5 are missing"),
        (GONE, "1 the pages up to 5 are missing"),
        (ADDED, "6 does not follow from the page before it"),
        (BLOB, "5 does not follow from the page before it"),
    ],
    ids=["changed", "task", "missing", "first", "order", "cut", "gone", "added", "blob"],
)
def test_what_was_done_behind_our_back_is_found(
    desk: Desk, tamper: Callable[[str], None], sql: str, expected: str
) -> None:
    tamper(sql if sql == BLOB else sql.replace("WHERE ", "WHERE run_id = 'r' AND "))

    found = list(desk.verify())

    assert f"{found[0].seq} {found[0].problem}" == expected
    assert list(desk.verify("other"))[1:] == []
    assert {broken.run_id for broken in desk.verify("r")} == {"r"}


def test_the_last_page_about_a_task_is_missed_too(
    desk: Desk, tamper: Callable[[str], None]
) -> None:
    tamper("DELETE FROM pages WHERE run_id = 'r' AND seq = 5")

    (broken,) = desk.verify("r")

    assert broken.problem == "the pages up to 5 are missing"
