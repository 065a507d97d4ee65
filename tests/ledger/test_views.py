"""Views say what was written, and leave nothing out."""

from typing import get_args

import pytest

from agent_run.contract.budget import Spend
from agent_run.contract.envelope import Envelope
from agent_run.contract.manifest import Manifest
from agent_run.contract.record import Question, Record
from agent_run.ledger import commands as wished
from agent_run.ledger import events as happened
from agent_run.ledger.events import AnyEvent
from agent_run.ledger.pages import FIRST, seal
from agent_run.ledger.state import Status
from agent_run.ledger.views import (
    findings_of,
    spend_of,
    status_rows,
    summary,
    timeline,
)
from agent_run.ledger.words import counted
from tests.support.stories import (
    FAILED,
    NOON,
    PASSED,
    QUARTER,
    TASK,
    UNDECIDED,
    claim,
    given,
    judge,
    post,
    submit,
)

SAID = {"task_id": TASK, "at": NOON, "actor": "ada"}
WHOLE = {"task_id": "", "at": NOON, "actor": "ada"}
MANIFEST = Manifest(task_id=TASK, objective="fix it", needs=("a", "b"))
ENVELOPE = Envelope(source="a", target=TASK, payload={}, trace_id="t")
SPENT = Spend(tokens=12, requests=1, unpriced_requests=1)
EXAMPLES: tuple[tuple[AnyEvent, str], ...] = (
    (happened.RunOpened(**WHOLE, intent="ship"), "ship"),
    (happened.RunCancelled(**WHOLE, reason="too late"), "too late"),
    (happened.TaskPosted(**SAID, manifest=MANIFEST), "fix it (needs a, b)"),
    (happened.TaskApproved(**SAID), "work may begin"),
    (happened.TaskUnblocked(**SAID), "all it waited for is there"),
    (happened.HandoffMade(**SAID, envelope=ENVELOPE), "from a"),
    (
        happened.TaskClaimed(**SAID, owner="ada", expires_at=NOON + QUARTER, attempt=1),
        "attempt 1 by ada, until 2026-11-15 12:15:00Z",
    ),
    (
        happened.ClaimExtended(**SAID, claim=2, expires_at=NOON + QUARTER),
        "claim 2 holds until 2026-11-15 12:15:00Z",
    ),
    (
        happened.ClaimReleased(**SAID, claim=2, reason="lunch", counted=True),
        "claim 2 given back, the attempt counts: lunch",
    ),
    (happened.ClaimExpired(**SAID, claim=2, owner="bob"), "claim 2 of bob ran out"),
    (
        happened.SpendReserved(**SAID, claim=2, key="call-1", amount=SPENT),
        "call-1: 12 tokens, 1 request, 1 without a known price",
    ),
    (happened.SpendSettled(**SAID, key="call-1", spent=Spend()), "call-1: nothing"),
    (
        happened.RecordSubmitted(
            **SAID, claim=2, record=Record(files_changed=("a",), risks=("x",), confidence=0.5)
        ),
        "under claim 2: needs_review, 1 file, 1 risk, confidence 0.5",
    ),
    (happened.VerdictDeferred(**SAID, verdict=UNDECIDED), "commands inconclusive (timeout)"),
    (happened.TaskAccepted(**SAID, verdict=PASSED), "commands pass"),
    (happened.TaskReturned(**SAID, verdict=FAILED), "commands fail (verification_failed)"),
    (happened.TaskEscalated(**SAID, reason="timeout", note="late"), "late"),
    (
        happened.QuestionAsked(
            **SAID, claim=2, question=Question(text="Which?"), deadline=NOON + QUARTER
        ),
        "Which?, until 2026-11-15 12:15:00Z",
    ),
    (happened.QuestionAnswered(**SAID, answer={"cap": 30}), "{'cap': 30}"),
    (happened.ScopeWidened(**SAID, paths=("a", "b")), "a, b"),
    (
        happened.DeadlineSet(**SAID, deadline=NOON + QUARTER),
        "a person has until 2026-11-15 12:15:00Z",
    ),
    (
        happened.DeadlineMissed(**SAID, deadline=NOON + QUARTER),
        "nobody came before 2026-11-15 12:15:00Z",
    ),
    (
        happened.TaskFailed(**SAID, reason="crashed"),
        "whoever worked on it was not heard of any more",
    ),
    (happened.TaskCancelled(**SAID, note="no more"), "no more"),
    (happened.TaskSkipped(**SAID, note="a failed"), "a failed"),
    (happened.ResultApplied(**SAID, onto="main", commit="abc"), "onto main as abc"),
    (happened.ResultRolledBack(**SAID, commit="abc"), "as abc"),
    (happened.NoteWritten(**SAID, topic="weather", body="fine"), "weather: fine"),
)


@pytest.mark.parametrize(
    ("event", "text"), EXAMPLES, ids=lambda value: getattr(value, "kind", "")
)
def test_each_kind_of_event_has_its_words(event: AnyEvent, text: str) -> None:
    page = seal("run-1", 7, "t" * 32, event, previous=FIRST)

    (line,) = timeline([page])

    assert line.text == text
    assert (line.seq, line.kind, line.actor, line.task_id) == (
        7,
        event.kind,
        "ada",
        event.task_id,
    )


def test_there_is_an_example_of_every_kind() -> None:
    assert {type(event) for event, _ in EXAMPLES} == set(get_args(AnyEvent))


def test_a_list_of_tasks_comes_in_the_order_of_posting() -> None:
    run = given(post(), post("b", needs=(TASK,)), post("c", approve_before_claim=True), claim())

    first, second, third = status_rows("run-1", run)

    assert (first.status, first.owner, first.claim) == (Status.CLAIMED, "ada", 4)
    assert first.expires_at == NOON + QUARTER
    assert (second.status, second.needs, second.note) == (
        Status.WAITING,
        (TASK,),
        f"needs {TASK}",
    )
    assert third.note == "needs approval"


def test_returned_work_says_what_the_gates_found() -> None:
    run = given(post(), claim(), submit(), judge(FAILED))

    (row,) = status_rows("run-1", run)

    assert (row.status, row.owner) == (Status.READY, None)
    assert row.note == "returned: a check failed: seen"


def test_applied_work_names_its_commit() -> None:
    applied = wished.NoteApplied(task_id=TASK, actor="ada", onto="main", commit="abc")
    run = given(post(), claim(), submit(), judge(PASSED), applied)

    (row,) = status_rows("run-1", run)

    assert row.note == "applied as abc"


def test_a_run_is_summed_up() -> None:
    run = given(post(), post("b"), claim(), submit(3, tokens_used=5), judge(PASSED))

    told = summary("run-1", run)

    assert told.counts == {Status.ACCEPTED: 1, Status.READY: 1}
    assert not told.settled
    assert (told.pages, told.spent.tokens, told.opened_at) == (5, 5, NOON)
    assert summary("run-2", given(post(), claim(), submit(), judge(PASSED))).settled


def test_what_a_status_of_a_question_says_is_the_question() -> None:
    ask = wished.Ask(task_id=TASK, actor="ada", claim=2, question=Question(text="Which?"))

    (row,) = status_rows("run-1", given(post(), claim(), ask))

    assert row.note == "Which?"


def test_amounts_read_as_words() -> None:
    assert counted(1, "page") == "1 page"
    assert counted(0, "page") == "0 pages"
    assert spend_of(Spend()) == ""
    assert findings_of(PASSED) == "commands pass"
