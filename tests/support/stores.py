"""Ledgers for tests, on both stores, and short words for what is written into them."""

import os
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from agent_run.contract.manifest import Manifest
from agent_run.contract.record import Record
from agent_run.contract.verdict import Finding, Verdict
from agent_run.desk import Desk
from agent_run.ledger.commands import Judge, Post, Submit
from agent_run.ledger.events import NoteWritten
from agent_run.ledger.pages import FIRST, Page, seal
from agent_run.ledger.state import Status
from agent_run.ports.clock import Clock
from agent_run.ports.store import Chapter, Store, TaskRow
from agent_run.store.postgres import PostgresStore
from agent_run.store.sqlite import SqliteStore
from tests.support.postgres import Server, own_schema, shared_server

NOON: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
TRACE: Final = "0af7651916cd43dd8448eb211c80319c"
PASS: Final = Verdict(findings=(Finding(gate="g", outcome="pass", reason="verified"),))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """One real Postgres, shared by all workers of the session."""
    session = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    with shared_server(session) as server:
        yield server


@pytest.fixture
def sqlite_address(tmp_path: Path) -> str:
    return str(tmp_path / "ledger.db")


@pytest.fixture
def postgres_address(postgres_server: Server) -> Iterator[str]:
    with own_schema(postgres_server, f"t{os.urandom(8).hex()}") as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest) -> str:
    """Where an empty ledger is."""
    return str(request.getfixturevalue(f"{request.param}_address"))


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    opened = open_store(address)
    yield opened
    opened.close()


def open_store(address: str) -> Store:
    """Open the ledger at `address`, as another process would."""
    if address.startswith("postgresql://"):
        return PostgresStore(address)
    return SqliteStore(Path(address))


def open_desk(store: Store, clock: Clock = lambda: datetime.now(UTC)) -> Desk:
    return Desk(store, clock=clock, new_trace=lambda: TRACE)


class Ticking:
    """A clock that stands still until it is told otherwise."""

    def __init__(self, now: datetime = NOON) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def step(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def book(run_id: str, count: int, *, after: int = 0, previous: str = FIRST) -> list[Page]:
    """Return `count` chained pages that say nothing of importance."""
    pages: list[Page] = []
    for seq in range(after + 1, after + count + 1):
        event = NoteWritten(task_id="", at=NOON, actor="ann", topic=f"page {seq}")
        pages.append(seal(run_id, seq, TRACE, event, previous=previous))
        previous = pages[-1].digest
    return pages


def chapter(
    run_id: str, count: int = 1, *, after: int = 0, rows: tuple[TaskRow, ...] = ()
) -> Chapter:
    return Chapter(run_id, after, book(run_id, count, after=after), rows, NOON)


def row(
    run_id: str,
    task_id: str,
    *,
    status: Status = Status.READY,
    priority: int = 0,
    executor: str = "",
    due: datetime | None = None,
) -> TaskRow:
    """Return the index row of a task posted on page 1."""
    return TaskRow(run_id, task_id, status, priority, 1, executor, due, 1)


def post(task_id: str, **manifest: object) -> Post:
    fields = {"task_id": task_id, "objective": "do it", **manifest}
    return Post(actor="ann", manifest=Manifest.model_validate(fields))


def submit(task_id: str, claim: int, actor: str = "bob") -> Submit:
    return Submit(task_id=task_id, actor=actor, claim=claim, record=Record(notes="done"))


def judge(task_id: str) -> Judge:
    return Judge(task_id=task_id, actor="judge", verdict=PASS)


def failures_of_many(act: Callable[[], object], *, at_once: int) -> list[BaseException]:
    """Let many threads do the same at one moment, and return what went wrong."""
    failures: list[BaseException] = []
    barrier = threading.Barrier(at_once)

    def begin() -> None:
        barrier.wait()
        try:
            act()
        except BaseException as error:  # noqa: BLE001 - shown by the test itself
            failures.append(error)

    threads = [threading.Thread(target=begin) for _ in range(at_once)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures
