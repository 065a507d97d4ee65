"""Given a history, when someone asks, then this happens, or is refused with a sentence."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from agent_run.contract.budget import Spend
from agent_run.contract.envelope import Envelope
from agent_run.contract.record import Question, Record
from agent_run.contract.verdict import Verdict
from agent_run.errors import (
    AlreadyPosted,
    ContractError,
    NotClaimable,
    OverBudget,
    StaleClaim,
    TransitionError,
    UnknownTask,
)
from agent_run.ledger import commands as wished
from agent_run.ledger.commands import Command
from agent_run.ledger.rules import RULES, decide
from agent_run.ledger.state import LEADS_TO, Status
from tests.support.stories import (
    FAILED,
    NOON,
    PASSED,
    QUARTER,
    TASK,
    UNDECIDED,
    UNSURE,
    answer,
    claim,
    given,
    judge,
    open_run,
    post,
    reserve,
    review,
    settle,
    submit,
    the_task,
    when,
)


def test_a_second_owner_is_refused_while_the_claim_holds() -> None:
    run = given(post(), claim("ada"))

    with pytest.raises(NotClaimable, match="claimed by 'ada' until 2026-11-15 12:15"):
        decide(run, claim("bob"), now=NOON + QUARTER / 2)


def test_an_expired_claim_passes_to_the_next_owner_under_a_new_page() -> None:
    run = when(given(post(), claim("ada")), claim("bob"), at=NOON + QUARTER)

    task = the_task(run)
    assert (task.owner, task.claim, task.attempt) == ("bob", 4, 2)


@pytest.mark.parametrize(
    "late",
    [
        submit(claim=2),
        wished.Heartbeat(task_id=TASK, actor="ada", claim=2),
        wished.Release(task_id=TASK, actor="ada", claim=2),
        wished.Ask(task_id=TASK, actor="ada", claim=2, question=Question(text="why?")),
        reserve("call", 1),
    ],
    ids=["submit", "heartbeat", "release", "ask", "reserve"],
)
def test_whatever_the_late_owner_wants_is_refused_with_a_sentence(late: Command) -> None:
    run = when(given(post(), claim("ada")), claim("bob"), at=NOON + QUARTER)

    with pytest.raises(
        StaleClaim, match="claim 2 on task 'repo-142' is not held: claim 4 of 'bob'"
    ):
        decide(run, late, now=NOON + QUARTER)


def test_a_late_owner_whose_task_nobody_took_may_still_hand_in() -> None:
    run = when(given(post(), claim("ada")), submit(), at=NOON + 2 * QUARTER)

    assert the_task(run).status is Status.SUBMITTED


def test_a_heartbeat_holds_the_claim_and_never_shortens_it() -> None:
    beat = wished.Heartbeat(task_id=TASK, actor="ada", claim=2, ttl=timedelta(seconds=1))
    run = when(given(post(), claim()), beat)
    longer = wished.Heartbeat(task_id=TASK, actor="ada", claim=2, ttl=QUARTER * 3)

    assert the_task(run).expires_at == NOON + QUARTER
    assert the_task(when(run, longer)).expires_at == NOON + 3 * QUARTER


def test_a_clock_that_steps_backwards_neither_ends_nor_extends_a_claim() -> None:
    run = given(post(), claim("ada"))
    an_hour_ago = NOON - timedelta(hours=1)

    with pytest.raises(NotClaimable):
        decide(run, claim("bob"), now=an_hour_ago)
    beat = wished.Heartbeat(task_id=TASK, actor="ada", claim=2, ttl=QUARTER)
    (event,) = decide(run, beat, now=an_hour_ago)
    assert event.at == NOON


def test_an_expired_claim_is_let_go_and_a_living_one_is_not() -> None:
    run = given(post(), claim())
    expire = wished.Expire(task_id=TASK, actor="sweeper")

    with pytest.raises(TransitionError, match="holds until"):
        decide(run, expire, now=NOON)
    assert the_task(when(run, expire, at=NOON + QUARTER)).status is Status.READY


def test_work_whose_owner_vanished_goes_to_a_person_if_the_manifest_says_so() -> None:
    run = given(post(on_crash="escalate"), claim("ada"))

    run = when(run, claim("bob"), at=NOON + QUARTER)

    task = the_task(run)
    assert (task.status, task.reason) == (Status.ESCALATED, "crashed")
    assert "owner 'ada' was not heard of" in task.note


def test_a_released_task_costs_no_attempt() -> None:
    release = wished.Release(task_id=TASK, actor="ada", claim=2, reason="wrong machine")
    run = given(post(budget={"max_attempts": 1}), claim(), release, claim())

    assert the_task(run).status is Status.CLAIMED
    assert the_task(run).attempt == 2


def test_a_failed_try_given_back_counts_and_the_last_one_escalates() -> None:
    run = given(post(budget={"max_attempts": 1}), claim())
    release = wished.Release(task_id=TASK, actor="ada", claim=2, counts=True)

    assert the_task(when(run, release)).status is Status.ESCALATED


def test_a_task_waits_for_what_it_needs_and_is_ready_when_the_last_is_accepted() -> None:
    run = given(post("a"), post("b"), post(needs=["a", "b"]))
    with pytest.raises(NotClaimable, match="waits for 'a', 'b'"):
        decide(run, claim(), now=NOON)

    run = when(run, claim(task_id="a"), submit(4, "a"), judge(task_id="a"))
    assert the_task(run).status is Status.WAITING

    run = when(run, claim(task_id="b"), submit(7, "b"), judge(task_id="b"))
    assert the_task(run).status is Status.READY


def test_a_need_that_is_already_accepted_is_not_waited_for() -> None:
    run = given(post("a"), claim(task_id="a"), submit(2, "a"), judge(task_id="a"))

    assert the_task(when(run, post(needs=["a"]))).status is Status.READY


@pytest.mark.parametrize(
    ("command", "error", "sentence"),
    [
        (post(), AlreadyPosted, "task 'repo-142' is already posted"),
        (post("x", needs=["ghost"]), ContractError, "needs 'ghost', which is not in this run"),
        (post("x", needs=["x"]), ContractError, "task 'x' needs itself"),
        (claim(task_id="ghost"), UnknownTask, "no task 'ghost' in this run"),
        (judge(), TransitionError, "is ready, expected it to be submitted"),
        (answer(), TransitionError, "is ready, expected it to be asked or escalated"),
        (submit(1), StaleClaim, "nobody ever claimed it"),
        (
            wished.Approve(task_id=TASK, actor="eve"),
            TransitionError,
            "expected it to be waiting",
        ),
        (wished.OpenRun(actor="planner"), TransitionError, "already open"),
    ],
)
def test_what_does_not_fit_is_refused(
    command: Command, error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        decide(given(post()), command, now=NOON)


def test_a_task_that_asks_for_approval_waits_for_a_person() -> None:
    run = given(post(approve_before_claim=True))
    with pytest.raises(NotClaimable, match="waits for a person's approval"):
        decide(run, claim(), now=NOON)

    run = when(run, wished.Approve(task_id=TASK, actor="eve"), claim())

    assert the_task(run).status is Status.CLAIMED


@pytest.mark.parametrize(
    ("verdict", "attempts", "status"),
    [
        pytest.param(PASSED, 1, Status.ACCEPTED, id="gates passed"),
        pytest.param(FAILED, 2, Status.READY, id="gates failed, an attempt left"),
        pytest.param(FAILED, 1, Status.ESCALATED, id="gates failed, no attempt left"),
        pytest.param(UNSURE, 2, Status.ESCALATED, id="not confident enough"),
        pytest.param(UNDECIDED, 2, Status.SUBMITTED, id="gates undecided"),
    ],
)
def test_what_a_verdict_leads_to(verdict: Verdict, attempts: int, status: Status) -> None:
    run = given(post(budget={"max_attempts": attempts}), claim(), submit(), judge(verdict))

    assert the_task(run).status is status


def test_gates_that_stay_undecided_ask_a_person_and_never_reject() -> None:
    run = given(post(), claim(), submit(), *(judge(UNDECIDED) for _ in range(3)))

    task = the_task(run)
    assert (task.status, task.reason) == (Status.ESCALATED, "timeout")
    assert the_task(when(run, review(PASSED))).status is Status.ACCEPTED


def test_an_executor_may_not_judge_its_own_work() -> None:
    run = given(post(), claim("ada"), submit())

    with pytest.raises(TransitionError, match="'ada' did the work"):
        decide(run, wished.Judge(task_id=TASK, actor="ada", verdict=PASSED), now=NOON)


def approve_as(actor: str) -> wished.Decide:
    return wished.Decide(task_id=TASK, actor=actor, verdict=PASSED)


@pytest.mark.parametrize("observed", [None, {"executor": "by hand"}])
def test_nobody_approves_what_they_did_by_hand(observed: Any) -> None:
    run = given(post(review="human"), claim("ada"), submit(observed=observed), judge())

    with pytest.raises(
        TransitionError, match="'ada' did the work on task 'repo-142' by hand and may not"
    ):
        decide(run, approve_as("ada"), now=NOON)

    assert the_task(when(run, approve_as("eve"))).status is Status.ACCEPTED


def test_what_an_executor_did_under_a_persons_name_that_person_may_approve() -> None:
    seen = {"executor": "claude"}
    run = given(post(review="human"), claim("ada"), submit(observed=seen), judge())

    assert the_task(when(run, approve_as("ada"))).status is Status.ACCEPTED


def test_who_claimed_last_does_not_hide_whose_record_is_approved() -> None:
    story = (claim("ada"), submit(), judge(FAILED), claim("bob"))
    run = given(post(on_crash="escalate"), *story)
    run = when(run, wished.Expire(task_id=TASK, actor="sweeper"), at=NOON + QUARTER)

    with pytest.raises(TransitionError, match="'ada' did the work"):
        decide(run, approve_as("ada"), now=NOON + QUARTER)

    assert the_task(when(run, approve_as("bob"))).status is Status.ACCEPTED


def test_whoever_worked_by_hand_may_still_take_the_work_back() -> None:
    run = given(post(review="human"), claim("ada"), submit(), judge())

    run = when(run, wished.Decide(task_id=TASK, actor="ada", verdict=FAILED))

    assert the_task(run).status is Status.READY


def test_a_verdict_about_an_older_record_is_refused() -> None:
    run = given(post(), claim(), submit(), judge(FAILED), claim(), submit(5))

    with pytest.raises(TransitionError, match="the record of claim 2"):
        decide(run, judge(PASSED, claim=2), now=NOON)


def test_a_manifest_can_ask_for_a_person_after_the_gates() -> None:
    run = given(post(review="human"), claim(), submit(), judge())

    assert the_task(run).status is Status.ESCALATED
    assert the_task(when(run, review(PASSED))).status is Status.ACCEPTED


@pytest.mark.parametrize(("risks", "status"), [((), "accepted"), (("odd",), "escalated")])
def test_a_person_looks_at_risky_work_only(risks: tuple[str, ...], status: str) -> None:
    run = given(post(review="human-if-risky"), claim(), submit(risks=risks), judge())

    assert the_task(run).status == status


def test_rejected_work_is_returned_while_attempts_are_left_then_fails() -> None:
    run = given(post(review="human", budget={"max_attempts": 2}), claim(), submit(), judge())
    run = when(run, review(FAILED))
    assert the_task(run).status is Status.READY
    assert the_task(run).returned == (FAILED,)

    run = when(run, claim(), submit(6), judge(), review(FAILED))

    assert (the_task(run).status, the_task(run).reason) == (Status.FAILED, "review_rejected")


def test_nothing_can_be_approved_that_was_never_submitted() -> None:
    run = given(post(on_crash="escalate"), claim())
    run = when(run, wished.Expire(task_id=TASK, actor="sweeper"), at=NOON + QUARTER)

    with pytest.raises(TransitionError, match="nothing was submitted"):
        decide(run, review(PASSED), now=NOON)


def test_who_answers_an_escalation_grants_a_fresh_set_of_attempts() -> None:
    run = given(post(budget={"max_attempts": 1}), claim(), submit(), judge(FAILED))

    run = when(run, answer("use the other endpoint"), claim())

    assert the_task(run).status is Status.CLAIMED
    assert the_task(run).answers[-1][1] == "use the other endpoint"


@pytest.mark.parametrize(
    "record", [{"status": "blocked", "notes": "no access"}, {"next_action": "escalate"}]
)
def test_an_executor_that_is_stuck_gets_a_person(record: dict[str, Any]) -> None:
    run = given(post(), claim(), submit(**record))

    assert the_task(run).status is Status.ESCALATED


def test_a_question_waits_for_a_person_and_costs_no_attempt() -> None:
    run = given(post(budget={"max_attempts": 1}), claim(), submit(question="Which branch?"))
    assert the_task(run).status is Status.ASKED

    run = when(run, answer("main"), claim())

    assert the_task(run).status is Status.CLAIMED
    assert the_task(run).answers == (("Which branch?", "main"),)


def test_a_person_grants_wider_scope_and_the_manifest_then_allows_it() -> None:
    question = Question(text="May I edit the helper?", wider_scope=("src/helper.py",))
    run = given(post(allowed_paths=["src/a.py"]), claim(), submit(question=question))

    run = when(run, wished.Widen(task_id=TASK, actor="eve", paths=("src/helper.py",)))

    assert the_task(run).manifest.allowed_paths == ("src/a.py", "src/helper.py")
    assert the_task(run).status is Status.READY


def test_an_envelope_is_written_down_before_anybody_works() -> None:
    envelope = Envelope(source="a", target=TASK, payload={"n": 1}, trace_id="t")
    hand_over = wished.HandOver(task_id=TASK, actor="topology", envelope=envelope)

    assert the_task(given(post(), hand_over)).inbox == (envelope,)
    with pytest.raises(TransitionError, match="is claimed"):
        decide(given(post(), claim()), hand_over, now=NOON)


def test_a_reservation_above_the_task_budget_is_refused_with_the_numbers() -> None:
    run = given(post(budget={"max_tokens": 100}), claim(), reserve("one", 60))

    with pytest.raises(OverBudget, match="tokens 101 > 100"):
        decide(run, reserve("two", 41), now=NOON)
    assert the_task(when(run, settle("one", 10), reserve("two", 90))).spent.tokens == 10


def test_parallel_tasks_cannot_promise_the_same_tokens_twice() -> None:
    run = given(
        open_run(max_tokens=1_000),
        post("a", budget={"max_tokens": 600}),
        post("b", budget={"max_tokens": 600}),
        claim(task_id="a"),
    )

    with pytest.raises(NotClaimable, match="waits for budget that others have set aside"):
        decide(run, claim(task_id="b"), now=NOON)
    run = when(run, submit(4, "a", tokens_used=300), claim(task_id="b"))
    assert run.committed.tokens == 900


def test_a_run_without_budget_left_escalates_instead_of_starting_work() -> None:
    run = given(open_run(max_tokens=100), post(), claim(), submit(3, tokens_used=100))

    run = when(run, post("b"), claim(task_id="b"))

    task = the_task(run, "b")
    assert (task.status, task.reason) == (Status.ESCALATED, "over_budget")
    assert "tokens 100 of 100 are used" in task.note


def test_stop_on_budget_fails_the_task() -> None:
    run = given(open_run(max_attempts=1, on_budget="stop"), post("a"), post("b"))

    run = when(run, claim(task_id="a"), claim(task_id="b"))

    assert the_task(run, "b").status is Status.FAILED


def test_the_time_of_a_run_is_a_budget_too() -> None:
    run = when(given(open_run(time_budget_sec=60), post()), claim(), at=NOON + QUARTER)

    assert "time 900s > 60s" in the_task(run).note


def test_overspending_is_written_down_and_escalated() -> None:
    run = given(post(budget={"max_tokens": 100}), claim(), submit(tokens_used=101))

    assert the_task(run).status is Status.ESCALATED
    assert run.spent.tokens == 101


def test_calls_settled_on_the_way_are_not_counted_again_with_the_record() -> None:
    run = given(post(), claim(), reserve("one", 50), settle("one", 40), submit(tokens_used=55))

    assert run.spent.tokens == 55


def test_a_call_whose_outcome_nobody_knows_counts_as_spent() -> None:
    run = given(post(), claim(), reserve("one", 50))

    run = when(run, wished.Expire(task_id=TASK, actor="sweeper"), at=NOON + QUARTER)

    assert run.spent.tokens == 50
    assert the_task(run).unknown == ("one",)


def test_a_settled_call_is_never_paid_for_again() -> None:
    run = given(post(), claim(), reserve("one", 50), settle("one", 40))

    with pytest.raises(TransitionError, match="already settled"):
        decide(run, reserve("one", 50), now=NOON)


def test_a_record_about_another_task_is_refused() -> None:
    about_other = wished.Submit(
        task_id=TASK, actor="ada", claim=2, record=Record(task_id="other")
    )

    with pytest.raises(ContractError, match="about task 'other', expected 'repo-142'"):
        decide(given(post(), claim()), about_other, now=NOON)


def test_cancelling_a_run_cancels_what_is_open_and_lets_nothing_in() -> None:
    run = given(post("a"), claim(task_id="a"), submit(2, "a"), judge(task_id="a"), post("b"))

    run = when(run, wished.CancelRun(actor="eve", reason="no longer needed"))

    assert the_task(run, "a").status is Status.ACCEPTED
    assert the_task(run, "b").status is Status.CANCELLED
    with pytest.raises(TransitionError, match="cancelled run"):
        decide(run, post("c"), now=NOON)


def test_the_owner_of_a_cancelled_task_learns_it_at_the_next_heartbeat() -> None:
    run = given(post(), claim(), wished.Cancel(task_id=TASK, actor="eve"))

    with pytest.raises(StaleClaim, match="the task is cancelled"):
        decide(run, wished.Heartbeat(task_id=TASK, actor="ada", claim=2), now=NOON)


def test_an_applied_result_can_be_rolled_back_once() -> None:
    applied = wished.NoteApplied(task_id=TASK, actor="eve", onto="main", commit="c0ffee")
    back = wished.NoteRolledBack(task_id=TASK, actor="eve", commit="decaf")
    run = given(post(), claim(), submit(), judge(), applied)

    assert the_task(run).applied == "c0ffee"
    run = when(run, back)
    with pytest.raises(TransitionError, match="is not applied"):
        decide(run, back, now=NOON)


def test_every_command_has_a_rule() -> None:
    assert set(RULES) == set(Command.__args__)


def test_what_is_settled_leads_nowhere() -> None:
    settled = {Status.ACCEPTED, Status.FAILED, Status.CANCELLED, Status.SKIPPED}

    for event, move in LEADS_TO.items():
        if move.after:
            assert not move.before & settled, event


def test_a_judge_spends_from_the_budget_of_the_task_it_judges() -> None:
    run = given(open_run(max_tokens=200), post(budget={"max_tokens": 100}), claim(), at=NOON)
    run = when(run, submit(claim=3, tokens_used=30))
    asking = replace(reserve("review", 50, claim=3), actor="judge")

    run = when(run, asking)
    with pytest.raises(OverBudget, match="task"):
        decide(run, replace(asking, key="again", amount=Spend(tokens=21)), now=NOON)
    assert run.committed.tokens == 80
    run = when(run, replace(settle("review", 40, claim=3), actor="judge"), judge(claim=3))

    task = the_task(run)
    assert (task.status, task.spent.tokens, run.spent.tokens) == (Status.ACCEPTED, 70, 70)
    assert f"{TASK}/review" in run.journal


def test_what_a_judge_began_and_never_settled_counts_as_spent_with_the_verdict() -> None:
    run = given(post(), claim(), submit(), replace(reserve("review", 50), actor="judge"))

    run = when(run, judge(FAILED))

    task = the_task(run)
    assert (task.spent.tokens, task.calls, task.unknown) == (50, (), ("review",))


def test_who_worked_on_a_task_spends_nothing_after_handing_in() -> None:
    run = given(post(), claim(), submit())

    with pytest.raises(StaleClaim, match="the task is submitted"):
        decide(run, reserve("late", 1), now=NOON)
    with pytest.raises(StaleClaim):
        decide(run, replace(reserve("old", 1, claim=1), actor="judge"), now=NOON)
