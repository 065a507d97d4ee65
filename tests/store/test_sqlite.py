"""What only a ledger in a file can suffer, and the plans behind its speed."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agent_run.errors import StoreError
from agent_run.ports.store import Search, Wanted
from agent_run.store.migrations import SQLITE
from agent_run.store.sqlite import SqliteStore
from tests.support.stores import NOON, chapter, failures_of_many, row


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def full(path: Path) -> Iterator[SqliteStore]:
    """A ledger with a thousand ready tasks, and some of each other kind."""
    store = SqliteStore(path)
    names = [f"r{number}" for number in range(1_000)]
    store.append(
        [
            chapter(name, rows=(row(name, "t", executor=("", "codex", "person")[n % 3]),))
            for n, name in enumerate(names)
        ]
    )
    yield store
    store.close()


@pytest.mark.parametrize("content", [b"not a ledger at all, but a letter" * 40, b"\0" * 4096])
def test_a_file_that_is_no_ledger_is_named(path: Path, content: bytes) -> None:
    path.write_bytes(content)

    with pytest.raises(StoreError, match=r"the ledger '.*' cannot be opened: file is"):
        SqliteStore(path)

    assert path.read_bytes() == content


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"cannot be opened: .*No such file"):
        SqliteStore(tmp_path / "nowhere" / "ledger.db")


def test_a_folder_that_may_not_be_written_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    said = _in_a_process(
        """
        import os, pathlib
        if os.geteuid() == 0:
            os.chdir(sys.argv[1])
            os.seteuid(65534)
        try:
            SqliteStore(pathlib.Path("ledger.db") if os.geteuid() == 65534
                        else pathlib.Path(sys.argv[1]) / "ledger.db")
        except StoreError as error:
            print(error)
        """,
        tmp_path,
    )

    assert "ledger.db' cannot be opened: [Errno 13] Permission denied" in said


def test_a_full_disk_refuses_the_page_and_spoils_nothing(path: Path) -> None:
    said = _in_a_process(
        """
        import pathlib, resource
        store = SqliteStore(pathlib.Path(sys.argv[1]))
        store.append([chapter("r", 2)])
        size = pathlib.Path(sys.argv[1] + "-wal").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 8192, resource.RLIM_INFINITY))
        try:
            store.append([chapter("r", 2000, after=2)])
        except StoreError as error:
            print(error)
        print(len(store.read("r")), "pages")
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        store.append([chapter("r", after=2)])
        print(len(store.read("r")), "pages")
        """,
        path,
    )

    assert f"the ledger {str(path)!r} cannot be used: " in said
    assert "2 pages\n3 pages" in said


def test_a_ledger_of_a_newer_version_is_left_alone(path: Path) -> None:
    SqliteStore(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 999")

    with pytest.raises(StoreError, match=r"written by a newer agent-run \(schema 999, known"):
        SqliteStore(path)


@pytest.mark.parametrize("version", range(len(SQLITE) + 1))
def test_every_earlier_version_is_brought_up_to_date(path: Path, version: int) -> None:
    with closing(sqlite3.connect(path)) as db:
        for number, step in enumerate(SQLITE[:version], start=1):
            db.executescript(f"BEGIN;{step}PRAGMA user_version = {number};COMMIT;")

    with closing(SqliteStore(path)) as store:
        store.append([chapter("r", rows=(row("r", "t"),))])

        assert len(store.read("r")) == 1
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (len(SQLITE),)


def test_a_new_ledger_may_be_opened_by_many_at_once(path: Path) -> None:
    assert failures_of_many(lambda: SqliteStore(path).close(), at_once=8) == []


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE pages SET body = '{}'",
        "DELETE FROM pages",
        "UPDATE blobs SET content = x'00'",
    ],
)
def test_nothing_written_is_changed_or_removed(path: Path, sql: str) -> None:
    with closing(SqliteStore(path)) as store:
        store.append([chapter("r", 2)])
        store.put_blob(b"x")
        before = store.read("r")

        with closing(sqlite3.connect(path)) as db, pytest.raises(sqlite3.Error):
            db.execute(sql)

        assert store.read("r") == before


def test_pages_are_safe_before_they_are_acknowledged(path: Path) -> None:
    with closing(SqliteStore(path)) as store:
        assert store._rows("PRAGMA journal_mode", ()) == [("wal",)]
        assert store._rows("PRAGMA synchronous", ()) == [(2,)]


@pytest.mark.parametrize(
    "wanted", ["ready", "expired", "submitted", "overdue", "undecided", "unapproved"]
)
@pytest.mark.parametrize("run_id", [None, "r500"])
@pytest.mark.parametrize("executors", [None, ("codex",)])
def test_finding_follows_an_index_and_never_sorts(
    full: SqliteStore, wanted: Wanted, run_id: str | None, executors: tuple[str, ...] | None
) -> None:
    asked: list[str] = []
    full._db.set_trace_callback(asked.append)
    full.find(Search(wanted, NOON, run_id=run_id, executors=executors))
    full._db.set_trace_callback(None)

    assert asked
    for sql in asked:
        plan = [line[3] for line in full._db.execute(f"EXPLAIN QUERY PLAN {sql}")]
        assert all(line.startswith("SEARCH tasks USING") for line in plan), (sql, plan)
        index = "tasks_ready" if wanted == "ready" else "tasks_busy"
        assert all(index in line for line in plan), (sql, plan)


def test_claiming_looks_at_as_many_rows_in_a_large_ledger_as_in_a_small_one(
    full: SqliteStore,
) -> None:
    few = _steps_to_find(full)
    names = [f"more{number}" for number in range(20_000)]
    full.append([chapter(name, rows=(row(name, "t", executor="codex"),)) for name in names])

    assert _steps_to_find(full) <= few * 1.5


def _steps_to_find(store: SqliteStore) -> int:
    """Return how many steps of SQLite's machine it takes to find work in three ways."""
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1

    store._db.set_progress_handler(count, 1)
    for run_id, executors in ((None, None), (None, ("person",)), ("r999", None)):
        with store.exclusive() as writer:
            assert writer.find(Search("ready", NOON, run_id=run_id, executors=executors))
            writer.find(Search("expired", NOON, run_id=run_id, executors=executors))
    store._db.set_progress_handler(None, 1)
    return steps


def _in_a_process(script: str, *words: object) -> str:
    begin = (
        "import sys; sys.path.insert(0, '.')\n"
        "from agent_run.errors import StoreError\n"
        "from agent_run.store.sqlite import SqliteStore\n"
        "from tests.support.stores import chapter\n"
    )
    lines = [line[8:] for line in script.splitlines()]
    done = subprocess.run(
        [sys.executable, "-c", begin + "\n".join(lines), *map(str, words)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert not done.returncode, done.stderr
    return done.stdout
