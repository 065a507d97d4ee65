"""How things came to stand: events folded into the state of a run.

`evolve` holds no rules. It trusts every event, because `rules.decide` refused the bad ones
before they were written. It costs the same for the first task of a run and for the last.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from agent_run.contract.budget import NOTHING, UNLIMITED
from agent_run.contract.manifest import Manifest
from agent_run.contract.record import Question
from agent_run.ledger import events as happened
from agent_run.ledger.events import AnyEvent
from agent_run.ledger.state import BASE, LEADS_TO, RunState, Status, TaskState, changed_by

EMPTY: Final = RunState()

_SCOPE_GRANTED: Final = "wider scope"
_NOBODY_WAITED_FOR: Final = {"deadline": None, "overdue": False, "waits_since": None}
_UNPOSTED: Final = TaskState(
    manifest=Manifest(task_id="unposted", objective="none yet"), status=Status.WAITING, posted=0
)


def evolve(run: RunState, event: AnyEvent) -> RunState:
    """Return the run as it stands after `event`."""
    return fold((event,), onto=run)


def fold(events: Iterable[AnyEvent], onto: RunState = EMPTY) -> RunState:
    """Return the run as it stands after all `events`."""
    draft = _Draft(onto)
    for event in events:
        draft.take(event)
    return draft.finished()


class _Draft:
    """A run that events are being folded into.

    Run and tasks are copied when they change for the first time. Nobody else sees the copies
    before the draft is finished, so until then they are changed in place.
    """

    __slots__ = ("_own", "_run", "_tasks")

    def __init__(self, run: RunState) -> None:
        self._run = changed_by(run, {})
        self._tasks = run.tasks.mutate()
        self._own: dict[str, TaskState] = {}

    def finished(self) -> RunState:
        """Return the run, which does not change any more."""
        self._run.__dict__["tasks"] = self._tasks.finish()
        return self._run

    def take(self, event: AnyEvent) -> None:
        """Let `event` happen."""
        run, kind = self._run, type(event)
        seq = run.seq + 1
        if kind in _CHANGES:
            self._change(event, seq)
        else:
            run.__dict__.update(_OF_RUN[kind](self, event, seq))
        run.__dict__["seq"], run.__dict__["at"] = seq, event.at
        if run.opened_at is None:
            run.__dict__["opened_at"] = event.at

    def posted(self, event: happened.TaskPosted, seq: int) -> dict[str, Any]:
        manifest, task_id = event.manifest, event.task_id
        unmet = frozenset(
            need for need in manifest.needs if self._tasks[need].status is not Status.ACCEPTED
        )
        approved = not manifest.approve_before_claim
        changes = {
            "manifest": manifest,
            "status": Status.WAITING if unmet or not approved else Status.READY,
            "posted": seq,
            "unmet": unmet,
            "approved": approved,
            "granted": manifest.budget.attempts,
            "changed": seq,
            "waits_since": None if approved else event.at,
        }
        self._tasks[task_id] = self._own[task_id] = changed_by(_UNPOSTED, changes)
        dependents = self._run.dependents
        for need in unmet:
            dependents = dependents.set(need, (*dependents.get(need, ()), task_id))
        return {"dependents": dependents}

    def noted(self, event: happened.NoteWritten, seq: int) -> dict[str, Any]:
        task = self._tasks.get(event.task_id)
        if task is not None and event.topic == BASE and task.base is None:
            self._task(event.task_id).__dict__["base"] = event.body
        return {}

    def _change(self, event: AnyEvent, seq: int) -> None:
        task, kind = self._task(event.task_id), type(event)
        spent, committed = task.spent, task.committed
        changes = _CHANGES[kind](task, event, seq)
        changes["changed"] = seq
        status = _AFTER[kind]
        if status is not None:
            changes["status"] = status
            if task.status is Status.CLAIMED or task.calls:
                changes |= _claim_ended(task, changes)
        task.__dict__.update(changes)
        run = self._run
        if task.spent is not spent:
            run.__dict__["spent"] = run.spent - spent + task.spent
        if task.committed is not committed:
            run.__dict__["committed"] = run.committed - committed + task.committed
        if kind in _REST_OF_RUN:
            run.__dict__.update(_REST_OF_RUN[kind](self, event))

    def claimed(self, event: happened.TaskClaimed) -> dict[str, Any]:
        return {"attempts": self._run.attempts + 1}

    def given_back(self, event: happened.ClaimReleased) -> dict[str, Any]:
        return {} if event.counted else {"attempts": self._run.attempts - 1}

    def settled_call(self, event: happened.SpendSettled) -> dict[str, Any]:
        return {"journal": self._run.journal.set(f"{event.task_id}/{event.key}", event.result)}

    def accepted(self, event: happened.TaskAccepted) -> dict[str, Any]:
        need, dependents = event.task_id, self._run.dependents
        if need not in dependents:
            return {}
        for task_id in dependents[need]:
            task = self._task(task_id)
            task.__dict__["unmet"] = task.unmet - {need}
        return {"dependents": dependents.delete(need)}

    def _task(self, task_id: str) -> TaskState:
        """Return this draft's own copy of the task."""
        task = self._own.get(task_id)
        if task is None:
            task = changed_by(self._tasks[task_id], {})
            self._tasks[task_id] = self._own[task_id] = task
        return task


