"""Rules of judgement: what follows a record, a verdict, a person's word."""

from datetime import datetime
from typing import Final

from agent_run.contract.budget import UNLIMITED
from agent_run.errors import ContractError, TransitionError
from agent_run.ledger.commands import Answer, Ask, Decide, Judge, Submit, Widen
from agent_run.ledger.events import (
    AnyEvent,
    QuestionAnswered,
    QuestionAsked,
    RecordSubmitted,
    ScopeWidened,
    TaskAccepted,
    TaskEscalated,
    TaskFailed,
    TaskReturned,
    VerdictDeferred,
)
from agent_run.ledger.lookup import held_claim, in_status, passed_on
from agent_run.ledger.spending import over_budget
from agent_run.ledger.state import BY_HAND, RunState, Status, TaskState
from agent_run.ledger.words import against

MOST_DEFERRALS: Final = 2
"""How often the gates may be undecided about one record before a person is asked."""


def submit(run: RunState, command: Submit, now: datetime) -> tuple[AnyEvent, ...]:
    """Take the record, under the claim that counts and no other."""
    task = held_claim(run, command.task_id, command.claim)
    record = command.record
    if record.task_id is not None and record.task_id != command.task_id:
        msg = f"the record is about task {record.task_id!r}, expected {command.task_id!r}"
        raise ContractError(msg)
    submitted = RecordSubmitted(
        task_id=command.task_id,
        at=now,
        actor=command.actor,
        claim=command.claim,
        record=record,
        observed=command.observed,
    )
    if record.question is not None:
        ask_command = Ask(
            task_id=command.task_id,
            actor=command.actor,
            claim=command.claim,
            question=record.question,
        )
        return (submitted, _asked(task, ask_command, now))
    follow_up = _overspent(run, task, command, now) or _stopped_by_executor(command, now)
    return (submitted, *follow_up)


def judge(run: RunState, command: Judge, now: datetime) -> tuple[AnyEvent, ...]:
    """Accept, return, defer or escalate; the executor may not judge its own work."""
    task = in_status(run, command.task_id, Status.SUBMITTED)
    if command.claim is not None and command.claim != task.claim:
        msg = f"the record of claim {command.claim} is no longer the one to judge"
        raise TransitionError(msg)
    if command.actor == task.worked_by:
        msg = f"{command.actor!r} did the work on task {command.task_id!r} and may not judge it"
        raise TransitionError(msg)
    match command.verdict.outcome:
        case "pass":
            return _passed(run, task, command, now)
        case "inconclusive":
            return (_undecided(task, command, now),)
        case "fail":
            return (_refused(task, command, now),)


def decide_as_person(run: RunState, command: Decide, now: datetime) -> tuple[AnyEvent, ...]:
    """Accept or reject work that waits for a person; nobody approves work of their own hands.

    What an executor did is another matter, even when it worked under this person's name.
    """
    task = in_status(run, command.task_id, Status.ESCALATED, Status.SUBMITTED)
    if command.verdict.passed:
        if task.record is None:
            msg = f"nothing was submitted for task {command.task_id!r} that could be approved"
            raise TransitionError(msg)
        if command.actor == task.record_by and _done_by_hand(task):
            msg = (
                f"{command.actor!r} did the work on task {command.task_id!r} by hand and may"
                " not approve it, expected another person or the gates to"
            )
            raise TransitionError(msg)
        return _accepted(run, command, now)
    if task.attempts_left or command.again:
        return (_returned(command, now),)
    failed = TaskFailed(
        task_id=command.task_id,
        at=now,
        actor=command.actor,
        reason="review_rejected",
        note=against(command.verdict),
        verdict=command.verdict,
    )
    return (failed,)


def ask(run: RunState, command: Ask, now: datetime) -> tuple[AnyEvent, ...]:
    """Give the task back with a question; the attempt is not counted."""
    task = held_claim(run, command.task_id, command.claim)
    return (_asked(task, command, now),)


def answer(run: RunState, command: Answer, now: datetime) -> tuple[AnyEvent, ...]:
    """Write the answer down; only then may anybody act on it."""
    in_status(run, command.task_id, Status.ASKED, Status.ESCALATED)
    return (
        QuestionAnswered(
            task_id=command.task_id, at=now, actor=command.actor, answer=command.answer
        ),
    )


