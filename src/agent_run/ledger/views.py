"""Folds for people: where tasks stand, and what happened.

A view holds no rule and hides nothing that was written. Its text may come from strangers:
whoever shows it makes it harmless.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from agent_run.contract.base import RunId, TaskId
from agent_run.contract.budget import Spend
from agent_run.contract.verdict import Reason, Verdict
from agent_run.ledger import events as happened
from agent_run.ledger.events import AnyEvent
from agent_run.ledger.pages import Page
from agent_run.ledger.state import SETTLED, RunState, Status, TaskState
from agent_run.ledger.words import MEANINGS, against, counted, moment


@dataclass(frozen=True, slots=True)
class StatusRow:
    """One task, as a list of tasks shows it."""

    run_id: RunId
    task_id: TaskId
    status: Status
    attempt: int
    granted: int
    owner: str | None
    """Who holds the claim now."""
    claim: int | None
    expires_at: datetime | None
    executor: str | None
    priority: int
    needs: tuple[TaskId, ...]
    """Tasks it still waits for."""
    reason: Reason | None
    note: str
    """What a reader should know about this status, in a few words."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run, as a list of runs shows it."""

    run_id: RunId
    opened_at: datetime | None
    at: datetime | None
    """Time of the newest page."""
    pages: int
    intent: str
    counts: Mapping[Status, int]
    cancelled: bool
    spent: Spend

    @property
    def settled(self) -> bool:
        return all(status in SETTLED for status in self.counts)


@dataclass(frozen=True, slots=True)
class TimelineLine:
    """One page, in words."""

    run_id: RunId
    seq: int
    at: datetime
    actor: str
    task_id: str
    """Empty for the run as a whole."""
    kind: str
    text: str


def status_rows(run_id: RunId, run: RunState) -> Iterator[StatusRow]:
    """Yield the tasks of a run in the order in which they were posted."""
    for task_id, task in run.in_order():
        claimed = task.status is Status.CLAIMED
        yield StatusRow(
            run_id=run_id,
            task_id=task_id,
            status=task.status,
            attempt=task.attempt,
            granted=task.granted,
            owner=task.owner if claimed else None,
            claim=task.claim,
            expires_at=task.expires_at if claimed else None,
            executor=task.manifest.executor,
            priority=task.manifest.priority,
            needs=tuple(sorted(task.unmet)),
            reason=task.reason,
            note=_noted(task),
        )


def summary(run_id: RunId, run: RunState) -> RunSummary:
    """Return what there is to say about a run in one line."""
    return RunSummary(
        run_id=run_id,
        opened_at=run.opened_at,
        at=run.at,
        pages=run.seq,
        intent=run.intent,
        counts=Counter(task.status for task in run.tasks.values()),
        cancelled=run.cancelled,
        spent=run.spent,
    )


def timeline(pages: Iterable[Page]) -> Iterator[TimelineLine]:
    """Yield each page in words."""
    for page in pages:
        yield line_of(page, page.event())


def line_of(page: Page, event: AnyEvent) -> TimelineLine:
    """Return what `event`, written on `page`, says to a reader."""
    text = _IN_WORDS[type(event)](event)
    return TimelineLine(
        page.run_id, page.seq, event.at, event.actor, event.task_id, page.kind, text
    )


def findings_of(verdict: Verdict) -> str:
    """Return what each gate said, in one line."""
    return ", ".join(
        f"{finding.gate} {finding.outcome}"
        + ("" if finding.outcome == "pass" else f" ({finding.reason})")
        for finding in verdict.findings
    )


def spend_of(spend: Spend) -> str:
    """Return what was spent in a few words; nothing is the empty string."""
    parts = [
        counted(spend.tokens, "token") if spend.tokens else "",
        counted(spend.requests, "request") if spend.requests else "",
        f"${spend.cost_usd}" if spend.cost_usd else "",
        f"{spend.unpriced_requests} without a known price" if spend.unpriced_requests else "",
    ]
    return ", ".join(part for part in parts if part)


