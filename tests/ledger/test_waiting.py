"""Everything that waits for a person has its deadline, and one policy for silence."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from agent_run.contract.record import Question
from agent_run.errors import TransitionError
from agent_run.ledger import commands as wished
from agent_run.ledger.commands import Command
from agent_run.ledger.events import DeadlineMissed, TaskEscalated
from agent_run.ledger.inbox import inbox_rows
from agent_run.ledger.rules import decide
from agent_run.ledger.state import RunState, Status
from tests.support.stories import (
    FAILED,
    NOON,
    PASSED,
    TASK,
    answer,
    claim,
    given,
    judge,
    post,
    review,
    submit,
    the_task,
    when,
)

LAPSE = wished.Lapse(task_id=TASK, actor="sweeper")
WIDER = Question(text="More?", wider_scope=("b.py",))
DUE = NOON + timedelta(minutes=10)
Story = Callable[..., RunState]


def story(*commands: Command, **manifest: Any) -> Story:
    return lambda **more: given(post(**{"answer_within": "10m"} | manifest | more), *commands)


ITEMS = {
    "question": story(claim(), submit(question="Which?")),
    "scope": story(claim(), submit(question=WIDER)),
    "escalation": story(claim(), submit(), judge(FAILED), budget={"max_attempts": 1}),
    "stuck": story(claim(), submit(status="blocked")),
    "review": story(claim(), submit(), judge(PASSED), review="human"),
    "approval": story(approve_before_claim=True),
    "over budget": story(claim(), submit(tokens_used=5), budget={"max_tokens": 1}),
    "asked by hand": story(
        wished.Escalate(task_id=TASK, actor="ada", reason="timeout", note="stuck")
    ),
}
each_item = pytest.mark.parametrize("item", ITEMS.values(), ids=ITEMS.keys())


@each_item
def test_whatever_waits_for_a_person_says_until_when(item: Story) -> None:
    (row,) = inbox_rows("run", item())

    assert (row.deadline, row.since) == (DUE, NOON)
    assert not row.is_overdue(NOON)
    assert row.is_overdue(DUE)


@each_item
@pytest.mark.parametrize(
    ("policy", "status"), [("fail", Status.FAILED), ("skip", Status.SKIPPED)]
)
def test_what_nobody_came_for_ends_as_the_manifest_says(
    item: Story, policy: str, status: Status
) -> None:
    run = item(on_silence=policy)

    with pytest.raises(TransitionError, match=r"may wait for a person until .*12:10:00Z"):
        decide(run, LAPSE, now=DUE - timedelta(seconds=1))
    run = when(run, LAPSE, at=DUE)

    assert the_task(run).status is status
    assert the_task(run).note.startswith("nobody ")
    assert "before 2026-11-15 12:10:00Z" in the_task(run).note


@each_item
def test_what_stays_with_people_is_marked_once(item: Story) -> None:
    run = when(item(on_silence="escalate"), LAPSE, at=DUE)

    (row,) = inbox_rows("run", run)
    assert row.lapsed
    assert row.deadline == DUE
    with pytest.raises(TransitionError, match="is noted already"):
        decide(run, LAPSE, now=DUE + timedelta(days=1))


@each_item
def test_without_a_limit_people_may_take_their_time(item: Story) -> None:
    run = item(answer_within=None)

    assert the_task(run).deadline is None
    with pytest.raises(TransitionError, match="has no deadline"):
        decide(run, LAPSE, now=DUE + timedelta(days=900))


def test_a_question_nobody_answers_becomes_a_decision_that_names_it() -> None:
    run = ITEMS["question"](on_silence="escalate")

    events = decide(run, LAPSE, now=DUE)

    assert [type(event) for event in events] == [TaskEscalated, DeadlineMissed]
    (row,) = inbox_rows("run", when(run, LAPSE, at=DUE))
    assert (row.kind, row.reason) == ("decision", "timeout")
    assert row.text == "nobody answered before 2026-11-15 12:10:00Z: Which?"


@pytest.mark.parametrize(
    ("name", "decision", "status"),
    [
        ("question", answer("main"), Status.READY),
        ("scope", wished.Widen(task_id=TASK, actor="eve", paths=("b.py",)), Status.READY),
        ("escalation", answer("go on"), Status.READY),
        ("review", review(PASSED), Status.ACCEPTED),
        ("review", review(FAILED, again=True), Status.READY),
        ("approval", wished.Approve(task_id=TASK, actor="eve"), Status.READY),
    ],
)
@pytest.mark.parametrize("late", [timedelta(), timedelta(hours=1)], ids=["in time", "late"])
def test_a_person_who_comes_before_silence_counts_is_heard(
    name: str, decision: Command, status: Status, late: timedelta
) -> None:
    run = when(ITEMS[name](on_silence="fail"), decision, at=NOON + late)

    assert the_task(run).status is status
    with pytest.raises(TransitionError):
        decide(run, LAPSE, now=DUE + timedelta(days=1))


@pytest.mark.parametrize(
    "decision",
    [answer("main"), review(PASSED), wished.Approve(task_id=TASK, actor="eve")],
    ids=["answer", "review", "approval"],
)
def test_who_comes_after_silence_ended_it_is_refused(decision: Command) -> None:
    run = when(ITEMS["review"](on_silence="fail"), LAPSE, at=DUE)

    with pytest.raises(TransitionError, match="is failed"):
        decide(run, decision, now=DUE)


def test_an_approval_is_waited_for_from_when_nothing_else_is_missing() -> None:
    wants = {"approve_before_claim": True, "answer_within": "10m", "needs": [TASK]}
    run = given(post(), post("b", **wants))
    assert run.tasks["b"].deadline is None
    later = NOON + timedelta(hours=5)

    run = when(run, claim(), submit(3), judge(PASSED), at=later)

    assert run.tasks["b"].deadline == later + timedelta(minutes=10)


@pytest.mark.parametrize(
    ("name", "policy", "moves"),
    [
        ("question", "escalate", True),
        ("review", "escalate", False),
        ("review", "fail", True),
        ("approval", "skip", True),
    ],
)
def test_only_a_deadline_that_leads_elsewhere_is_worth_waiting_for(
    name: str, policy: str, *, moves: bool
) -> None:
    run = ITEMS[name](on_silence=policy)

    assert the_task(run).moves_by_silence is moves
    assert not the_task(when(run, LAPSE, at=DUE)).moves_by_silence
