"""Whose hands a check is in: what a process that died held is given back, not waited for.

Every process that checks drafts holds one file below the state folder together with the
others; the kernel lets go of it when a process dies. Whoever has it alone for a moment knows
that nobody of before is left.
"""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from agent_run.contract.base import RunId
from agent_run.desk import Desk
from agent_run.ledger.commands import Release
from agent_run.ledger.state import RunState, Status, TaskState
from agent_run.recipes.places import sentence_of

PLACE: Final = Path("qa") / "at-work"
"""The file, below the state folder, that everybody who checks drafts holds."""


@contextmanager
def at_work(state: Path, clock: Callable[[], datetime]) -> Iterator[datetime | None]:
    """Be known to be at work; give the time before which nobody was, or `None`.

    `None` means that others are at work here, or may be.
    """
    place = state / PLACE
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("ab") as handle:
        alone = _taken(handle.fileno(), fcntl.LOCK_EX)
        since = clock() if alone else None
        _taken(handle.fileno(), fcntl.LOCK_SH)
        yield since


def give_back(desk: Desk, run_id: RunId, owner: str, *, before: datetime) -> None:
    """Give back what `owner` claimed before the time `before` and will never hand in."""
    run = desk.run(run_id)
    held = {task_id: task for task_id, task in run.tasks.items() if _is_held(task, owner)}
    if not held:
        return
    claims = {task.claim for task in held.values()}
    pages = (page for page in desk.pages(run_id) if page.seq in claims)
    times = {page.seq: page.event().at for page in pages}
    for task_id, task in held.items():
        claim = task.claim or 0
        if times[claim] < before:
            reason = "the check was broken off"
            release = Release(task_id=task_id, actor=owner, claim=claim, reason=reason)
            desk.handle(run_id, release)


def in_other_hands(run: RunState, draft: str) -> str:
    """Return in a sentence which checks are waited for, by whom; empty if there are none."""
    busy = [task for _, task in run.in_order() if task.status is Status.CLAIMED]
    if not busy:
        return ""
    owners = sentence_of(sorted({repr(task.owner) for task in busy}))
    until = max(task.expires_at for task in busy if task.expires_at)
    named = sentence_of(task.manifest.task_id for task in busy)
    verb = "is" if len(busy) == 1 else "are"
    late = f"{until.astimezone(UTC):%H:%M:%S} UTC"
    said = f"{named} of {draft} {verb} checked by {owners}, which is waited for"
    return f"{said}; if nothing is heard, until {late}"


def _is_held(task: TaskState, owner: str) -> bool:
    crashes_again = task.manifest.on_crash == "retry"
    return task.status is Status.CLAIMED and task.owner == owner and crashes_again


def _taken(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except OSError:
        return False  # others have it, or such files cannot be held here
    return True
