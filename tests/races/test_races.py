"""Many processes at one ledger: who owns what, whatever happens to them."""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Final, TypeAlias

import pytest

from agent_run.desk import Desk
from agent_run.ledger.state import Status
from agent_run.ports.store import Store
from tests.races import actors
from tests.support.stores import open_desk, post

pytestmark = pytest.mark.slow

RACERS: Final = 16
KILLS: Final = 200
WRITERS: Final = 4
Acknowledged: TypeAlias = tuple[str, int, str, str]


@pytest.fixture
def desk(store: Store) -> Iterator[Desk]:
    with closing(open_desk(store)) as desk:
        yield desk


def test_500_tasks_are_claimed_exactly_once_by_16_processes(desk: Desk, address: str) -> None:
    for run in range(10):
        desk.handle(f"r{run}", *(post(f"t{number}") for number in range(50)))
    barrier = actors.FORKED.Barrier(RACERS)
    calls = [(address, f"w{number}", barrier) for number in range(RACERS)]

    with actors.started(actors.claim_all, *calls) as processes:
        claimed = [check for checks in actors.answers(processes) for check in checks]

    assert len(claimed) == 500
    assert len({(run_id, task_id) for run_id, task_id, _ in claimed}) == 500
    written = {
        (page.run_id, page.task_id, page.seq)
        for run in range(10)
        for page in desk.pages(f"r{run}")
        if page.kind == "task_claimed"
    }
    assert written == set(claimed)
    assert list(desk.verify()) == []


def test_of_16_processes_that_claim_one_task_at_one_instant_one_wins(
    desk: Desk, address: str
) -> None:
    tasks = 25
    desk.handle("r", *(post(f"t{number}") for number in range(tasks)))
    barrier = actors.FORKED.Barrier(RACERS)
    calls = [(address, f"w{number}", barrier, tasks) for number in range(RACERS)]

    with actors.started(actors.claim_these, *calls) as processes:
        said = actors.answers(processes)

    winners = Counter(task_id for won, _ in said for task_id in won)
    assert winners == {f"t{number}": 1 for number in range(tasks)}
    refusals = [sentence for _, refused in said for sentence in refused]
    assert len(refusals) == tasks * (RACERS - 1)
    assert all("is claimed by 'w" in sentence for sentence in refusals)
    assert list(desk.verify()) == []


def test_writers_killed_at_any_point_lose_and_break_nothing(desk: Desk, address: str) -> None:
    chance = random.Random(os.urandom(8).hex())
    acknowledged: list[Acknowledged] = []
    living: list[tuple[BaseProcess, Connection]] = []
    try:
        for kill in range(KILLS):
            while len(living) < WRITERS:
                name = f"w{kill}-{len(living)}"
                living.append(_writer(address, f"run{kill // 20}", name))
            victim, pipe = living.pop(chance.randrange(len(living)))
            # Not before it has written something, and then at any moment at all.
            assert pipe.poll(60)
            time.sleep(chance.uniform(0, 0.01))
            victim.kill()
            acknowledged += _last_words(victim, pipe)
    finally:
        for victim, pipe in living:
            victim.kill()
            acknowledged += _last_words(victim, pipe)

    assert len(acknowledged) >= KILLS
    assert list(desk.verify()) == []
    for run_id, head in desk.store.heads().items():
        pages = desk.pages(run_id)
        assert [page.seq for page in pages] == list(range(1, head + 1))
        written = {(page.run_id, page.seq, page.task_id, page.kind) for page in pages}
        assert {page for page in acknowledged if page[0] == run_id} <= written
        assert _statuses_by_index(desk, run_id) == _statuses_by_pages(desk, run_id)


def test_an_expired_claim_passes_on_and_its_late_owner_is_refused(
    desk: Desk, address: str
) -> None:
    desk.handle("r", post("t"))
    ttl = timedelta(seconds=1)

    with actors.started(actors.sleep_over_a_claim, (address, ttl)) as ((owner, pipe),):
        assert pipe.poll(60)
        pid, claim = pipe.recv()
        os.kill(pid, signal.SIGSTOP)
        while (check := desk.claim_next(owner="awake")) is None:
            desk.wait(timedelta(seconds=0.05))
        os.kill(pid, signal.SIGCONT)
        pipe.send("wake up")
        (said,) = actors.answers([(owner, pipe)])

    assert check.attempt == 2
    assert (check.claim or 0) > claim
    now = f"claim {claim} on task 't' is not held: claim {check.claim} of 'awake' counts now"
    assert said == [("StaleClaim", now)] * 3
    assert desk.run("r").tasks["t"].owner == "awake"


def test_four_processes_make_fair_progress(desk: Desk, address: str) -> None:
    barrier = actors.FORKED.Barrier(4)
    calls = [(address, f"w{number}", barrier, 3.0) for number in range(4)]

    with actors.started(actors.hand_off_for, *calls) as processes:
        counts = actors.answers(processes)

    assert min(counts) * 3 >= max(counts), counts
    assert len(desk.store.tasks()) == sum(counts)
    assert list(desk.verify()) == []


def _writer(address: str, run_id: str, name: str) -> tuple[BaseProcess, Connection]:
    ours, theirs = actors.FORKED.Pipe()
    process = actors.FORKED.Process(
        target=actors.write_until_killed, args=(theirs, address, run_id, name), daemon=True
    )
    process.start()
    theirs.close()
    return process, ours


def _last_words(victim: BaseProcess, pipe: Connection) -> list[Acknowledged]:
    """Return what a killed process had said; a word it was saying is not counted."""
    victim.join()
    victim.close()
    said: list[Acknowledged] = []
    try:
        while True:
            said.append(pipe.recv())
    except (EOFError, ConnectionResetError):
        pipe.close()
    return said


def _statuses_by_index(desk: Desk, run_id: str) -> dict[str, Status]:
    return {row.task_id: row.status for row in desk.store.tasks() if row.run_id == run_id}


def _statuses_by_pages(desk: Desk, run_id: str) -> dict[str, Status]:
    return {name: task.status for name, task in desk.run(run_id).tasks.items()}
