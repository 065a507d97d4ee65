"""What every rule asks first: is there such a task, is this the claim that counts."""

from datetime import datetime

from agent_run.errors import StaleClaim, TransitionError, UnknownTask
from agent_run.ledger.commands import Decide, Judge
from agent_run.ledger.events import AnyEvent, HandoffMade, TaskEscalated, TaskUnblocked
from agent_run.ledger.state import SETTLED, RunState, Status, TaskState


def task_of(run: RunState, task_id: str) -> TaskState:
    """Return the task, or raise `UnknownTask`."""
    task = run.tasks.get(task_id)
    if task is None:
        msg = f"no task {task_id!r} in this run"
        raise UnknownTask(msg)
    return task


def unsettled(run: RunState, task_id: str) -> TaskState:
    """Return the task if it can still change, or raise `TransitionError`."""
    task = task_of(run, task_id)
    if task.status in SETTLED:
        msg = f"task {task_id!r} is {task.status}, and what is settled stays settled"
        raise TransitionError(msg)
    return task


def in_status(run: RunState, task_id: str, *allowed: Status) -> TaskState:
    """Return the task if it is in one of these statuses, or raise `TransitionError`."""
    task = task_of(run, task_id)
    if task.status not in allowed:
        expected = " or ".join(allowed)
        msg = f"task {task_id!r} is {task.status}, expected it to be {expected}"
        raise TransitionError(msg)
    return task


def held_claim(run: RunState, task_id: str, claim: int) -> TaskState:
    """Return the task if `claim` is the claim that counts, or raise `StaleClaim`."""
    task = task_of(run, task_id)
    if task.status is Status.CLAIMED and task.claim == claim:
        return task
    if task.claim is None:
        now = "nobody ever claimed it"
    elif task.status is Status.CLAIMED:
        now = f"claim {task.claim} of {task.owner!r} counts now"
    elif task.claim == claim:
        now = f"the task is {task.status}"
    elif claim > task.claim:
        now = f"there was none after claim {task.claim}, and the task is {task.status}"
    else:
        now = f"claim {task.claim} came after it, and the task is {task.status}"
    msg = f"claim {claim} on task {task_id!r} is not held: {now}"
    raise StaleClaim(msg)


def spending_claim(run: RunState, task_id: str, claim: int, actor: str) -> TaskState:
    """Return the task if `actor` may spend under `claim`, or raise `StaleClaim`.

    Who holds the claim may; once the record is submitted, who judges it may, and nobody who
    worked on it.
    """
    task = task_of(run, task_id)
    judged = task.status is Status.SUBMITTED and task.claim == claim
    return task if judged and actor != task.worked_by else held_claim(run, task_id, claim)


def expired(task: TaskState, now: datetime) -> bool:
    """Say whether the task's claim may be taken by another owner."""
    return task.expires_at is not None and task.expires_at <= now


def passed_on(run: RunState, command: Judge | Decide, now: datetime) -> tuple[AnyEvent, ...]:
    """Return what an accepted task means for those that wait for it, all in one commit.

    What is handed over is written down before the receiver can be claimed; a receiver that
    cannot use it goes to a person before anything is spent on it.
    """
    said = {"at": now, "actor": command.actor}
    dependents = run.dependents.get(command.task_id, ())
    misfits = {misfit.target: misfit for misfit in command.misfits}
    events: list[AnyEvent] = [
        HandoffMade(task_id=envelope.target, envelope=envelope, **said)
        for envelope in command.handoffs
        if envelope.target in dependents
        and run.tasks[envelope.target].status in (Status.WAITING, Status.READY)
    ]
    for dependent in dependents:
        task, misfit = run.tasks[dependent], misfits.get(dependent)
        if task.status is not Status.WAITING:
            continue
        if misfit is not None:
            events.append(
                TaskEscalated(task_id=dependent, reason=misfit.reason, note=misfit.note, **said)
            )
        elif task.approved and task.unmet == {command.task_id}:
            events.append(TaskUnblocked(task_id=dependent, **said))
    return tuple(events)
