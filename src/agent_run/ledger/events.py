"""What happened: every fact the ledger can hold, in the past tense.

Events are written once and never changed. To say something new, add a kind or an optional
field; never edit a shape, for old ledgers must stay readable.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final, Literal, TypeAlias, get_args

from pydantic import JsonValue

from agent_run.contract.base import Contract
from agent_run.contract.budget import NOTHING, Budget, Spend
from agent_run.contract.envelope import Envelope
from agent_run.contract.manifest import Manifest
from agent_run.contract.record import Question, Record
from agent_run.contract.verdict import Reason, Verdict


class _Event(Contract):
    task_id: str
    """The task it is about; the empty string for the run as a whole."""
    at: datetime
    actor: str
    """Who caused it: an owner, a judge, a person, a topology."""


class RunOpened(_Event):
    """A run began, with a purpose and a budget of its own."""

    kind: Literal["run_opened"] = "run_opened"
    intent: str = ""
    budget: Budget = Budget()
    plan: JsonValue = None
    """What the run follows, as the driver needs it to go on after a crash."""


class RunCancelled(_Event):
    """Nobody may claim anything of this run any more."""

    kind: Literal["run_cancelled"] = "run_cancelled"
    reason: str


class TaskPosted(_Event):
    """A task was put on the ledger."""

    kind: Literal["task_posted"] = "task_posted"
    manifest: Manifest


class TaskApproved(_Event):
    """A person allowed work on the task to begin."""

    kind: Literal["task_approved"] = "task_approved"
    note: str = ""


class TaskUnblocked(_Event):
    """All the task waited for is there."""

    kind: Literal["task_unblocked"] = "task_unblocked"


class HandoffMade(_Event):
    """What earlier tasks produced was handed to this one."""

    kind: Literal["handoff_made"] = "handoff_made"
    envelope: Envelope


class TaskClaimed(_Event):
    """One owner took the task; the number of this page is the claim."""

    kind: Literal["task_claimed"] = "task_claimed"
    owner: str
    expires_at: datetime
    attempt: int
    held: Spend = NOTHING
    """What was set aside from the run's budget for this attempt."""


class ClaimExtended(_Event):
    """The owner's worker showed that it lives."""

    kind: Literal["claim_extended"] = "claim_extended"
    claim: int
    expires_at: datetime


class ClaimReleased(_Event):
    """The owner gave the task back unfinished."""

    kind: Literal["claim_released"] = "claim_released"
    claim: int
    reason: str = ""
    counted: bool = False
    """Whether the attempt is used up; otherwise it was given back."""


class ClaimExpired(_Event):
    """The owner was not heard of in time."""

    kind: Literal["claim_expired"] = "claim_expired"
    claim: int
    owner: str


class SpendReserved(_Event):
    """An amount was set aside before it is spent, for one call."""

    kind: Literal["spend_reserved"] = "spend_reserved"
    claim: int
    key: str
    amount: Spend
    purpose: str = ""
    question: JsonValue = None
    """What a model is asked, so that another one can be asked the same later."""


class SpendSettled(_Event):
    """What the call really took, and what it gave."""

    kind: Literal["spend_settled"] = "spend_settled"
    key: str
    spent: Spend
    result: JsonValue = None
    """What the call returned, so that nobody has to pay for it again."""


class RecordSubmitted(_Event):
    """The owner handed in its record."""

    kind: Literal["record_submitted"] = "record_submitted"
    claim: int
    record: Record
    observed: JsonValue = None
    """What the worker saw with its own eyes: files, commands, exit code, fence."""


class VerdictDeferred(_Event):
    """The gates could neither pass nor fail the work; they will be asked again."""

    kind: Literal["verdict_deferred"] = "verdict_deferred"
    verdict: Verdict


class TaskAccepted(_Event):
    """The gates passed, or a person said so."""

    kind: Literal["task_accepted"] = "task_accepted"
    verdict: Verdict
    result: JsonValue = None
    """Where the accepted change lies: commit and ref."""
    rollback: str = ""
    """How to take the change back."""


class TaskReturned(_Event):
    """The work goes to a next attempt, with what was found."""

    kind: Literal["task_returned"] = "task_returned"
    verdict: Verdict
    note: str = ""


class TaskEscalated(_Event):
    """A person has to decide."""

    kind: Literal["task_escalated"] = "task_escalated"
    reason: Reason
    note: str
    verdict: Verdict | None = None


class QuestionAsked(_Event):
    """The owner gave the task back with a question, and lost no attempt by it."""

    kind: Literal["question_asked"] = "question_asked"
    claim: int
    question: Question
    deadline: datetime | None = None


class QuestionAnswered(_Event):
    """A person answered, and the work may go on."""

    kind: Literal["question_answered"] = "question_answered"
    answer: JsonValue


class ScopeWidened(_Event):
    """A person allowed more paths to be written."""

    kind: Literal["scope_widened"] = "scope_widened"
    paths: tuple[str, ...]


class DeadlineSet(_Event):
    """From now on a person has so long to decide, or to approve."""

    kind: Literal["deadline_set"] = "deadline_set"
    deadline: datetime


class DeadlineMissed(_Event):
    """Nobody decided in time; it still waits for a person."""

    kind: Literal["deadline_missed"] = "deadline_missed"
    deadline: datetime


class TaskFailed(_Event):
    """The task ended without an accepted result."""

    kind: Literal["task_failed"] = "task_failed"
    reason: Reason
    note: str = ""
    verdict: Verdict | None = None


class TaskCancelled(_Event):
    """Somebody no longer wants the task."""

    kind: Literal["task_cancelled"] = "task_cancelled"
    note: str = ""


class TaskSkipped(_Event):
    """The task will not run because something before it did not succeed."""

    kind: Literal["task_skipped"] = "task_skipped"
    note: str = ""


class ResultApplied(_Event):
    """An accepted change was brought to a branch."""

    kind: Literal["result_applied"] = "result_applied"
    onto: str
    commit: str


class ResultRolledBack(_Event):
    """An applied change was taken back."""

    kind: Literal["result_rolled_back"] = "result_rolled_back"
    commit: str


class NoteWritten(_Event):
    """Something a reader of the ledger should know; it moves no task."""

    kind: Literal["note_written"] = "note_written"
    topic: str
    body: JsonValue = None


AnyEvent: TypeAlias = (
    RunOpened
    | RunCancelled
    | TaskPosted
    | TaskApproved
    | TaskUnblocked
    | HandoffMade
    | TaskClaimed
    | ClaimExtended
    | ClaimReleased
    | ClaimExpired
    | SpendReserved
    | SpendSettled
    | RecordSubmitted
    | VerdictDeferred
    | TaskAccepted
    | TaskReturned
    | TaskEscalated
    | QuestionAsked
    | QuestionAnswered
    | ScopeWidened
    | DeadlineSet
    | DeadlineMissed
    | TaskFailed
    | TaskCancelled
    | TaskSkipped
    | ResultApplied
    | ResultRolledBack
    | NoteWritten
)

KINDS: Final[Mapping[str, type[AnyEvent]]] = {
    event.model_fields["kind"].default: event for event in get_args(AnyEvent)
}
"""The name a page is filed under -> what it holds."""