def _noted(task: TaskState) -> str:
    if task.status is Status.WAITING:
        waits = [f"needs {need}" for need in sorted(task.unmet)]
        return ", ".join(waits + ([] if task.approved else ["needs approval"]))
    if task.status is Status.ASKED and task.question is not None:
        return task.question.text
    if task.status is Status.READY and task.returned:
        return "returned: " + against(task.returned[-1])
    if task.status is Status.ACCEPTED and task.applied:
        return f"applied as {task.applied}"
    return task.note


def _posted(event: happened.TaskPosted) -> str:
    needs = event.manifest.needs
    return event.manifest.objective + (f" (needs {', '.join(needs)})" if needs else "")


def _claimed(event: happened.TaskClaimed) -> str:
    until = moment(event.expires_at)
    return f"attempt {event.attempt} by {event.owner}, until {until}"


def _submitted(event: happened.RecordSubmitted) -> str:
    record = event.record
    parts = [
        f"under claim {event.claim}: {record.status}",
        counted(len(record.files_changed), "file"),
    ]
    if record.risks:
        parts.append(counted(len(record.risks), "risk"))
    if record.confidence is not None:
        parts.append(f"confidence {record.confidence:g}")
    return ", ".join(parts)


def _accepted(event: happened.TaskAccepted) -> str:
    return findings_of(event.verdict)


def _because(reason: Reason, note: str) -> str:
    return note or MEANINGS[reason]


def _opened(event: happened.RunOpened) -> str:
    return event.intent or "a run began"


def _released(event: happened.ClaimReleased) -> str:
    counted = ", the attempt counts" if event.counted else ""
    return f"claim {event.claim} given back{counted}" + (
        f": {event.reason}" if event.reason else ""
    )


def _asked(event: happened.QuestionAsked) -> str:
    until = f", until {moment(event.deadline)}" if event.deadline else ""
    return event.question.text + until


def _settled(event: happened.SpendSettled) -> str:
    return f"{event.key}: {spend_of(event.spent) or 'nothing'}"


_IN_WORDS: Final[Mapping[type[AnyEvent], Callable[[Any], str]]] = {
    happened.RunOpened: _opened,
    happened.RunCancelled: lambda event: str(event.reason),
    happened.TaskPosted: _posted,
    happened.TaskApproved: lambda event: event.note or "work may begin",
    happened.TaskUnblocked: lambda event: "all it waited for is there",
    happened.HandoffMade: lambda event: f"from {event.envelope.source}",
    happened.TaskClaimed: _claimed,
    happened.ClaimExtended: lambda event: (
        f"claim {event.claim} holds until {moment(event.expires_at)}"
    ),
    happened.ClaimReleased: _released,
    happened.ClaimExpired: lambda event: f"claim {event.claim} of {event.owner} ran out",
    happened.SpendReserved: lambda event: f"{event.key}: {spend_of(event.amount)}",
    happened.SpendSettled: _settled,
    happened.RecordSubmitted: _submitted,
    happened.VerdictDeferred: lambda event: findings_of(event.verdict),
    happened.TaskAccepted: _accepted,
    happened.TaskReturned: lambda event: findings_of(event.verdict),
    happened.TaskEscalated: lambda event: _because(event.reason, event.note),
    happened.QuestionAsked: _asked,
    happened.QuestionAnswered: lambda event: str(event.answer),
    happened.ScopeWidened: lambda event: ", ".join(event.paths),
    happened.DeadlineSet: lambda event: f"a person has until {moment(event.deadline)}",
    happened.DeadlineMissed: lambda event: f"nobody came before {moment(event.deadline)}",
    happened.TaskFailed: lambda event: _because(event.reason, event.note),
    happened.TaskCancelled: lambda event: str(event.note),
    happened.TaskSkipped: lambda event: str(event.note),
    happened.ResultApplied: lambda event: f"onto {event.onto} as {event.commit}",
    happened.ResultRolledBack: lambda event: f"as {event.commit}",
    happened.NoteWritten: lambda event: (
        event.topic + ("" if event.body is None else f": {event.body}")
    ),
}
"""Each kind of event -> what it says; a test holds that none is missing."""
