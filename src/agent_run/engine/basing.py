"""Which state of the project a task starts from, recorded once and kept for all attempts."""

import hashlib
from collections.abc import Iterator, Mapping

from agent_run.contract.base import RunId, TaskId
from agent_run.contract.claim import ClaimCheck
from agent_run.engine.observing import base_as_json, base_from_json
from agent_run.engine.site import Site
from agent_run.engine.telling import Told
from agent_run.errors import WorkspaceError
from agent_run.ledger.commands import WriteNote
from agent_run.ledger.state import BASE, RunState
from agent_run.ports.workspace import Base, Workspace


def base_for(site: Site, check: ClaimCheck, workspace: Workspace) -> Base:
    """Return the base of a task: the recorded one, or a new one, which is then recorded.

    A task that needs others starts from what those have brought.

    Raises:
        WorkspaceError: What it needs does not lie on one line of commits.
    """
    run_id, task_id = check.run_id or check.task_id, check.task_id
    known = recorded_base(site, run_id, task_id)
    if known is not None:
        return known
    base = _fresh(site, site.desk.run(run_id), task_id, workspace)
    body = base_as_json(base)
    note = WriteNote(actor=check.owner, topic=BASE, body=body, task_id=task_id)
    site.desk.handle(run_id, note)
    for sentence in base.notes:
        site.tell(Told("base", sentence))
    if base.carried:
        carried = ", ".join(base.carried)
        site.tell(Told("base", f"uncommitted work is part of the base: {carried}"))
    return base


def recorded_base(site: Site, run_id: RunId, task_id: TaskId) -> Base | None:
    """Return the base that the first attempt at the task started from."""
    noted = site.desk.run(run_id).tasks[task_id].base
    return base_from_json(noted) if isinstance(noted, dict) else None


def checkout_name(run_id: RunId, task_id: TaskId) -> str:
    """Return the name of a task's checkouts, which no task of another run has."""
    if run_id == task_id:
        return task_id
    return f"{task_id}.{hashlib.sha256(run_id.encode()).hexdigest()[:12]}"


def _fresh(site: Site, run: RunState, task_id: TaskId, workspace: Workspace) -> Base:
    brought = dict(_brought(run, task_id))
    if not brought:
        return workspace.base(dirty=site.dirty)
    try:
        return workspace.base_at(tuple(brought.values()))
    except WorkspaceError as error:
        named = ", ".join(repr(need) for need in brought)
        msg = f"task {task_id!r} needs the results of {named}: {error}"
        raise WorkspaceError(msg) from error


def _brought(run: RunState, task_id: TaskId) -> Iterator[tuple[TaskId, str]]:
    """Yield the commits that a task builds on; a need without one passes on its own needs."""
    for need in run.tasks[task_id].manifest.needs:
        result = run.tasks[need].result if need in run.tasks else None
        if isinstance(result, Mapping) and result.get("commit"):
            yield need, str(result["commit"])
        elif need in run.tasks:
            yield from _brought(run, need)
