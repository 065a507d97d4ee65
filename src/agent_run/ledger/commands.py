"""What is wished: every request the ledger can be asked to grant, in the imperative.

A person at the command line, an agent, a worker and a topology all speak these commands.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from pydantic import JsonValue

from agent_run.contract.budget import UNLIMITED, Budget, Spend
from agent_run.contract.envelope import Envelope
from agent_run.contract.manifest import Manifest
from agent_run.contract.record import Question, Record
from agent_run.contract.verdict import Reason, Verdict


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why what was handed over cannot be used by the task it is for."""

    target: str
    reason: Reason
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRun:
    """Begin a run with a purpose, a budget and a plan to follow."""

    actor: str
    intent: str = ""
    budget: Budget = UNLIMITED
    plan: JsonValue = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRun:
    """Cancel every task of the run that is not settled."""

    actor: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """Add a task to the run."""

    actor: str
    manifest: Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Approve:
    """Allow work on a task that asks for approval before it is claimed."""

    task_id: str
    actor: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOver:
    """Write down what is handed to a task that is not yet worked on."""

    task_id: str
    actor: str
    envelope: Envelope


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Take the claim check, before any write."""

    task_id: str
    owner: str
    ttl: timedelta | None = None
    """How long the claim holds without a heartbeat. `None` is the manifest's `claim_ttl`."""

    @property
    def actor(self) -> str:
        return self.owner


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """Show that the worker lives, and hold the claim for another `ttl`."""

    task_id: str
    actor: str
    claim: int
    ttl: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Give the task back unfinished."""

    task_id: str
    actor: str
    claim: int
    reason: str = ""
    counts: bool = False
    """Whether the attempt is used up, as after a failed try; otherwise it is given back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expire:
    """Let go of a claim whose time has passed."""

    task_id: str
    actor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve:
    """Set an amount aside before spending it on the call named `key`."""

    task_id: str
    actor: str
    claim: int
    key: str
    amount: Spend
    purpose: str = ""
    question: JsonValue = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settle:
    """Say what the call named `key` really took, and what it gave."""

    task_id: str
    actor: str
    claim: int
    key: str
    spent: Spend
    result: JsonValue = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Submit:
    """Return the record; `claim` is the page number of the claim it was done under."""

    task_id: str
    actor: str
    claim: int
    record: Record
    observed: JsonValue = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Give the verdict on a submitted record."""

    task_id: str
    actor: str
    verdict: Verdict
    claim: int | None = None
    """The claim whose record was judged. `None` judges whatever was submitted last."""
    result: JsonValue = None
    rollback: str = ""
    handoffs: tuple[Envelope, ...] = ()
    """What tasks that wait for this one are handed if the verdict accepts it."""
    misfits: tuple[Misfit, ...] = ()
    """Which of those tasks cannot use it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Give the task back with a question to a person."""

    task_id: str
    actor: str
    claim: int
    question: Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Answer a question or an escalation, and put the task back to work."""

    task_id: str
    actor: str
    answer: JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Widen:
    """Allow more paths to be written, and put the task back to work."""

    task_id: str
    actor: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lapse:
    """Follow the manifest's policy for what waited for a person in vain."""

    task_id: str
    actor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decide:
    """A person accepts or rejects work that waits for one."""

    task_id: str
    actor: str
    verdict: Verdict
    again: bool = False
    """After a rejection, try once more even when no attempt is left."""
    result: JsonValue = None
    rollback: str = ""
    handoffs: tuple[Envelope, ...] = ()
    misfits: tuple[Misfit, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Escalate:
    """Ask a person to decide about a task that is not settled."""

    task_id: str
    actor: str
    reason: Reason
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail:
    """End a task without an accepted result."""

    task_id: str
    actor: str
    reason: Reason
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """Say that nobody wants the task any more."""

    task_id: str
    actor: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skip:
    """Say that the task will not run because something before it did not succeed."""

    task_id: str
    actor: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteApplied:
    """Write down that an accepted change was brought to a branch."""

    task_id: str
    actor: str
    onto: str
    commit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteRolledBack:
    """Write down that an applied change was taken back."""

    task_id: str
    actor: str
    commit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteNote:
    """Write down something readers of the ledger should know."""

    actor: str
    topic: str
    body: JsonValue = None
    task_id: str = ""


Command: TypeAlias = (
    OpenRun
    | CancelRun
    | Post
    | Approve
    | HandOver
    | Claim
    | Heartbeat
    | Release
    | Expire
    | Reserve
    | Settle
    | Submit
    | Judge
    | Ask
    | Answer
    | Widen
    | Lapse
    | Decide
    | Escalate
    | Fail
    | Cancel
    | Skip
    | NoteApplied
    | NoteRolledBack
    | WriteNote
)
