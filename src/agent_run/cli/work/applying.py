"""The work of `apply` and `rollback`: an accepted change on the current branch, and off it."""

from collections.abc import Callable
from dataclasses import dataclass

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


def apply(speech: Speech, *, task: str, dry_run: bool) -> int:
    """Bring the change to the current branch, and write down that it is there."""
    with opened(speech, writes=True, dry_run=dry_run) as door:
        change = _accepted(door, task)
        if change.task.applied:
            speech.tell(f"the ledger says that it was applied before, as {change.task.applied}")
        if dry_run:
            return _would(speech, change, "apply")
        applied = change.workspace.apply(change.stamp)
        note = NoteApplied(
            task_id=change.task_id,
            actor=door.settings.owner,
            onto=applied.branch or "the folder",
            commit=applied.commit,
        )
        _write(door, lambda: door.desk.handle(change.run_id, note), applied)
    return _told(speech, change, applied, "applied")


def rollback(speech: Speech, *, task: str, dry_run: bool) -> int:
    """Take the change back, and write down that it is gone."""
    with opened(speech, writes=True, dry_run=dry_run) as door:
        change = _accepted(door, task)
        if change.task.applied is None:
            msg = f"the result of task {change.task_id!r} is not applied"
            raise TransitionError(msg)
        if dry_run:
            return _would(speech, change, "rollback")
        applied = change.workspace.rollback(change.stamp)
        note = NoteRolledBack(
            task_id=change.task_id, actor=door.settings.owner, commit=applied.commit
        )
        _write(door, lambda: door.desk.handle(change.run_id, note), applied)
    return _told(speech, change, applied, "rolled back")


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


def _told(speech: Speech, change: _Change, applied: Applied, done: str) -> int:
    where = f" on {applied.branch}" if applied.branch else ""
    topic = "[apply]  " if done == "applied" else "[rollback]"
    speech.answer(
        {
            "task_id": change.task_id,
            "run_id": change.run_id,
            "commit": applied.commit,
            "branch": applied.branch,
            "before": applied.before,
            "paths": list(applied.paths),
            "dry_run": False,
        },
        [
            f"{topic} task={change.task_id} {done}{where} as {applied.commit[:12]}",
            *(f"{topic} {path}" for path in applied.paths),
        ],
    )
    return Exit.DONE
