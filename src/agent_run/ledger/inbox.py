"""What waits for a person: one item for each, and the one object that tells of it.

The inbox shows these items, and a notification carries the same object. Their text may come
from strangers: whoever shows it makes it harmless, and says whose words it is.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, TypeAlias

from pydantic import JsonValue

from agent_run.contract.base import RunId, TaskId
from agent_run.contract.manifest import Manifest
from agent_run.contract.verdict import Reason
from agent_run.ledger.state import RunState, Status, TaskState
from agent_run.ledger.words import MEANINGS, first_line, named, stamp, widening

Kind: TypeAlias = Literal["question", "scope", "decision", "approval"]

ABOUT: Final = "about"
"""The label that names what a task is about: a draft, a ticket, a page."""
_NAMES_ITS_SUBJECT: Final = ("draft", "file", "path", "url", "document", "title")
"""Keys of an input that say what a task is about, where no label does."""
_NEXT: Final[dict[Kind, str]] = {
    "decision": "agent-run review {name}",
    "approval": "agent-run review {name} --approve",
    "question": "agent-run review {name} --answer TEXT",
    "scope": "agent-run review {name}{paths}",
}


@dataclass(frozen=True, slots=True)
class InboxRow:
    """One thing that a person must do before work can go on."""

    run_id: RunId
    task_id: TaskId
    kind: Kind
    about: str
    """What the task is about, as its manifest names it; empty if it does not."""
    objective: str
    text: str
    """What is asked, or why a person has to decide."""
    said_by: Literal["executor", "rules"]
    """Whose words the text is."""
    found: str
    """The first thing its executor shows for it, in the executor's words; empty if nothing."""
    since: datetime | None
    """Since when it waits. `None` in a run whose state was kept before this was noted."""
    wider_scope: tuple[str, ...] = ()
    deadline: datetime | None = None
    lapsed: bool = False
    """Whether it was noted that the deadline passed."""
    reason: Reason | None = None
    owner: str | None = None
    """Who worked on it last."""

    def is_overdue(self, now: datetime) -> bool:
        """Say whether somebody should have come by now."""
        return self.lapsed or (self.deadline is not None and self.deadline <= now)

    @property
    def next(self) -> str:
        """What to type, ready to be copied."""
        name, paths = named(self.run_id, self.task_id), widening(self.wider_scope)
        return _NEXT[self.kind].format(name=name, paths=paths)


def inbox_rows(run_id: RunId, run: RunState) -> Iterator[InboxRow]:
    """Yield what waits for a person, in the order in which the tasks were posted."""
    for _, task in run.in_order():
        row = inbox_row(run_id, task)
        if row is not None:
            yield row


def inbox_row(run_id: RunId, task: TaskState) -> InboxRow | None:
    """Return what a person has to do about a task; None if nothing."""
    match task.status:
        case Status.ASKED if task.question is not None:
            scope = task.question.wider_scope
            kind: Kind = "scope" if scope else "question"
            return _row(run_id, task, kind, task.question.text, wider_scope=scope)
        case Status.ESCALATED:
            meaning = MEANINGS[task.reason] if task.reason else ""
            return _row(run_id, task, "decision", task.note or meaning)
        case Status.WAITING if not task.approved:
            return _row(run_id, task, "approval", task.manifest.objective)
        case _:
            return None


def item_json(row: InboxRow, now: datetime) -> dict[str, JsonValue]:
    """Return the object that the inbox lists and a notification carries."""
    return {
        "run_id": row.run_id,
        "task_id": row.task_id,
        "kind": row.kind,
        "about": row.about,
        "objective": row.objective,
        "reason": row.reason,
        "text": row.text,
        "said_by": row.said_by,
        "found": row.found,
        "wider_scope": list(row.wider_scope),
        "since": stamp(row.since),
        "deadline": stamp(row.deadline),
        "overdue": row.is_overdue(now),
        "owner": row.owner,
        "next": row.next,
    }


def about(manifest: Manifest) -> str:
    """Return what a task is about, as its labels or its input name it; empty if neither."""
    if ABOUT in manifest.labels:
        return manifest.labels[ABOUT]
    given = manifest.input if isinstance(manifest.input, dict) else {}
    values = (given.get(key) for key in _NAMES_ITS_SUBJECT)
    return first_line(next((value for value in values if isinstance(value, str)), ""))


def in_executors_words(task: TaskState) -> bool:
    """Say whether the note of an escalated task is what its executor said."""
    return task.record is not None and bool(task.note) and task.note == task.record.stated


def _row(
    run_id: RunId, task: TaskState, kind: Kind, text: str, wider_scope: tuple[str, ...] = ()
) -> InboxRow:
    theirs = kind in {"question", "scope"} or in_executors_words(task)
    return InboxRow(
        run_id=run_id,
        task_id=task.manifest.task_id,
        kind=kind,
        about=about(task.manifest),
        objective=task.manifest.objective,
        text=text,
        said_by="executor" if theirs else "rules",
        found=_found(task),
        since=task.waits_since,
        wider_scope=wider_scope,
        deadline=task.deadline,
        lapsed=task.overdue,
        reason=task.reason,
        owner=task.worked_by,
    )


def _found(task: TaskState) -> str:
    """Return the first thing that the executor shows, if the reason does not say it anyway."""
    record = task.record
    if task.status is not Status.ESCALATED or record is None or record.observed_only:
        return ""
    shown = record.evidence[0].content if record.evidence else record.stated
    found = first_line(shown)
    message = found.partition(": ")[2] or found  # without the place and the name of the rule
    return "" if task.note in shown or message in task.note else found
