"""Where things stand: the state of a run and of its tasks, and the table of moves.

`LEADS_TO` is the whole state machine. `ledger.rules` never answers with an event that the
table forbids, and `ledger.fold` never asks: it trusts what was once written.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Final, TypeVar

from immutables import Map
from pydantic import JsonValue

from agent_run.contract.budget import NOTHING, UNLIMITED, Budget, Spend
from agent_run.contract.envelope import Envelope
from agent_run.contract.manifest import Manifest
from agent_run.contract.record import Question, Record
from agent_run.contract.verdict import Reason, Verdict
from agent_run.ledger import events as happened


class Status(StrEnum):
    WAITING = "waiting"  # for other tasks, or for approval
    READY = "ready"  # for an owner
    CLAIMED = "claimed"  # one owner works on it
    SUBMITTED = "submitted"  # the record waits for a verdict
    ASKED = "asked"  # a question waits for a person
    ESCALATED = "escalated"  # a decision waits for a person
    ACCEPTED = "accepted"  # the work counts: settled
    FAILED = "failed"  # no accepted result: settled
    CANCELLED = "cancelled"  # nobody wants it: settled
    SKIPPED = "skipped"  # something before it did not succeed: settled


SETTLED: Final = frozenset({Status.ACCEPTED, Status.FAILED, Status.CANCELLED, Status.SKIPPED})
UNSETTLED: Final = frozenset(Status) - SETTLED
BASE: Final = "base"
"""The topic of the note that says what the work on a task starts from."""
BY_HAND: Final = "by hand"
"""What stands for the executor in what was seen of a person's own work."""
FOR_A_PERSON: Final = frozenset({Status.ASKED, Status.ESCALATED})
MAY_LAPSE: Final = FOR_A_PERSON | {Status.WAITING}
"""Where a person may be waited for, and a deadline can pass."""
_ANY: Final = frozenset(Status)


@dataclass(frozen=True, slots=True)
class Move:
    """One row of the table: where an event may happen, and what the task is afterwards."""

    before: frozenset[Status]
    """Empty means that the task does not exist before."""
    after: frozenset[Status]
    """Empty means that the status stays as it is."""


def _move(before: frozenset[Status] | Status, *after: Status) -> Move:
    starts = frozenset({before}) if isinstance(before, Status) else before
    return Move(starts, frozenset(after))


LEADS_TO: Final[Mapping[type[happened.AnyEvent], Move]] = {
    happened.TaskPosted: _move(frozenset(), Status.READY, Status.WAITING),
    happened.TaskApproved: _move(Status.WAITING),
    happened.TaskUnblocked: _move(Status.WAITING, Status.READY),
    happened.HandoffMade: _move(frozenset({Status.WAITING, Status.READY})),
    happened.TaskClaimed: _move(Status.READY, Status.CLAIMED),
    happened.ClaimExtended: _move(Status.CLAIMED),
    happened.ClaimReleased: _move(Status.CLAIMED, Status.READY),
    happened.ClaimExpired: _move(Status.CLAIMED, Status.READY),
    happened.SpendReserved: _move(frozenset({Status.CLAIMED, Status.SUBMITTED})),
    happened.SpendSettled: _move(frozenset({Status.CLAIMED, Status.SUBMITTED})),
    happened.RecordSubmitted: _move(Status.CLAIMED, Status.SUBMITTED),
    happened.VerdictDeferred: _move(Status.SUBMITTED),
    happened.TaskAccepted: _move(
        frozenset({Status.SUBMITTED, Status.ESCALATED}), Status.ACCEPTED
    ),
    happened.TaskReturned: _move(frozenset({Status.SUBMITTED, Status.ESCALATED}), Status.READY),
    happened.TaskEscalated: _move(UNSETTLED - {Status.ESCALATED}, Status.ESCALATED),
    happened.QuestionAsked: _move(frozenset({Status.CLAIMED, Status.SUBMITTED}), Status.ASKED),
    happened.QuestionAnswered: _move(FOR_A_PERSON, Status.READY),
    happened.ScopeWidened: _move(FOR_A_PERSON, Status.READY),
    happened.DeadlineSet: _move(frozenset({Status.WAITING, Status.ESCALATED})),
    happened.DeadlineMissed: _move(frozenset({Status.WAITING, Status.ESCALATED})),
    happened.TaskFailed: _move(UNSETTLED, Status.FAILED),
    happened.TaskCancelled: _move(UNSETTLED, Status.CANCELLED),
    happened.TaskSkipped: _move(UNSETTLED - {Status.CLAIMED}, Status.SKIPPED),
    happened.ResultApplied: _move(Status.ACCEPTED),
    happened.ResultRolledBack: _move(Status.ACCEPTED),
    happened.NoteWritten: _move(_ANY),
}
"""Event -> where it may happen and where it leads. Events of the run as a whole are not in
the table. A claim is taken over by two events: it expires, then the next owner claims."""


