"""Between two looks at the whole run, whoever ends a task goes on with the next one."""

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from agent_run.contract.brief import Brief
from agent_run.contract.plan import Plan
from agent_run.contract.record import Record
from agent_run.engine.loop import drive
from agent_run.engine.runs import crew_of, ending
from agent_run.engine.site import Site
from agent_run.executors.function import executor
from agent_run.ledger.commands import Command, OpenRun
from agent_run.ledger.state import RunState
from agent_run.topology.plan_execute import plan_execute
from tests.support.sites import file_less_site

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = file_less_site(tmp_path)
    yield made
    made.desk.close()


async def test_a_chain_is_followed_without_looking_at_the_whole_run_at_each_step(
    site: Site,
) -> None:
    links = 40
    looks = 0
    plan = Plan.model_validate(
        {
            "steps": [
                {
                    "task_id": f"n{number}",
                    "objective": "add",
                    "executor": "add",
                    "needs": [f"n{number - 1}"] if number else [],
                }
                for number in range(links)
            ]
        }
    )
    follow = plan_execute(plan)

    def counting(run: RunState) -> tuple[Command, ...]:
        nonlocal looks
        looks += 1
        return follow(run)

    @executor("add")
    async def add(brief: Brief) -> Record:
        return Record(status="done", output=1)

    await anyio.to_thread.run_sync(lambda: site.desk.handle("c", OpenRun(actor="eve")))
    run = await drive(site, "c", counting, crew_of([add], owner="driver"))

    assert ending(run) == "accepted"
    assert looks < links / 2


async def test_no_more_are_worked_on_at_once_than_the_limit_and_each_once(site: Site) -> None:
    now: set[str] = set()
    most = 0
    done: list[str] = []

    @executor("work")
    async def work(brief: Brief) -> Record:
        nonlocal most
        now.add(brief.task_id)
        most = max(most, len(now))
        await anyio.sleep(0.002)
        now.remove(brief.task_id)
        done.append(brief.task_id)
        return Record(status="done")

    steps = [
        {"task_id": f"w{number}", "objective": "work", "executor": "work"}
        for number in range(120)
    ]
    follow = plan_execute(Plan.model_validate({"steps": steps}))
    await anyio.to_thread.run_sync(lambda: site.desk.handle("f", OpenRun(actor="eve")))
    run = await drive(site, "f", follow, crew_of([work], owner="driver", at_once=20))

    assert ending(run) == "accepted"
    assert most <= 20
    assert sorted(done) == sorted(f"w{number}" for number in range(120))
