"""What a driver with idle hands waits for: others who work, and people whose time ends soon.

A person may have days. The driver does not sit through them: it ends, says what waits, and
whoever comes next, a worker, a judge or the run resumed, acts on the silence.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from agent_run.ledger.state import RunState, Status, TaskState
from agent_run.ledger.words import moment

_LONGEST: Final = timedelta(minutes=1)
"""For how long a person's time to answer is waited out."""
_MOST_NAMED: Final = 3
_BY_OTHERS: Final = frozenset({Status.READY, Status.CLAIMED, Status.SUBMITTED})


def awaited_by(run: RunState, now: datetime) -> Iterator[str]:
    """Yield, as a line for people, everything that will move without this driver."""
    for name, task in run.tasks.items():
        if task.status in _BY_OTHERS:
            yield f"{name} {_in_whose_hands(task)}"
        elif task.moves_by_silence and (task.lapses_at or now) <= now + _LONGEST:
            yield f"{name} waits for a person until {moment(task.deadline)}"


def in_short(awaited: Sequence[str]) -> str:
    """Return the first of what is waited for, and how many there are besides."""
    more = len(awaited) - _MOST_NAMED
    return "; ".join([*awaited[:_MOST_NAMED], *([f"and {more} more"] if more > 0 else [])])


def _in_whose_hands(task: TaskState) -> str:
    if task.status is Status.CLAIMED:
        return f"is claimed by {task.owner!r} until {moment(task.expires_at)}"
    if task.status is Status.SUBMITTED:
        return "waits for a verdict elsewhere"
    return "cannot be claimed yet"