def _opened(draft: _Draft, event: happened.RunOpened, seq: int) -> dict[str, Any]:
    budget = event.budget if event.budget != UNLIMITED else UNLIMITED
    return {"intent": event.intent, "budget": budget, "plan": event.plan}


def _cancelled(draft: _Draft, event: happened.RunCancelled, seq: int) -> dict[str, Any]:
    return {"cancelled": True}


def _claim_ended(task: TaskState, changes: Mapping[str, Any]) -> dict[str, Any]:
    """What a claim leaves, or a judge: calls nobody settled count as spent, for who knows."""
    ended: dict[str, Any] = {"owner": None, "expires_at": None, "held": NOTHING}
    if task.calls:
        ended["calls"] = ()
        ended["unknown"] = (*task.unknown, *(key for key, _ in task.calls))
        ended["spent"] = changes.get("spent", task.spent) + task.reserved
    return ended


def _nothing(task: TaskState, event: Any, seq: int) -> dict[str, Any]:
    return {}


def _approved(task: TaskState, event: happened.TaskApproved, seq: int) -> dict[str, Any]:
    return {"approved": True, **_NOBODY_WAITED_FOR}


def _handed_over(task: TaskState, event: happened.HandoffMade, seq: int) -> dict[str, Any]:
    return {"inbox": (*task.inbox, event.envelope)}


def _claimed(task: TaskState, event: happened.TaskClaimed, seq: int) -> dict[str, Any]:
    return {
        "owner": event.owner,
        "expires_at": event.expires_at,
        "claim": seq,
        "attempt": event.attempt,
        "held": NOTHING if event.held is NOTHING or event.held == NOTHING else event.held,
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
        "reason": None,
        **_NOBODY_WAITED_FOR,
    }


def _ended(task: TaskState, event: Any, seq: int) -> dict[str, Any]:
    changes: dict[str, Any] = {"note": event.note}
    if getattr(event, "reason", None):
        changes["reason"] = event.reason
    if getattr(event, "verdict", None):
        changes["verdict"] = event.verdict
    return changes


def _escalated(task: TaskState, event: happened.TaskEscalated, seq: int) -> dict[str, Any]:
    waits = {"deadline": None, "overdue": False, "waits_since": event.at}
    return _ended(task, event, seq) | waits


def _deadline_set(task: TaskState, event: happened.DeadlineSet, seq: int) -> dict[str, Any]:
    return {"deadline": event.deadline, "overdue": False}


def _missed(task: TaskState, event: happened.DeadlineMissed, seq: int) -> dict[str, Any]:
    return {"deadline": event.deadline, "overdue": True}


def _asked(task: TaskState, event: happened.QuestionAsked, seq: int) -> dict[str, Any]:
    return {
        "question": event.question,
        "deadline": event.deadline,
        "overdue": False,
        "waits_since": event.at,
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
    return {
        "question": None,
        "reason": None,
        "note": "",
        "granted": granted,
        **_NOBODY_WAITED_FOR,
    }


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
    happened.TaskEscalated: _escalated,
    happened.QuestionAsked: _asked,
    happened.QuestionAnswered: _answered,
    happened.ScopeWidened: _widened,
    happened.DeadlineSet: _deadline_set,
    happened.DeadlineMissed: _missed,
    happened.TaskFailed: _ended,
    happened.TaskCancelled: _ended,
    happened.TaskSkipped: _ended,
    happened.ResultApplied: _applied,
    happened.ResultRolledBack: _rolled_back,
}
_AFTER: Final[Mapping[type[AnyEvent], Status | None]] = {
    kind: next(iter(LEADS_TO[kind].after), None) for kind in _CHANGES
}
_OF_RUN: Final[Mapping[type[AnyEvent], Callable[[_Draft, Any, int], dict[str, Any]]]] = {
    happened.RunOpened: _opened,
    happened.RunCancelled: _cancelled,
    happened.TaskPosted: _Draft.posted,
    happened.NoteWritten: _Draft.noted,
}
_REST_OF_RUN: Final[Mapping[type[AnyEvent], Callable[[_Draft, Any], dict[str, Any]]]] = {
    happened.TaskClaimed: _Draft.claimed,
    happened.ClaimReleased: _Draft.given_back,
    happened.SpendSettled: _Draft.settled_call,
    happened.TaskAccepted: _Draft.accepted,
}