@dataclass(frozen=True)
class TaskState:
    """One task as it stands.

    Without slots, because `changed_by` copies it for every event of a run.
    """

    manifest: Manifest
    status: Status
    posted: int
    """The page it was posted on: the order in which tasks came."""
    unmet: frozenset[str] = frozenset()
    """Needed tasks that are not yet accepted."""
    approved: bool = True
    attempt: int = 0
    """How often it was claimed so far; never goes back."""
    granted: int = 0
    """How often it may be claimed altogether."""
    owner: str | None = None
    """Who holds the claim now."""
    worked_by: str | None = None
    """Who claimed it last; that one may not judge the work."""
    claim: int | None = None
    """Page of the newest claim; work done under an older one is refused."""
    expires_at: datetime | None = None
    record: Record | None = None
    record_by: str | None = None
    """Who handed the record in: not always who claimed last."""
    observed: JsonValue = None
    verdict: Verdict | None = None
    returned: tuple[Verdict, ...] = ()
    """What was found about earlier attempts, for the brief of the next one."""
    deferrals: int = 0
    question: Question | None = None
    deadline: datetime | None = None
    """Until when a person may take their time. `None` means for ever, or nobody is waited
    for."""
    overdue: bool = False
    """Whether the deadline passed and was noted; that happens once."""
    waits_since: datetime | None = None
    """Since when it waits for a person, if it does."""
    answers: tuple[tuple[str, JsonValue], ...] = ()
    """Questions asked so far, each with its answer."""
    reason: Reason | None = None
    note: str = ""
    result: JsonValue = None
    rollback: str = ""
    applied: str | None = None
    """The commit that brought the result to a branch. `None` means not, or no longer."""
    base: JsonValue = None
    """What the first attempt started from, as it was noted under `BASE`."""
    inbox: tuple[Envelope, ...] = ()
    spent: Spend = NOTHING
    spent_at_claim: Spend = NOTHING
    held: Spend = NOTHING
    """Set aside from the run's budget for the present attempt."""
    calls: tuple[tuple[str, Spend], ...] = ()
    """Reserved for calls of the present attempt, or of its judge, that are not settled yet."""
    unknown: tuple[str, ...] = ()
    """Calls of earlier attempts or judges, begun and never settled: nobody knows their end."""
    changed: int = 0
    """The newest page about this task."""

    @property
    def reserved(self) -> Spend:
        return sum((amount for _, amount in self.calls), NOTHING)

    @property
    def committed(self) -> Spend:
        """What the run must count for this task: spent, or still possible to be spent."""
        if self.held is NOTHING and not self.calls:
            return self.spent
        return _larger(self.spent_at_claim + self.held, self.spent + self.reserved)

    @property
    def lapses_at(self) -> datetime | None:
        """When the policy for silence is due; `None` means never, or that it was followed."""
        waits = self.deadline is not None and not self.overdue and self.status in MAY_LAPSE
        return self.deadline if waits else None

    @property
    def moves_by_silence(self) -> bool:
        """Whether the policy for silence will take it elsewhere than to a person again."""
        asked = self.status is Status.ASKED
        return self.lapses_at is not None and (asked or self.manifest.on_silence != "escalate")

    @property
    def attempts_left(self) -> int:
        return max(0, self.granted - self.attempt)


@dataclass(frozen=True)
class RunState:
    """One run as it stands after page `seq`."""

    seq: int = 0
    at: datetime | None = None
    """Time of the newest page. Pages never go back in time, whatever the clock does."""
    opened_at: datetime | None = None
    intent: str = ""
    plan: JsonValue = None
    budget: Budget = UNLIMITED
    cancelled: bool = False
    attempts: int = 0
    spent: Spend = NOTHING
    committed: Spend = NOTHING
    """Spent, or set aside for work under way."""
    tasks: Map[str, TaskState] = Map()  # noqa: RUF009 - an immutable map may be shared
    dependents: Map[str, tuple[str, ...]] = Map()  # noqa: RUF009 - the same
    """Task -> tasks that wait for it."""
    journal: Map[str, JsonValue] = Map()  # noqa: RUF009 - the same
    """`task_id/key` of each settled call -> what it gave."""

    def in_order(self) -> Iterator[tuple[str, TaskState]]:
        """Yield the tasks in the order in which they were posted."""
        return iter(sorted(self.tasks.items(), key=lambda item: item[1].posted))


StateT = TypeVar("StateT", TaskState, RunState)


def changed_by(state: StateT, changes: Mapping[str, object]) -> StateT:
    """Return a copy with `changes`; `dataclasses.replace` takes many times as long."""
    copy = object.__new__(type(state))
    object.__setattr__(copy, "__dict__", {**state.__dict__, **changes})
    return copy


def _larger(one: Spend, other: Spend) -> Spend:
    return Spend(
        tokens=max(one.tokens, other.tokens),
        requests=max(one.requests, other.requests),
        cost_usd=max(one.cost_usd, other.cost_usd, Decimal(0)),
        unpriced_requests=max(one.unpriced_requests, other.unpriced_requests),
        elapsed_ms=max(one.elapsed_ms, other.elapsed_ms),
    )
