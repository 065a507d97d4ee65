"""The work of `apply` and `rollback`: an accepted change on the current branch, and off it."""

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

    change: _Change
    done: Literal["applied", "rolled back"]
    applied: Applied
    found: bool = False
    """Whether it was done before, and only its page was missing."""


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
    found = _caught_up(door, change)
    if found is not None and found.done == "applied":
        return found
    if change.task.applied and found is None:
        door.speech.tell(f"it was applied before, as {change.task.applied[:12]}")
    return _noted(door, Moved(change, "applied", change.workspace.apply(change.stamp)))


def rollback(speech: Speech, *, task: str, dry_run: bool) -> int:
    """Take the change back, and write down that it is gone."""
    with opened(speech, writes=True, dry_run=dry_run) as door:
        change = _accepted(door, task)
        missing = _missing(change)
        if change.task.applied is None and missing is None:
            msg = f"the result of task {change.task_id!r} is not applied"
            raise TransitionError(msg)
        if dry_run:
            return _would(speech, change, "rollback")
        moved = _caught_up(door, change)
        if moved is None or moved.done == "applied":
            done = change.workspace.rollback(change.stamp)
            moved = _noted(door, Moved(change, "rolled back", done))
    return _told(speech, moved)


def _caught_up(door: Door, change: _Change) -> Moved | None:
    """Write the page that a crash kept from being written, if one is missing."""
    missing = _missing(change)
    if missing is None:
        return None
    where = missing.applied.branch or "the folder"
    word = "is there" if missing.done == "applied" else "was taken back"
    said = f"the change {word} already, on {where} as {missing.applied.commit[:12]}"
    door.speech.tell(f"{said}; the ledger did not say so, and now does")
    return _noted(door, missing)


def _missing(change: _Change) -> Moved | None:
    """Return the move that the branch shows and the ledger does not know of.

    Between a move of the branch and its page the process may have died.
    """
    standing = change.workspace.standing(change.stamp)
    if standing is None:
        return None
    if not standing.took_back and change.task.applied is None:
        return Moved(change, "applied", standing.move, found=True)
    if standing.took_back and standing.took_back == change.task.applied:
        return Moved(change, "rolled back", standing.move, found=True)
    return None


def lines_of(moved: Moved) -> list[str]:
    """Return what happened to the branch, a line each."""
    done = moved.applied
    where = f" on {done.branch}" if done.branch else ""
    topic = "[apply]  " if moved.done == "applied" else "[rollback]"
    return [
        f"{topic} task={moved.change.task_id} {moved.done}{where} as {done.commit[:12]}",
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
    commit = task.result.get("commit") if isinstance(task.result, dict) else None
    stamp = Stamp(
        task_id=task_id,
        at=wall_clock(),
        trace_id=door.desk.trace_id(run_id),
        claim=task.claim or 0,
        attempt=task.attempt,
        commit=str(commit or ""),
    )
    return _Change(run_id, task_id, task, workspace, stamp)


def _noted(door: Door, moved: Moved) -> Moved:
    """Write the page of a move of the branch."""
    change, done, actor = moved.change, moved.applied, door.settings.owner
    note: NoteApplied | NoteRolledBack
    if moved.done == "applied":
        onto = done.branch or "the folder"
        note = NoteApplied(task_id=change.task_id, actor=actor, onto=onto, commit=done.commit)
    else:
        note = NoteRolledBack(task_id=change.task_id, actor=actor, commit=done.commit)
    try:
        door.desk.handle(change.run_id, note)
    except BaseException:
        # The branch has moved already; who reads only the ledger must not be left in doubt.
        door.speech.warn(
            f"the branch is at {done.commit}, but the ledger was not written; "
            "the same command writes it later"
        )
        raise
    return moved


def _would(speech: Speech, change: _Change, verb: str) -> int:
    commit = change.stamp.commit
    speech.answer(
        {"task_id": change.task_id, "run_id": change.run_id, "commit": commit, "dry_run": True},
        [f"would {verb} {commit}"],
    )
    return Exit.DONE


def _told(speech: Speech, moved: Moved) -> int:
    done = moved.applied
    speech.answer(
        {
            "task_id": moved.change.task_id,
            "run_id": moved.change.run_id,
            "commit": done.commit,
            "branch": done.branch,
            "before": done.before,
            "paths": list(done.paths),
            "found": moved.found,
            "dry_run": False,
        },
        lines_of(moved),
    )
    return Exit.DONE
