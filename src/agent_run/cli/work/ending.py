"""How a task stands after work on it: the object that is printed, and the exit code."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from pydantic import JsonValue

from agent_run.cli.exits import Exit
from agent_run.cli.speech import Json
from agent_run.cli.work.wording import dumped
from agent_run.contract.base import RunId, TaskId
from agent_run.contract.verdict import Verdict
from agent_run.desk import Desk
from agent_run.ledger.events import (
    AnyEvent,
    QuestionAsked,
    TaskAccepted,
    TaskCancelled,
    TaskEscalated,
    TaskFailed,
    TaskReturned,
)
from agent_run.ledger.state import Status, TaskState
from agent_run.ledger.words import named

Word: TypeAlias = Literal["accepted", "returned", "escalated", "failed", "cancelled"]

_WORDS: Final[Mapping[Status, Word]] = {
    Status.WAITING: "escalated",
    Status.READY: "returned",
    Status.CLAIMED: "returned",
    Status.SUBMITTED: "returned",
    Status.ASKED: "escalated",
    Status.ESCALATED: "escalated",
    Status.ACCEPTED: "accepted",
    Status.FAILED: "failed",
    Status.CANCELLED: "cancelled",
    Status.SKIPPED: "cancelled",
}
_DECISIVE: Final = (
    TaskAccepted,
    TaskReturned,
    TaskEscalated,
    TaskFailed,
    TaskCancelled,
    QuestionAsked,
)
_RAN: Final = "commands_run"
_KINDS: Final = frozenset(str(event.model_fields["kind"].default) for event in _DECISIVE)


@dataclass(frozen=True, slots=True)
class Ending:
    """Where a task stands, and the verdict that brought it there."""

    run_id: RunId
    trace_id: str
    task: TaskState
    verdict: Verdict | None
    """`None` when something else than a verdict decided."""

    @property
    def status(self) -> Word:
        return _WORDS[self.task.status]

    @property
    def code(self) -> Exit:
        """The exit code: budget before gates, gates before a person.

        Work that the gates refused on the last attempt waits for a person too, but what a
        script must know first is that it was refused.
        """
        match self.status:
            case "accepted":
                return Exit.DONE
            case _ if self.task.reason == "over_budget":
                return Exit.OVER_BUDGET
            case "returned":
                return Exit.REFUSED if self.verdict else Exit.FAILED
            case "escalated":
                return Exit.REFUSED if self._refused_by_gates else Exit.FOR_A_PERSON
            case "failed" | "cancelled":
                return Exit.FAILED

    @property
    def _refused_by_gates(self) -> bool:
        if self.verdict is None or self.verdict.outcome != "fail":
            return False
        return any(one.reason != "low_confidence" for one in self.verdict.failures)

    def as_json(self) -> Json:
        """Return the object that `execute --json` ends with."""
        task = self.task
        observed = task.observed if isinstance(task.observed, dict) else {}
        return {
            "task_id": task.manifest.task_id,
            "run_id": self.run_id,
            "trace_id": self.trace_id,
            "status": self.status,
            "attempt": task.attempt,
            "claim": task.claim,
            "reason": task.reason,
            "note": task.note,
            "question": dumped(task.question),
            "record": dumped(task.record),
            "observed": _observed(observed),
            "verdict": dumped(self.verdict),
            "result": task.result,
            "rollback": task.rollback,
            "fence": observed.get("fence"),
        }

    def sentence(self) -> str:
        """Return what a person should know, and what to type next."""
        task = self.task
        name = named(self.run_id, task.manifest.task_id)
        match task.status:
            case Status.ACCEPTED:
                return (
                    f"task {name!r} is accepted; agent-run apply {name} brings it to a branch"
                )
            case Status.ASKED:
                asked = task.question.text if task.question else task.note
                return f"task {name!r} has a question: {asked}; agent-run review {name}"
            case Status.WAITING:
                return f"task {name!r} waits for approval; agent-run review {name} --approve"
            case Status.ESCALATED:
                return f"task {name!r} waits for a person: {task.note}; agent-run review {name}"
            case Status.READY if task.returned:
                again = f"agent-run execute {name} tries again" if task.attempts_left else ""
                return f"task {name!r} was returned: {task.note}; {again}".rstrip("; ")
            case status:
                said = f": {task.note}" if task.note else ""
                return f"task {name!r} is {status}{said}"


def ending_of(desk: Desk, run_id: RunId, task_id: TaskId) -> Ending:
    """Return how the task stands now."""
    task = desk.run(run_id).tasks[task_id]
    verdict = getattr(decisive(desk, run_id, task_id), "verdict", None)
    return Ending(run_id, desk.trace_id(run_id), task, verdict)


def decisive(desk: Desk, run_id: RunId, task_id: TaskId) -> AnyEvent | None:
    """Return what brought the task to where it stands; None while nothing has."""
    for page in reversed(desk.pages(run_id)):
        if page.task_id == task_id and page.kind in _KINDS:
            return page.event()
    return None


def _observed(observed: dict[str, JsonValue]) -> Json:
    promised: dict[str, JsonValue] = {
        "files_changed": [],
        "commands_run": [],
        "exit_code": None,
        "elapsed_ms": 0,
    }
    # Which commands ran is not always seen; no list at all would break who counts them.
    seen = observed.get("commands_run") is not None
    told = {key: value for key, value in observed.items() if value is not None or key != _RAN}
    told.pop("fence", None)
    return promised | told | {"commands_seen": seen}
