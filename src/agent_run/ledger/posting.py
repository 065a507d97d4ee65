"""Rules of beginning and ending: what enters a run, and how it leaves without a result."""

from datetime import datetime

from agent_run.errors import AlreadyPosted, ContractError, TransitionError
from agent_run.ledger.commands import (
    Approve,
    Cancel,
    CancelRun,
    Escalate,
    Fail,
    HandOver,
    NoteApplied,
    NoteRolledBack,
    OpenRun,
    Post,
    Skip,
    WriteNote,
)
from agent_run.ledger.events import (
    AnyEvent,
    HandoffMade,
    NoteWritten,
    ResultApplied,
    ResultRolledBack,
    RunCancelled,
    RunOpened,
    TaskApproved,
    TaskCancelled,
    TaskEscalated,
    TaskFailed,
    TaskPosted,
    TaskSkipped,
    TaskUnblocked,
)
from agent_run.ledger.lookup import in_status, task_of, unsettled
from agent_run.ledger.state import SETTLED, RunState, Status


def open_run(run: RunState, command: OpenRun, now: datetime) -> tuple[AnyEvent, ...]:
    """Begin a run, once, before anything else is written to it."""
    if run.seq:
        msg = "the run is already open"
        raise TransitionError(msg)
    return (
        RunOpened(
            task_id="",
            at=now,
            actor=command.actor,
            intent=command.intent,
            budget=command.budget,
            plan=command.plan,
        ),
    )


def cancel_run(run: RunState, command: CancelRun, now: datetime) -> tuple[AnyEvent, ...]:
    """Cancel all that is not settled, and let nothing new in."""
    if run.cancelled:
        msg = "the run is already cancelled"
        raise TransitionError(msg)
    said = {"at": now, "actor": command.actor}
    left = (task_id for task_id, task in run.in_order() if task.status not in SETTLED)
    return (
        *(TaskCancelled(task_id=task_id, note=command.reason, **said) for task_id in left),
        RunCancelled(task_id="", reason=command.reason, **said),
    )


def post(run: RunState, command: Post, now: datetime) -> tuple[AnyEvent, ...]:
    """Put a task on the ledger; what it needs must stand there before."""
    manifest = command.manifest
    if run.cancelled:
        msg = f"task {manifest.task_id!r} cannot be posted to a cancelled run"
        raise TransitionError(msg)
    if manifest.task_id in run.tasks:
        msg = f"task {manifest.task_id!r} is already posted"
        raise AlreadyPosted(msg)
    for need in manifest.needs:
        if need == manifest.task_id:
            msg = f"task {manifest.task_id!r} needs itself"
            raise ContractError(msg)
        if need not in run.tasks:
            msg = f"task {manifest.task_id!r} needs {need!r}, which is not in this run"
            raise ContractError(msg)
    return (
        TaskPosted(task_id=manifest.task_id, at=now, actor=command.actor, manifest=manifest),
    )


def approve(run: RunState, command: Approve, now: datetime) -> tuple[AnyEvent, ...]:
    """Let work begin on a task that waits for a person's approval."""
    task = in_status(run, command.task_id, Status.WAITING)
    if task.approved:
        msg = f"task {command.task_id!r} does not wait for approval"
        raise TransitionError(msg)
    approved = TaskApproved(
        task_id=command.task_id, at=now, actor=command.actor, note=command.note
    )
    if task.unmet:
        return (approved,)
    return (approved, TaskUnblocked(task_id=command.task_id, at=now, actor=command.actor))


def hand_over(run: RunState, command: HandOver, now: datetime) -> tuple[AnyEvent, ...]:
    """Write an envelope down for a task on which nobody works yet."""
    in_status(run, command.task_id, Status.WAITING, Status.READY)
    return (
        HandoffMade(
            task_id=command.task_id, at=now, actor=command.actor, envelope=command.envelope
        ),
    )


def escalate(run: RunState, command: Escalate, now: datetime) -> tuple[AnyEvent, ...]:
    """Ask a person to decide."""
    task = unsettled(run, command.task_id)
    if task.status is Status.ESCALATED:
        msg = f"task {command.task_id!r} already waits for a person"
        raise TransitionError(msg)
    return (
        TaskEscalated(
            task_id=command.task_id,
            at=now,
            actor=command.actor,
            reason=command.reason,
            note=command.note,
        ),
    )


def fail(run: RunState, command: Fail, now: datetime) -> tuple[AnyEvent, ...]:
    """End a task without an accepted result."""
    unsettled(run, command.task_id)
    return (
        TaskFailed(
            task_id=command.task_id,
            at=now,
            actor=command.actor,
            reason=command.reason,
            note=command.note,
        ),
    )


def cancel(run: RunState, command: Cancel, now: datetime) -> tuple[AnyEvent, ...]:
    """End a task that nobody wants any more; its owner learns it at the next heartbeat."""
    unsettled(run, command.task_id)
    return (
        TaskCancelled(task_id=command.task_id, at=now, actor=command.actor, note=command.note),
    )


def skip(run: RunState, command: Skip, now: datetime) -> tuple[AnyEvent, ...]:
    """End a task that nobody works on, because something before it did not succeed."""
    task = unsettled(run, command.task_id)
    if task.status is Status.CLAIMED:
        msg = f"task {command.task_id!r} is claimed by {task.owner!r} and cannot be skipped"
        raise TransitionError(msg)
    return (
        TaskSkipped(task_id=command.task_id, at=now, actor=command.actor, note=command.note),
    )


def note_applied(run: RunState, command: NoteApplied, now: datetime) -> tuple[AnyEvent, ...]:
    """Write down where an accepted change was brought."""
    in_status(run, command.task_id, Status.ACCEPTED)
    return (
        ResultApplied(
            task_id=command.task_id,
            at=now,
            actor=command.actor,
            onto=command.onto,
            commit=command.commit,
        ),
    )


def note_rolled_back(
    run: RunState, command: NoteRolledBack, now: datetime
) -> tuple[AnyEvent, ...]:
    """Write down that a change was taken back."""
    task = in_status(run, command.task_id, Status.ACCEPTED)
    if task.applied is None:
        msg = f"the result of task {command.task_id!r} is not applied"
        raise TransitionError(msg)
    return (
        ResultRolledBack(
            task_id=command.task_id, at=now, actor=command.actor, commit=command.commit
        ),
    )


def write_note(run: RunState, command: WriteNote, now: datetime) -> tuple[AnyEvent, ...]:
    """Write down something that changes no state."""
    if command.task_id:
        task_of(run, command.task_id)
    return (
        NoteWritten(
            task_id=command.task_id,
            at=now,
            actor=command.actor,
            topic=command.topic,
            body=command.body,
        ),
    )
