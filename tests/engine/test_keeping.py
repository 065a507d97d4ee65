"""All claims of a process are kept together; each is lost alone."""

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path

import anyio
import pytest

from agent_run.contract.manifest import Manifest
from agent_run.contract.plan import Plan
from agent_run.contract.record import Record
from agent_run.engine.bench import at_bench
from agent_run.engine.execute import Ordered, execute_at
from agent_run.engine.runs import crew_of, run_plan
from agent_run.engine.site import Site
from agent_run.errors import StaleClaim
from agent_run.ledger.commands import Cancel, Post
from agent_run.ledger.state import RunState, Status
from agent_run.ports.executor import Job, Seen, Work
from tests.support.sites import file_less_site

RUN = "many"
SHORT = timedelta(seconds=0.3)
LONG = timedelta(minutes=10)


@dataclass
class Meeting:
    """Blocks a thread until all who are expected do so too."""

    barrier: threading.Barrier
    name: str = "meeting"
    wants_workspace: bool = False

    async def run(self, job: Job) -> Work:
        await anyio.to_thread.run_sync(self.barrier.wait, 30)
        return Work(Record(status="done", output=1, confidence=1.0), Seen(exit_code=0))


@dataclass
class Waiting:
    """Works as long as it was told to, and says when it has begun."""

    seconds: float
    begun: anyio.Event = field(default_factory=anyio.Event)
    name: str = "waiting"
    wants_workspace: bool = False

    async def run(self, job: Job) -> Work:
        self.begun.set()
        await anyio.sleep(self.seconds)
        return Work(Record(status="done", output=1, confidence=1.0), Seen(exit_code=0))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = file_less_site(tmp_path)
    posts = (Manifest(task_id=name, objective="wait") for name in ("a", "b", "c"))
    site.desk.handle(RUN, *(Post(actor="planner", manifest=one) for one in posts))
    with closing(site.desk):
        yield site


async def worked(site: Site, orders: dict[str, tuple[Waiting, timedelta]]) -> RunState:
    """Work on all of them at one bench, each after the one before has begun."""
    run = site.desk.run(RUN)
    async with at_bench(site, many=True) as bench, anyio.create_task_group() as group:
        for name, (executor, ttl) in orders.items():
            order = Ordered(executor, "ada", ttl)
            group.start_soon(partial(execute_at, bench, RUN, name, order, run=run))
            await executor.begun.wait()
    return site.desk.run(RUN)


def test_all_claims_outlast_their_time_by_the_heartbeat_of_one_keeper(site: Site) -> None:
    orders = {name: (Waiting(0.8), SHORT) for name in ("a", "b", "c")}

    run = anyio.run(worked, site, orders)

    assert {task.status for task in run.tasks.values()} == {Status.ACCEPTED}
    assert {task.attempt for task in run.tasks.values()} == {1}


def test_a_short_claim_that_comes_later_is_kept_as_well(site: Site) -> None:
    orders = {"a": (Waiting(0.9), LONG), "b": (Waiting(0.8), SHORT)}

    run = anyio.run(worked, site, orders)

    assert {run.tasks[name].status for name in orders} == {Status.ACCEPTED}
    kept = {page.task_id for page in site.desk.pages(RUN) if page.kind == "claim_extended"}
    assert kept == {"b"}


def test_work_without_files_ends_soon_after_its_task_is_cancelled(site: Site) -> None:
    unwanted = Waiting(3_600)

    async def cancelled() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(worked, site, {"a": (Waiting(0.2), LONG), "b": (unwanted, LONG)})
            await unwanted.begun.wait()
            site.desk.handle(RUN, Cancel(task_id="b", actor="eve"))

    with pytest.raises(ExceptionGroup) as ended:
        anyio.run(cancelled)

    assert ended.group_contains(StaleClaim, match="the task is cancelled")
    statuses = {name: task.status for name, task in site.desk.run(RUN).tasks.items()}
    assert statuses == {"a": Status.ACCEPTED, "b": Status.CANCELLED, "c": Status.READY}


def test_every_hand_may_block_a_thread_and_claims_are_still_kept(tmp_path: Path) -> None:
    hands = 60
    names = [f"t{number}" for number in range(hands)]
    meeting = Meeting(threading.Barrier(hands))
    steps = [{"task_id": name, "objective": "meet", "executor": "meeting"} for name in names]
    plan = Plan.model_validate({"steps": steps})
    with closing((site := file_less_site(tmp_path)).desk):
        crew = crew_of([meeting], owner="driver", at_once=hands)

        done = anyio.run(partial(run_plan, site, plan, crew, run_id=RUN))

    assert done.status == "accepted"
