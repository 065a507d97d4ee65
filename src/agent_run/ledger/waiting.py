"""Rules of patience: how long a person is waited for, and what follows when nobody comes.

It is one rule for everything that waits for a person: questions and requests for more paths,
escalations and reviews, approvals before work begins. A person who comes before silence was
acted upon is heard, and silence is acted upon once.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from agent_run.contract.manifest import Manifest
from agent_run.errors import TransitionError
from agent_run.ledger.commands import Lapse
from agent_run.ledger.events import (
    AnyEvent,
    DeadlineMissed,
    DeadlineSet,
    TaskAccepted,
    TaskEscalated,
    TaskFailed,
    TaskPosted,
    TaskSkipped,
)
from agent_run.ledger.lookup import in_status
from agent_run.ledger.state import MAY_LAPSE, RunState, Status, TaskState
from agent_run.ledger.words import moment

_BEGINS_A_WAIT: Final = frozenset({TaskEscalated, TaskPosted, TaskAccepted})


def lapse(run: RunState, command: Lapse, now: datetime) -> tuple[AnyEvent, ...]:
    """Do what the manifest says about a person who did not come in time."""
    task = in_status(run, command.task_id, *sorted(MAY_LAPSE))
    _check_that_it_is_late(task, now)
    missed = DeadlineMissed(
        task_id=command.task_id, at=now, actor=command.actor, deadline=task.deadline or now
    )
    named = {"task_id": command.task_id, "at": now, "actor": command.actor}
    named["note"] = _nobody_came(task)
    match task.manifest.on_silence:
        case "escalate" if task.status is Status.ASKED:
            return (TaskEscalated(reason="timeout", **named), missed)
        case "escalate":
            return (missed,)  # a person is what it waits for already
        case "fail":
            return (TaskFailed(reason="timeout", **named),)
        case "skip":
            return (TaskSkipped(**named),)


def with_deadlines(
    run: RunState, events: tuple[AnyEvent, ...], now: datetime
) -> tuple[AnyEvent, ...]:
    """Return `events` and, behind them, the deadlines of the waits that begin with them."""
    for event in events:
        if type(event) in _BEGINS_A_WAIT:
            return (*events, *_deadlines(run, events, now))
    return events


def _deadlines(
    run: RunState, events: Iterable[AnyEvent], now: datetime
) -> Iterator[DeadlineSet]:
    sent = {event.task_id for event in events if isinstance(event, TaskEscalated)}
    for event in events:
        for manifest in _waited_for(run, event, sent):
            within = manifest.answer_within
            if within is not None:
                yield DeadlineSet(
                    task_id=manifest.task_id, at=now, actor=event.actor, deadline=now + within
                )


def _waited_for(run: RunState, event: AnyEvent, sent: set[str]) -> Iterator[Manifest]:
    """Yield what waits for nothing but a person from this event on."""
    match event:
        case TaskEscalated():
            yield run.tasks[event.task_id].manifest
        case TaskPosted(manifest=manifest) if manifest.approve_before_claim:
            needs = (run.tasks[need].status for need in manifest.needs)
            if all(status is Status.ACCEPTED for status in needs):
                yield manifest
        case TaskAccepted():
            for name in run.dependents.get(event.task_id, ()):
                task = run.tasks[name]
                alone = task.unmet == {event.task_id} and not task.approved
                if alone and task.status is Status.WAITING and name not in sent:
                    yield task.manifest
        case _:
            return


def _check_that_it_is_late(task: TaskState, now: datetime) -> None:
    name, deadline = task.manifest.task_id, task.lapses_at
    if deadline is not None and deadline <= now:
        return
    if task.overdue:
        msg = f"that nobody came in time for task {name!r} is noted already"
    elif deadline is None:
        msg = f"task {name!r} has no deadline for a person"
    else:
        msg = f"task {name!r} may wait for a person until {moment(deadline)}"
    raise TransitionError(msg)


def _nobody_came(task: TaskState) -> str:
    until = moment(task.deadline)
    if task.status is Status.ASKED:
        asked = task.question.text if task.question else task.note
        return f"nobody answered before {until}: {asked}"
    if task.status is Status.WAITING:
        return f"nobody approved it before {until}"
    return f"nobody decided before {until}: {task.note}"
