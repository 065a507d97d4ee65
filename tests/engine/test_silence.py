"""A run acts on the silence of people by itself, and waits for nothing that moves nothing."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_run.contract.brief import Brief
from agent_run.contract.plan import Plan
from agent_run.contract.record import Record
from agent_run.engine.runs import crew_of, is_finished, resume, run_plan
from agent_run.engine.site import Site
from agent_run.engine.telling import Told
from agent_run.executors.function import executor
from agent_run.ledger.state import Status
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


@executor("work")
async def work(brief: Brief) -> Record:
    return Record(status="done", confidence=1.0)


CREW = crew_of([work], owner="driver")
WAITS = {"review": {"review": "human"}, "approval": {"approve_before_claim": True}}
each_wait = pytest.mark.parametrize("waits", WAITS.values(), ids=WAITS.keys())


def plan_of(**more: Any) -> Plan:
    step = {"task_id": "a", "objective": "do it", "executor": "work", **more}
    return Plan.model_validate({"steps": [step]})


@each_wait
@pytest.mark.parametrize(
    ("policy", "status"), [("fail", Status.FAILED), ("skip", Status.SKIPPED)]
)
async def test_a_run_ends_what_nobody_came_for(
    site: Site, waits: dict[str, Any], policy: str, status: Status
) -> None:
    plan = plan_of(**waits, answer_within=0.2, on_silence=policy)

    with anyio.fail_after(30):
        done = await run_plan(site, plan, CREW, run_id="r")

    assert done.run.tasks["a"].status is status
    assert done.status == "failed"


@each_wait
async def test_a_run_does_not_stay_for_a_deadline_that_moves_nothing(
    site: Site, waits: dict[str, Any]
) -> None:
    plan = plan_of(**waits, answer_within="1d", on_silence="escalate")

    with anyio.fail_after(30):
        done = await run_plan(site, plan, CREW, run_id="r")

    assert done.status == "waiting"
    assert not is_finished(done.run, "r")


@each_wait
async def test_a_run_does_not_sit_through_the_days_that_a_person_has(
    site: Site, waits: dict[str, Any]
) -> None:
    plan = plan_of(**waits, answer_within="2d", on_silence="fail")

    with anyio.fail_after(30):
        done = await run_plan(site, plan, CREW, run_id="r")

    assert done.status == "waiting"
    assert done.run.tasks["a"].deadline is not None


async def test_what_is_waited_for_is_said_once(site: Site) -> None:
    told: list[Told] = []
    plan = plan_of(review="human", answer_within=0.3, on_silence="fail")

    with anyio.fail_after(30):
        await run_plan(replace(site, tell=told.append), plan, CREW, run_id="r")

    (said,) = (one.text for one in told if one.topic == "wait")
    assert said.startswith("a waits for a person until 20")


@each_wait
async def test_who_resumes_notes_a_missed_deadline_once(
    site: Site, waits: dict[str, Any]
) -> None:
    plan = plan_of(**waits, answer_within=0.001, on_silence="escalate")
    await run_plan(site, plan, CREW, run_id="r")

    first = await resume(site, "r", CREW)
    second = await resume(site, "r", CREW)

    assert first.run.tasks["a"].overdue
    assert second.run.seq == first.run.seq
