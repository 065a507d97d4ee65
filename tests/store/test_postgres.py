"""What only a ledger on a server can suffer: it goes away, and it has passwords."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import timedelta

import psycopg
import pytest
from psycopg.pq.abc import PGresult

from agent_run.errors import SequenceTaken, StoreError
from agent_run.ledger.state import Status
from agent_run.ports.store import Search, Wanted
from agent_run.store import postgres_sql
from agent_run.store.migrations import POSTGRES
from agent_run.store.postgres import PostgresStore
from agent_run.store.session import TEXT, Session, Value
from tests.support.postgres import Server, own_server
from tests.support.stores import NOON, chapter, failures_of_many, row


@pytest.fixture
def store(postgres_address: str) -> Iterator[PostgresStore]:
    with closing(PostgresStore(postgres_address)) as opened:
        yield opened


@pytest.fixture
def raw(postgres_address: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres_address, autocommit=True) as connection:
        yield connection


@pytest.mark.parametrize(
    "sql",
    [
        b"UPDATE pages SET body = '{}'",
        b"DELETE FROM pages",
        b"TRUNCATE pages",
        b"UPDATE blobs SET content = ''",
        b"TRUNCATE blobs",
    ],
)
def test_nothing_written_is_changed_or_removed(
    store: PostgresStore, raw: psycopg.Connection, sql: bytes
) -> None:
    store.append([chapter("r", 2)])
    store.put_blob(b"x")
    before = store.read("r")

    with pytest.raises(psycopg.errors.RaiseException, match="the ledger is append-only"):
        raw.execute(sql)

    assert store.read("r") == before


def test_a_ledger_of_a_newer_version_is_left_alone(
    store: PostgresStore, raw: psycopg.Connection, postgres_address: str
) -> None:
    raw.execute("INSERT INTO schema_steps VALUES (999)")

    with pytest.raises(StoreError, match=r"written by a newer agent-run \(schema 999, known"):
        PostgresStore(postgres_address)


@pytest.mark.parametrize("version", range(len(POSTGRES) + 1))
def test_every_earlier_version_is_brought_up_to_date(
    raw: psycopg.Connection, postgres_address: str, version: int
) -> None:
    raw.execute("CREATE TABLE schema_steps (version bigint)")
    for number, step in enumerate(POSTGRES[:version], start=1):
        raw.execute(step.encode())
        raw.execute("INSERT INTO schema_steps VALUES (%s)", (number,))

    with closing(PostgresStore(postgres_address)) as store:
        store.append([chapter("r", rows=(row("r", "t"),))])

        assert len(store.read("r")) == 1
    newest = raw.execute("SELECT max(version) FROM schema_steps").fetchone()
    assert newest == (len(POSTGRES),)


def test_a_new_ledger_may_be_opened_by_many_at_once(postgres_address: str) -> None:
    assert failures_of_many(lambda: PostgresStore(postgres_address).close(), at_once=6) == []


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:s3cret@127.0.0.1:1/ledger",
        "postgresql://ann:s3cret@[::1/ledger",
        "postgresql://ann:s3cret@host/ledger?nonsense=1",
        "postgresql://ann:s3cret@/ledger?host=/nowhere/at/all",
        "ann:s3cret@host",
        "host=127.0.0.1 port=1 user=ann password=s3cret",
    ],
)
def test_no_password_is_ever_told(url: str) -> None:
    with pytest.raises(StoreError, match=r"the (address of the )?ledger .*cannot be") as told:
        PostgresStore(url)

    error: BaseException | None = told.value
    while error is not None:
        assert "s3cret" not in str(error)
        error = error.__cause__
    assert "\n" not in str(told.value)


def test_a_schema_that_does_not_exist_is_an_error(postgres_server: Server) -> None:
    with pytest.raises(StoreError, match="cannot be opened: no schema has been selected"):
        PostgresStore(f"{postgres_server.url}&options=-csearch_path%3Dnowhere")


def test_a_refused_statement_is_told_in_one_sentence(store: PostgresStore) -> None:
    huge = row("r", "t", priority=2**80)

    with pytest.raises(StoreError, match=r"cannot be used: .*out of range") as told:
        store.append([chapter("r", rows=(huge,))])

    assert "\n" not in str(told.value)
    assert store.read("r") == []


def test_a_commit_is_one_round_trip_however_many_runs_it_writes_to(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    trips: list[str] = []
    answer = Session._answer

    def counted(session: Session, sql: str, values: Sequence[Value]) -> PGresult:
        trips.append(sql)
        return answer(session, sql, values)

    monkeypatch.setattr(Session, "_answer", counted)
    monkeypatch.setattr(Session, "order", lambda _, words: trips.append(words.decode()))
    many = [chapter(f"r{n}", count=2, rows=(row(f"r{n}", "t"),)) for n in range(20)]

    store.append(many)

    assert len(trips) == 1
    assert len(store.tasks()) == 20
    assert [page.seq for page in store.read("r7")] == [1, 2]


def test_a_lost_connection_is_told_and_the_next_call_works(
    store: PostgresStore, raw: psycopg.Connection
) -> None:
    with pytest.raises(StoreError, match="cannot be used: "):
        _write_while_thrown_out(store, raw)

    assert store.read("r") == []
    store.append([chapter("r")])
    assert len(store.read("r")) == 1


def test_a_transaction_that_failed_inside_is_never_taken_for_written(
    store: PostgresStore,
) -> None:
    with pytest.raises(StoreError, match="was not committed"):
        _swallow_an_error(store)

    assert store.read("r") == []


def test_settings_of_the_server_cannot_make_pages_unsafe(
    store: PostgresStore, raw: psycopg.Connection, postgres_address: str
) -> None:
    careless = postgres_address + "%20-csynchronous_commit%3Doff"
    with closing(PostgresStore(careless)) as opened:
        assert opened._rows("SHOW synchronous_commit", (), (TEXT,)) == [["on"]]


@pytest.mark.slow
def test_a_server_that_restarts_is_found_again() -> None:
    with own_server() as server, closing(PostgresStore(server.url)) as store:
        store.append([chapter("r", 2)])
        store.wait(timedelta(seconds=0.3))
        server.stop()

        with pytest.raises(StoreError, match="cannot be used: "):
            store.append([chapter("r", after=2)])
        server.start()
        store.append([chapter("r", after=2)])

        assert [page.seq for page in store.read("r")] == [1, 2, 3]
        # The listener comes back by itself and says that something may have been missed.
        assert store.wait(timedelta(seconds=20))
        store.wait(timedelta(seconds=0.5))
        store.append([chapter("r", after=3)])
        assert store.wait(timedelta(seconds=5))


@pytest.mark.parametrize(
    "wanted", ["ready", "expired", "submitted", "overdue", "undecided", "unapproved"]
)
@pytest.mark.parametrize("run_id", [None, "r50"])
@pytest.mark.parametrize("executors", [None, ("codex",)])
@pytest.mark.parametrize("limit", [1, 100])
def test_finding_follows_an_index(
    store: PostgresStore,
    wanted: Wanted,
    run_id: str | None,
    executors: tuple[str, ...] | None,
    limit: int,
) -> None:
    names = [f"r{number}" for number in range(100)]
    store.append([chapter(name, rows=(row(name, "t"),)) for name in names])
    search = Search(wanted, NOON, run_id=run_id, executors=executors, limit=limit)

    with store.exclusive() as writer:
        tasks, values = postgres_sql.looked_for(search)
        lines = writer._db.ask(f"EXPLAIN {tasks} LIMIT 1", values, (TEXT,))

    plan = "\n".join(line for (line,) in lines)
    assert "Seq Scan" not in plan, plan
    assert "tasks_ready" in plan if wanted == "ready" else "tasks_busy" in plan, plan
    assert "Sort  " not in plan, plan


def test_finding_locks_only_what_it_gives(
    store: PostgresStore, raw: psycopg.Connection
) -> None:
    rows = tuple(row("r", f"t{n}", executor=("", "codex")[n % 2]) for n in range(50))
    store.append([chapter("r", rows=rows)])

    with store.exclusive() as writer:
        for executors in (None, ("codex",)):
            writer.find(Search("ready", NOON, executors=executors, limit=3))
            found = raw.execute(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid <> 0"
                " AND database = (SELECT oid FROM pg_database WHERE datname = 'postgres')"
                " AND pid = %s",
                (writer._db.info.backend_pid,),
            ).fetchone()
            assert found == (3,)


def test_a_task_locked_by_another_is_passed_over(
    store: PostgresStore, postgres_address: str
) -> None:
    store.append([chapter("r", rows=tuple(row("r", f"t{n}") for n in range(3)))])

    with closing(PostgresStore(postgres_address)) as other, store.exclusive() as writer:
        (mine,) = writer.find(Search("ready", NOON))
        with other.exclusive() as second:
            theirs = second.find(Search("ready", NOON, limit=10))

    assert mine.task_id == "t0"
    assert [found.task_id for found in theirs] == ["t1", "t2"]


def test_a_claimer_and_an_owner_of_the_same_task_do_not_wait_for_each_other(
    store: PostgresStore, postgres_address: str
) -> None:
    """The claimer has found the task when its owner writes about it: no deadlock."""
    store.append([chapter("r", rows=(row("r", "t"),))])
    claimed = replace(row("r", "t", status=Status.CLAIMED), changed=2)

    with closing(PostgresStore(postgres_address)) as other, store.exclusive() as writer:
        assert writer.find(Search("ready", NOON))
        other.append([chapter("r", after=1, rows=(claimed,))])
        writer.hold("r")

        assert len(writer.read("r")) == 2


def test_of_two_who_wait_for_each_other_one_is_sent_to_read_again(
    store: PostgresStore, postgres_address: str
) -> None:
    told: list[SequenceTaken] = []
    barrier = threading.Barrier(2)

    def hold(mine: PostgresStore, *names: str) -> None:
        try:
            with mine.exclusive() as writer:
                writer.hold(names[0])
                barrier.wait(30)
                writer.hold(names[1])
        except SequenceTaken as error:
            told.append(error)

    with closing(PostgresStore(postgres_address)) as other:
        threads = [
            threading.Thread(target=hold, args=(store, "a", "b")),
            threading.Thread(target=hold, args=(other, "b", "a")),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert [str(error) for error in told] == ["another writer came first: deadlock detected"]


def _write_while_thrown_out(store: PostgresStore, raw: psycopg.Connection) -> None:
    with store.exclusive() as writer:
        writer.append([chapter("r")])
        raw.execute("SELECT pg_terminate_backend(%s)", (writer._db.info.backend_pid,))
        writer.append([chapter("r", after=1)])


def _swallow_an_error(store: PostgresStore) -> None:
    with store.exclusive() as writer:
        writer.append([chapter("r")])
        with pytest.raises(psycopg.Error):
            writer._db.execute(b"SELECT 1 / 0")