def widen(run: RunState, command: Widen, now: datetime) -> tuple[AnyEvent, ...]:
    """Allow more paths, and let the work go on."""
    in_status(run, command.task_id, Status.ASKED, Status.ESCALATED)
    if not command.paths:
        msg = f"no path was named to widen the scope of task {command.task_id!r} by"
        raise ContractError(msg)
    return (
        ScopeWidened(task_id=command.task_id, at=now, actor=command.actor, paths=command.paths),
    )


def _asked(task: TaskState, command: Ask, now: datetime) -> QuestionAsked:
    within = task.manifest.answer_within
    return QuestionAsked(
        task_id=command.task_id,
        at=now,
        actor=command.actor,
        claim=command.claim,
        question=command.question,
        deadline=now + within if within else None,
    )


def _overspent(
    run: RunState, task: TaskState, command: Submit, now: datetime
) -> tuple[AnyEvent, ...]:
    unreported = command.record.spend - (task.spent - task.spent_at_claim)
    spent = task.spent + task.reserved + unreported
    budget = task.manifest.budget
    broken = budget.exceeded_by(spent)
    if run.budget is not UNLIMITED:
        whole = run.spent - task.spent + spent
        broken += [f"run {limit}" for limit in run.budget.exceeded_by(whole)]
    if not broken or budget.on_budget == "degrade":
        return ()
    note = "over budget: " + "; ".join(broken)
    return (
        over_budget(budget, task_id=command.task_id, note=note, now=now, actor=command.actor),
    )


def _stopped_by_executor(command: Submit, now: datetime) -> tuple[AnyEvent, ...]:
    record = command.record
    if record.status != "blocked" and record.next_action != "escalate":
        return ()
    seen = command.observed if isinstance(command.observed, dict) else {}
    escalated = TaskEscalated(
        task_id=command.task_id,
        at=now,
        actor=command.actor,
        reason="over_budget" if seen.get("ended") == "over_budget" else "executor_failed",
        note=record.stated or "the executor asks for a person and does not say why",
    )
    return (escalated,)


def _passed(
    run: RunState, task: TaskState, command: Judge, now: datetime
) -> tuple[AnyEvent, ...]:
    wants = _wants_review(task)
    if not wants:
        return _accepted(run, command, now)
    escalated = TaskEscalated(
        task_id=command.task_id,
        at=now,
        actor=command.actor,
        reason="verified",
        note=f"every gate passed; {wants}",
        verdict=command.verdict,
    )
    return (escalated,)


def _done_by_hand(task: TaskState) -> bool:
    """Say whether no executor had a part in the record: a worker always names its own."""
    seen = task.observed if isinstance(task.observed, dict) else {}
    return seen.get("executor", BY_HAND) == BY_HAND


def _wants_review(task: TaskState) -> str:
    review, record = task.manifest.review, task.record
    if review == "human":
        return "the manifest asks for a person's review"
    if review == "human-if-risky" and record and (record.risks or record.warnings):
        return "the executor named risks, and the manifest asks for a person's review then"
    return ""


def _accepted(run: RunState, command: Judge | Decide, now: datetime) -> tuple[AnyEvent, ...]:
    accepted = TaskAccepted(
        task_id=command.task_id,
        at=now,
        actor=command.actor,
        verdict=command.verdict,
        result=command.result,
        rollback=command.rollback,
    )
    return (accepted, *passed_on(run, command, now))


def _undecided(task: TaskState, command: Judge, now: datetime) -> AnyEvent:
    if task.deferrals < MOST_DEFERRALS:
        return VerdictDeferred(
            task_id=command.task_id, at=now, actor=command.actor, verdict=command.verdict
        )
    return _to_person(command, "the gates cannot decide", now)


def _refused(task: TaskState, command: Judge, now: datetime) -> AnyEvent:
    failures = command.verdict.failures
    if all(finding.reason == "low_confidence" for finding in failures):
        return _to_person(command, "the executor is not sure enough of its work", now)
    if task.attempts_left:
        return _returned(command, now)
    return _to_person(command, "the last attempt did not pass", now)


def _returned(command: Judge | Decide, now: datetime) -> TaskReturned:
    return TaskReturned(
        task_id=command.task_id,
        at=now,
        actor=command.actor,
        verdict=command.verdict,
        note=against(command.verdict),
    )


def _to_person(command: Judge, why: str, now: datetime) -> TaskEscalated:
    return TaskEscalated(
        task_id=command.task_id,
        at=now,
        actor=command.actor,
        reason=command.verdict.failures[0].reason,
        note=f"{why}: {against(command.verdict)}",
        verdict=command.verdict,
    )
