"""The work of `apply` and `rollback`: an accepted change on the current branch, and off it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from agent_run.cli.exits import Exit
from agent_run.cli.speech import Speech
from agent_run.cli.work.door import Door, opened
from agent_run.contract.base import RunId, TaskId
from agent_run.errors import TransitionError
from agent_run.ledger.commands import NoteApplied, NoteRolledBack
from agent_run.ledger.state import Status, TaskState
from agent_run.ports.workspace import Applied, Stamp, Workspace
from agent_run.wiring.opening import wall_clock
from agent_run.wiring.site import open_site


@dataclass(frozen=True, slots=True)
class _Change:
    """An accepted change, and the workspace that can bring it to a branch."""

    run_id: RunId
    task_id: TaskId
    task: TaskState
    workspace: Workspace
    stamp: Stamp


@dataclass(frozen=True, slots=True)
class Moved:
    """A change that came to a branch, or went from it."""

    run_id: RunId
    task_id: TaskId
    done: Literal["applied", "rolled back"]
    applied: Applied


def apply(speech: Speech, *, task: str, dry_run: bool) -> int:
    """Bring the change to the current branch, and write down that it is there."""
    with opened(speech, writes=True, dry_run=dry_run) as door:
        if dry_run:
            return _would(speech, _accepted(door, task), "apply")
        moved = applied(door, task)
    return _told(speech, moved)


def applied(door: Door, name: str) -> Moved:
    """Bring the accepted change of a task to the current branch, and note it.

    Raises:
        ApplyRefused: It does not fit there; nothing was changed.
        TransitionError: The task has no accepted change.
    """
    change = _accepted(door, name)
    if change.task.applied:
        door.speech.tell(f"it was applied before, as {change.task.applied[:12]}")
    done = change.workspace.apply(change.stamp)
    note = NoteApplied(
        task_id=change.task_id,
        actor=door.settings.owner,
        onto=done.branch or "the folder",
        commit=done.commit,
    )
    _write(door, lambda: door.desk.handle(change.run_id, note), done)
    return Moved(change.run_id, change.task_id, "applied", done)


def rollback(speech: Speech, *, task: str, dry_run: bool) -> int:
    """Take the change back, and write down that it is gone."""
    with opened(speech, writes=True, dry_run=dry_run) as door:
        change = _accepted(door, task)
        if change.task.applied is None:
            msg = f"the result of task {change.task_id!r} is not applied"
            raise TransitionError(msg)
        if dry_run:
            return _would(speech, change, "rollback")
        done = change.workspace.rollback(change.stamp)
        note = NoteRolledBack(
            task_id=change.task_id, actor=door.settings.owner, commit=done.commit
        )
        _write(door, lambda: door.desk.handle(change.run_id, note), done)
    return _told(speech, Moved(change.run_id, change.task_id, "rolled back", done))


def lines_of(moved: Moved) -> list[str]:
    """Return what happened to the branch, a line each."""
    done = moved.applied
    where = f" on {done.branch}" if done.branch else ""
    topic = "[apply]  " if moved.done == "applied" else "[rollback]"
    return [
        f"{topic} task={moved.task_id} {moved.done}{where} as {done.commit[:12]}",
        *(f"{topic} {path}" for path in done.paths),
    ]


def _accepted(door: Door, name: str) -> _Change:
    run_id, task_id = door.desk.locate(name)
    task = door.desk.run(run_id).tasks[task_id]
    if task.status is not Status.ACCEPTED:
        msg = f"task {task_id!r} is {task.status}, expected it to be accepted"
        raise TransitionError(msg)
    workspace = open_site(door.desk, door.settings).workspace
    if task.result is None or workspace is None:
        msg = f"task {task_id!r} was accepted without a change of files"
        raise TransitionError(msg)
    stamp = Stamp(
        task_id=task_id,
        at=wall_clock(),
        trace_id=door.desk.trace_id(run_id),
        claim=task.claim or 0,
        attempt=task.attempt,
    )
    return _Change(run_id, task_id, task, workspace, stamp)


def _write(door: Door, write: Callable[[], object], applied: Applied) -> None:
    try:
        write()
    except BaseException:
        # The branch has moved already; who reads only the ledger must not be left in doubt.
        door.speech.warn(f"the branch is at {applied.commit}, but the ledger was not written")
        raise


def _would(speech: Speech, change: _Change, verb: str) -> int:
    result = change.workspace.result(change.task_id)
    commit = result.commit if result else None
    speech.answer(
        {"task_id": change.task_id, "run_id": change.run_id, "commit": commit, "dry_run": True},
        [f"would {verb} {commit}"],
    )
    return Exit.DONE


def _told(speech: Speech, moved: Moved) -> int:
    done = moved.applied
    speech.answer(
        {
            "task_id": moved.task_id,
            "run_id": moved.run_id,
            "commit": done.commit,
            "branch": done.branch,
            "before": done.before,
            "paths": list(done.paths),
            "dry_run": False,
        },
        lines_of(moved),
    )
    return Exit.DONE
