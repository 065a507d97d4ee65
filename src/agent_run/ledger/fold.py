"""How things came to stand: events folded into the state of a run.

`evolve` holds no rules. It trusts every event, because `rules.decide` refused the bad ones
before they were written. It costs the same for the first task of a run and for the last.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from agent_run.contract.budget import NOTHING, UNLIMITED
from agent_run.contract.record import Question
from agent_run.ledger import events as happened
from agent_run.ledger.events import AnyEvent
from agent_run.ledger.state import BASE, LEADS_TO, RunState, Status, TaskState, changed_by

EMPTY: Final = RunState()

_SCOPE_GRANTED: Final = "wider scope"


def evolve(run: RunState, event: AnyEvent) -> RunState:
    """Return the run as it stands after `event`."""
    seq = run.seq + 1
    changes: dict[str, Any]
    match event:
        case happened.TaskPosted():
            changes = _posted(run, seq, event)
        case happened.RunOpened():
            budget = event.budget if event.budget != UNLIMITED else UNLIMITED
            changes = {"intent": event.intent, "budget": budget, "plan": event.plan}
        case happened.RunCancelled():
            changes = {"cancelled": True}
        case happened.NoteWritten():
            changes = _noted(run, event)
        case _:
            changes = _changed(run, seq, event)
    changes["seq"], changes["at"] = seq, event.at
    if run.opened_at is None:
        changes["opened_at"] = event.at
    return changed_by(run, changes)


def fold(events: Iterable[AnyEvent], onto: RunState = EMPTY) -> RunState:
    """Return the run as it stands after all `events`."""
    run = onto
    for event in events:
        run = evolve(run, event)
    return run


def _noted(run: RunState, event: happened.NoteWritten) -> dict[str, Any]:
    task = run.tasks.get(event.task_id)
    if task is None or event.topic != BASE or task.base is not None:
        return {}
    return {"tasks": run.tasks.set(event.task_id, changed_by(task, {"base": event.body}))}


def _posted(run: RunState, seq: int, event: happened.TaskPosted) -> dict[str, Any]:
    manifest, task_id = event.manifest, event.task_id
    unmet = frozenset(n for n in manifest.needs if run.tasks[n].status is not Status.ACCEPTED)
    approved = not manifest.approve_before_claim
    task = TaskState(
        manifest=manifest,
        status=Status.WAITING if unmet or not approved else Status.READY,
        posted=seq,
        unmet=unmet,
        approved=approved,
        granted=manifest.budget.attempts,
        changed=seq,
    )
    dependents = run.dependents
    for need in unmet:
        dependents = dependents.set(need, (*dependents.get(need, ()), task_id))
    return {"tasks": run.tasks.set(task_id, task), "dependents": dependents}


def _changed(run: RunState, seq: int, event: AnyEvent) -> dict[str, Any]:
    before = run.tasks[event.task_id]
    kind = type(event)
    changes = _CHANGES[kind](before, event, seq)
    changes["changed"] = seq
    for status in LEADS_TO[kind].after:
        changes["status"] = status
        if before.status is Status.CLAIMED:
            changes |= _claim_ended(before, changes)
    task = changed_by(before, changes)
    return _accounts(run, before, task) | _rest_of_run(run, task, event)


def _accounts(run: RunState, before: TaskState, task: TaskState) -> dict[str, Any]:
    changes: dict[str, Any] = {"tasks": run.tasks.set(task.manifest.task_id, task)}
    if before.spent is not task.spent:
        changes["spent"] = run.spent - before.spent + task.spent
    old, new = before.committed, task.committed
    if old is not new:
        changes["committed"] = run.committed - old + new
    return changes


def _rest_of_run(run: RunState, task: TaskState, event: AnyEvent) -> dict[str, Any]:
    match event:
        case happened.TaskClaimed():
            return {"attempts": run.attempts + 1}
        case happened.SpendSettled(key=key, result=result):
            return {"journal": run.journal.set(f"{event.task_id}/{key}", result)}
        case happened.TaskAccepted() if event.task_id in run.dependents:
            return _need_met(run, task)
        case _:
            return {}


def _claim_ended(task: TaskState, changes: Mapping[str, Any]) -> dict[str, Any]:
    """What a claim leaves behind: calls nobody settled count as spent, for we cannot know."""
    spent = changes.get("spent", task.spent)
    return {
        "owner": None,
        "expires_at": None,
        "held": NOTHING,
        "calls": (),
        "unknown": (*task.unknown, *(key for key, _ in task.calls)),
        "spent": spent + task.reserved if task.calls else spent,
    }


def _need_met(run: RunState, met: TaskState) -> dict[str, Any]:
    need = met.manifest.task_id
    tasks = run.tasks.set(need, met)
    for task_id in run.dependents[need]:
        task = tasks[task_id]
        tasks = tasks.set(task_id, changed_by(task, {"unmet": task.unmet - {need}}))
    return {"tasks": tasks, "dependents": run.dependents.delete(need)}


def _nothing(task: TaskState, event: Any, seq: int) -> dict[str, Any]:
    return {}


def _approved(task: TaskState, event: happened.TaskApproved, seq: int) -> dict[str, Any]:
    return {"approved": True}


def _handed_over(task: TaskState, event: happened.HandoffMade, seq: int) -> dict[str, Any]:
    return {"inbox": (*task.inbox, event.envelope)}


def _claimed(task: TaskState, event: happened.TaskClaimed, seq: int) -> dict[str, Any]:
    return {
        "owner": event.owner,
        "expires_at": event.expires_at,
        "claim": seq,
        "attempt": event.attempt,
        "held": event.held if event.held != NOTHING else NOTHING,
        "worked_by": event.owner,
        "spent_at_claim": task.spent,
        "deferrals": 0,
        "reason": None,
        "note": "",
    }


def _extended(task: TaskState, event: happened.ClaimExtended, seq: int) -> dict[str, Any]:
    return {"expires_at": event.expires_at}


def _released(task: TaskState, event: happened.ClaimReleased, seq: int) -> dict[str, Any]:
    return {"note": event.reason, "granted": task.granted + (0 if event.counted else 1)}


def _reserved(task: TaskState, event: happened.SpendReserved, seq: int) -> dict[str, Any]:
    return {"calls": (*task.calls, (event.key, event.amount))}


def _settled_call(task: TaskState, event: happened.SpendSettled, seq: int) -> dict[str, Any]:
    left = tuple(call for call in task.calls if call[0] != event.key)
    return {"calls": left, "spent": task.spent + event.spent}


def _submitted(task: TaskState, event: happened.RecordSubmitted, seq: int) -> dict[str, Any]:
    # Calls settled under this claim are part of what the record reports, not on top of it.
    unreported = event.record.spend - (task.spent - task.spent_at_claim)
    return {
        "record": event.record,
        "record_by": task.owner,
        "observed": event.observed,
        "spent": task.spent + unreported,
    }


def _deferred(task: TaskState, event: happened.VerdictDeferred, seq: int) -> dict[str, Any]:
    return {"verdict": event.verdict, "deferrals": task.deferrals + 1}


def _accepted(task: TaskState, event: happened.TaskAccepted, seq: int) -> dict[str, Any]:
    return {"verdict": event.verdict, "result": event.result, "rollback": event.rollback}


def _returned(task: TaskState, event: happened.TaskReturned, seq: int) -> dict[str, Any]:
    return {
        "verdict": event.verdict,
        "returned": (*task.returned, event.verdict),
        "note": event.note,
        "granted": max(task.granted, task.attempt + 1),
    }


def _ended(task: TaskState, event: Any, seq: int) -> dict[str, Any]:
    changes: dict[str, Any] = {"note": event.note}
    if getattr(event, "reason", None):
        changes["reason"] = event.reason
    if getattr(event, "verdict", None):
        changes["verdict"] = event.verdict
    return changes


def _asked(task: TaskState, event: happened.QuestionAsked, seq: int) -> dict[str, Any]:
    return {
        "question": event.question,
        "deadline": event.deadline,
        "granted": task.granted + 1,  # to ask costs no attempt
    }


def _answered(task: TaskState, event: happened.QuestionAnswered, seq: int) -> dict[str, Any]:
    return {
        **_back_to_work(task),
        "answers": (*task.answers, (_asked_text(task), event.answer)),
    }


def _widened(task: TaskState, event: happened.ScopeWidened, seq: int) -> dict[str, Any]:
    paths = (*task.manifest.allowed_paths, *event.paths)
    answer = (_SCOPE_GRANTED, list(event.paths))
    return {
        **_back_to_work(task),
        "manifest": task.manifest.model_copy(update={"allowed_paths": paths}),
        "answers": (*task.answers, answer),
    }


def _back_to_work(task: TaskState) -> dict[str, Any]:
    granted = task.granted
    if task.status is Status.ESCALATED:  # who answers grants a fresh set of attempts
        granted = task.attempt + task.manifest.budget.attempts
    return {"question": None, "deadline": None, "reason": None, "note": "", "granted": granted}


def _asked_text(task: TaskState) -> str:
    question: Question | None = task.question
    return question.text if question else task.note


def _applied(task: TaskState, event: happened.ResultApplied, seq: int) -> dict[str, Any]:
    return {"applied": event.commit}


def _rolled_back(task: TaskState, event: happened.ResultRolledBack, seq: int) -> dict[str, Any]:
    return {"applied": None}


_CHANGES: Final[Mapping[type[AnyEvent], Callable[[TaskState, Any, int], dict[str, Any]]]] = {
    happened.TaskApproved: _approved,
    happened.TaskUnblocked: _nothing,
    happened.HandoffMade: _handed_over,
    happened.TaskClaimed: _claimed,
    happened.ClaimExtended: _extended,
    happened.ClaimReleased: _released,
    happened.ClaimExpired: _nothing,
    happened.SpendReserved: _reserved,
    happened.SpendSettled: _settled_call,
    happened.RecordSubmitted: _submitted,
    happened.VerdictDeferred: _deferred,
    happened.TaskAccepted: _accepted,
    happened.TaskReturned: _returned,
    happened.TaskEscalated: _ended,
    happened.QuestionAsked: _asked,
    happened.QuestionAnswered: _answered,
    happened.ScopeWidened: _widened,
    happened.TaskFailed: _ended,
    happened.TaskCancelled: _ended,
    happened.TaskSkipped: _ended,
    happened.ResultApplied: _applied,
    happened.ResultRolledBack: _rolled_back,
}
