"""Broken off, killed or out of budget: what was not looked at is looked at the next time."""

import fcntl
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import Any

import anyio
import pytest

from agent_run.desk import Desk
from agent_run.executors.content.spelling import SpellingChecker
from agent_run.gates.cache import FileCache
from agent_run.ledger.commands import Claim, OpenRun, Post, Release
from agent_run.ledger.state import Status
from agent_run.recipes.qa.planning import Wanted
from agent_run.recipes.qa.reporting import DraftReport, Report, report_json
from agent_run.recipes.qa.running import Shop, check_drafts, plans_for
from agent_run.recipes.qa.taking_over import PLACE
from tests.recipes.support import CLEAN, FLAWED, FOUR, check, draft, opened, outcomes, wanted
from tests.recipes.test_qa import decide

LONG = timedelta(minutes=10)
TWO_OF_FOUR = {"steps": list(FOUR), "overall_budget": {"max_attempts": 2}}


def begun(desk: Desk, name: str, asked: Wanted, owner: str) -> str:
    """Open the run as a process does that is then killed with two steps in its hands."""
    one = plans_for([name], asked)[0]
    document: Any = {"plan": one.plan.model_dump(mode="json", exclude_defaults=True)}
    desk.handle(one.run_id, OpenRun(actor=owner, budget=one.plan.budget, plan=document))
    for step in one.plan.manifests():
        desk.handle(one.run_id, Post(actor=owner, manifest=step))
    for step in one.plan.steps[:2]:
        desk.handle(one.run_id, Claim(task_id=step.task_id, owner=owner, ttl=LONG))
    return one.run_id


def used(draft_report: DraftReport) -> dict[str, int]:
    return {step.step.id: step.attempts for step in draft_report.steps}


def test_what_a_killed_process_held_is_taken_over_at_once_and_is_no_attempt(
    tmp_path: Path,
) -> None:
    name, asked = draft(tmp_path, "a.md", CLEAN), wanted(tmp_path)

    with opened(tmp_path) as desk:
        run_id = begun(desk, name, asked, "qa")
        began = monotonic()
        report = check(tmp_path, desk, [name], asked)
        took = monotonic() - began

    assert took < LONG.total_seconds() / 10
    assert report.drafts[0].run_id == run_id
    assert report.status == "pass"
    assert used(report.drafts[0]) == dict.fromkeys(outcomes(report), 1)


def test_what_was_given_back_often_takes_nothing_from_the_budget(tmp_path: Path) -> None:
    four = {"steps": list(FOUR), "overall_budget": {"max_attempts": 4}}
    name, asked = draft(tmp_path, "a.md", CLEAN), wanted(tmp_path, four)

    with opened(tmp_path) as desk:
        run_id = begun(desk, name, asked, "qa")
        for _ in range(5):
            task = desk.run(run_id).tasks["tone-check"]
            desk.handle(
                run_id, Release(task_id="tone-check", actor="qa", claim=task.claim or 0)
            )
            desk.handle(run_id, Claim(task_id="tone-check", owner="qa", ttl=LONG))
        report = check(tmp_path, desk, [name], asked)

    assert report.status == "pass"
    assert report.drafts[0].over == ()
    told: Any = report_json(report)
    assert told["drafts"][0]["steps"][0]["budget"]["attempts"] == {"planned": 2, "used": 1}


def test_what_another_process_may_hold_is_waited_for_and_said(tmp_path: Path) -> None:
    name, asked = draft(tmp_path, "a.md", CLEAN), wanted(tmp_path)
    said: list[str] = []
    place = tmp_path / "state" / PLACE
    place.parent.mkdir(parents=True)

    with opened(tmp_path) as desk, place.open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_SH)
        run_id = begun(desk, name, asked, "qa")

        def say(sentence: str) -> None:
            said.append(sentence)
            for task_id in ("tone-check", "compliance-check"):
                claim = desk.run(run_id).tasks[task_id].claim or 0
                desk.handle(run_id, Release(task_id=task_id, actor="qa", claim=claim))

        state = tmp_path / "state"
        shop = Shop(desk, state, FileCache(state / "cache"), say=say)
        report = anyio.run(check_drafts, shop, [name], asked)

    assert report.status == "pass"
    assert len(said) == 1
    assert "tone-check and compliance-check of" in said[0]
    assert "checked by 'qa'" in said[0]


