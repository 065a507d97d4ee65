"""Many coroutines at one desk: they share commits, and each gets its own answer."""

from collections.abc import Sequence

import anyio
import pytest

from agent_run.desk import Desk
from agent_run.desk.together import Together
from agent_run.errors import AlreadyPosted, StoreError
from agent_run.ledger.commands import Claim
from agent_run.ledger.state import RunState, Status
from agent_run.ports.store import Chapter, Store
from tests.support.stores import judge, open_desk, post, submit

WORKERS = 16


def commits_of(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that grows with every commit by the number of its chapters."""
    commits: list[int] = []
    append = desk.store.append

    def counted(chapters: Sequence[Chapter]) -> None:
        commits.append(len(chapters))
        append(chapters)

    monkeypatch.setattr(desk.store, "append", counted)
    return commits


async def handed_off(desk: Together, name: str) -> RunState:
    await desk.handle(name, post("t"))
    state = await desk.handle(name, Claim(task_id="t", owner="bob"))
    await desk.handle(name, submit("t", state.tasks["t"].claim or 0))
    return await desk.handle(name, judge("t"))


def test_those_who_work_side_by_side_share_every_commit(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = open_desk(store)
    commits = commits_of(desk, monkeypatch)
    ends: list[Status] = []

    async def work() -> None:
        together = Together(desk)

        async def one(number: int) -> None:
            for turn in range(3):
                state = await handed_off(together, f"r-{number}-{turn}")
                ends.append(state.tasks["t"].status)

        async with anyio.create_task_group() as group:
            for number in range(WORKERS):
                group.start_soon(one, number)

    anyio.run(work)

    assert ends == [Status.ACCEPTED] * WORKERS * 3
    assert commits == [WORKERS] * 4 * 3
    assert list(desk.verify()) == []


def test_one_alone_is_answered_without_waiting_for_company(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = open_desk(store)
    commits = commits_of(desk, monkeypatch)

    state = anyio.run(handed_off, Together(desk), "r")

    assert state.tasks["t"].status is Status.ACCEPTED
    assert commits == [1, 1, 1, 1]


def test_a_refusal_is_heard_only_by_whom_it_is_for(store: Store) -> None:
    desk = open_desk(store)
    desk.handle("r0", post("t"))
    heard: dict[str, type[Exception] | None] = {}

    async def work() -> None:
        together = Together(desk)

        async def one(name: str) -> None:
            heard[name] = None
            try:
                await together.handle(name, post("t"))
            except AlreadyPosted:
                heard[name] = AlreadyPosted

        async with anyio.create_task_group() as group:
            for number in range(4):
                group.start_soon(one, f"r{number}")

    anyio.run(work)

    assert heard == {"r0": AlreadyPosted, "r1": None, "r2": None, "r3": None}
    assert len(store.tasks()) == 4


def test_a_wish_that_was_begun_is_finished_when_its_caller_is_cancelled(store: Store) -> None:
    desk = open_desk(store)

    async def work() -> None:
        together = Together(desk)
        async with anyio.create_task_group() as group:
            for number in range(4):
                group.start_soon(together.handle, f"r{number}", post("t"))
            await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()

    anyio.run(work)

    assert len(store.tasks()) == 4


def test_a_store_that_fails_is_told_to_all_of_the_round_and_the_next_goes_on(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = open_desk(store)
    append, failures = store.append, [StoreError("the disk is full")]

    def failing(chapters: Sequence[Chapter]) -> None:
        if failures:
            raise failures.pop()
        append(chapters)

    monkeypatch.setattr(store, "append", failing)
    told: list[str] = []

    async def work() -> None:
        together = Together(desk)

        async def one(name: str) -> None:
            try:
                await together.handle(name, post("t"))
            except StoreError as error:
                told.append(str(error))
            await together.handle(name, post("t"))

        async with anyio.create_task_group() as group:
            for number in range(4):
                group.start_soon(one, f"r{number}")

    anyio.run(work)

    assert told == ["the disk is full"] * 4
    assert len(store.tasks()) == 4
