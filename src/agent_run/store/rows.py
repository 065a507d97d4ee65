"""What both stores share: how values look in a row, and which rows are looked for."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from agent_run.ledger.pages import Page
from agent_run.ledger.state import Status
from agent_run.ports.store import Chapter, TaskRow, Wanted

LARGEST_BODY: Final = 32_768
"""Longer bodies are kept among the blobs, so that reading the index stays quick."""
TASK: Final = "run_id, task_id, status, priority, posted, executor, due, changed"
BUSY: Final[Mapping[Wanted, tuple[Status, bool]]] = {
    "submitted": (Status.SUBMITTED, False),
    "expired": (Status.CLAIMED, True),
    "overdue": (Status.ASKED, True),
    "undecided": (Status.ESCALATED, True),
    "unapproved": (Status.WAITING, True),
}
"""What is looked for -> status, and whether only what is past its time counts."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def task_row(row: Sequence[Any]) -> TaskRow:
    """Return the task that the columns of `TASK` describe."""
    run_id, task_id, status, priority, posted, executor, due, changed = row
    moment = None if due is None else moment_of(due)
    return TaskRow(run_id, task_id, Status(status), priority, posted, executor, moment, changed)


def microseconds(moment: datetime) -> int:
    """Return `moment` as both stores keep it: exact, and the same for every reader."""
    return (moment - _EPOCH) // _MICROSECOND


def moment_of(amount: int) -> datetime:
    """Return the time that `microseconds` was made from."""
    return _EPOCH + timedelta(microseconds=amount)


def set_apart(page: Page) -> tuple[str, bytes] | None:
    """Return the name and the content of a body too long to stand in a row."""
    if len(page.body) <= LARGEST_BODY:
        return None
    content = page.body.encode()
    return hashlib.sha256(content).hexdigest(), content


def beyond_index(chapter: Chapter) -> int:
    """Return the newest page that no row of the chapter points to; 0 if a row does.

    The index must know the last page of every book, or a cut-off end could not be noticed.
    """
    last = chapter.pages[-1].seq
    return 0 if any(row.changed >= last for row in chapter.rows) else last