def test_what_the_budget_did_not_reach_is_looked_at_the_next_time(tmp_path: Path) -> None:
    drafts, asked = [draft(tmp_path, "a.md", CLEAN)], wanted(tmp_path, TWO_OF_FOUR)

    with opened(tmp_path) as desk:
        first = check(tmp_path, desk, drafts, asked)
        second = check(tmp_path, desk, drafts, asked)
        third = check(tmp_path, desk, drafts, asked)
        waiting = [
            task_id
            for row in desk.runs()
            for task_id, task in desk.run(row.run_id).tasks.items()
            if task.status is Status.ESCALATED
        ]

    assert list(outcomes(first).values()) == ["passed", "passed", "person", "person"]
    assert set(outcomes(second).values()) == {"passed"}
    assert [step.cached for step in second.steps] == [True, True, False, False]
    assert second.drafts[0].over == ()
    assert third.drafts[0].run_id == second.drafts[0].run_id
    assert third.cache_hits == 4
    assert waiting == []


def test_a_check_that_broke_is_looked_at_again_and_not_called_reused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drafts, asked = [draft(tmp_path, "a.md", FLAWED)], wanted(tmp_path)

    async def broken(*_: object, **__: object) -> None:
        msg = "it broke"
        raise RuntimeError(msg)

    with opened(tmp_path) as desk:
        with monkeypatch.context() as patch:
            patch.setattr(SpellingChecker, "check", broken)
            first = check(tmp_path, desk, drafts, asked)
        second = check(tmp_path, desk, drafts, asked)

    assert outcomes(first)["spelling-check"] == "person"
    assert outcomes(second)["spelling-check"] == "failed"
    assert not second.steps[-1].cached


def test_a_decision_about_a_link_holds_when_another_step_is_looked_at_again(
    tmp_path: Path,
) -> None:
    three = {
        "steps": [{"id": "links", "goal": "links"}, {"id": "spelling", "goal": "spelling"}],
        "overall_budget": {"max_attempts": 1},
    }
    asked = wanted(tmp_path, three)
    asked = Wanted(asked.checklist, tmp_path, asked.rules, asked.today)
    online = asked.rules.model_copy(update={"offline": False})
    asked = Wanted(asked.checklist, tmp_path, online, asked.today)
    drafts = [draft(tmp_path, "a.md", "# A\n\nRead [more](nowhere.md).\n")]

    with opened(tmp_path) as desk:
        first = check(tmp_path, desk, drafts, asked)
        decide(desk, first.drafts[0].run_id, "links", passed=True)
        second = check(tmp_path, desk, drafts, asked)

    assert outcomes(first) == {"links": "failed", "spelling": "person"}
    assert outcomes(second) == {"links": "passed", "spelling": "passed"}
    assert second.steps[0].decided_by == "ada"


def test_two_that_begin_with_one_draft_at_once_end_with_one_run(tmp_path: Path) -> None:
    name, asked = draft(tmp_path, "a.md", FLAWED), wanted(tmp_path)
    state, reports = tmp_path / "state", list[Report]()

    with opened(tmp_path) as desk:
        shop = Shop(desk, state, FileCache(state / "cache"))

        async def one() -> None:
            reports.append(await check_drafts(shop, [name], asked))

        async def both() -> None:
            async with anyio.create_task_group() as group:
                group.start_soon(one)
                group.start_soon(one)

        anyio.run(both)

    first, second = reports
    assert outcomes(first) == outcomes(second)
    assert first.drafts[0].run_id == second.drafts[0].run_id
