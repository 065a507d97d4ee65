"""The work of `cancel`: a task, or a whole run, that nobody wants any more."""

from agent_run.cli.exits import Exit
from agent_run.cli.speech import Json, Speech
from agent_run.cli.work.door import Door, opened
from agent_run.contract.base import RunId, TaskId
from agent_run.engine.runs import is_finished
from agent_run.errors import ContractError, UnknownRun, UnknownTask
from agent_run.ledger.commands import Cancel, CancelRun
from agent_run.ledger.state import SETTLED, RunState
from agent_run.ledger.words import counted


def cancel(speech: Speech, *, name: str, reason: str, dry_run: bool) -> int:
    """Cancel the task, or every task of the run that is not settled."""
    with opened(speech, writes=True, dry_run=dry_run) as door:
        run_id, task_id = _meant(door, name)
        actor = door.settings.owner
        before = door.desk.run(run_id)
        if task_id is None and not before.cancelled and _finished(before, run_id):
            said = f"[cancel]  run={run_id} is finished: nothing is left to cancel"
            nothing: Json = {"run_id": run_id, "task_id": None, "cancelled": []}
            speech.answer({**nothing, "dry_run": dry_run}, [said])
            return Exit.DONE
        if task_id is None:
            open_tasks = [one for one, t in before.in_order() if t.status not in SETTLED]
            door.handle(run_id, CancelRun(actor=actor, reason=reason))
        else:
            open_tasks = [task_id]
            door.handle(run_id, Cancel(task_id=task_id, actor=actor, note=reason))
        owners = {one: before.tasks[one].owner for one in open_tasks}
    told = {"run_id": run_id, "task_id": task_id, "cancelled": open_tasks, "dry_run": dry_run}
    what = f"task={task_id}" if task_id else f"run={run_id}"
    speech.answer(told, [f"[cancel]  {what} {counted(len(open_tasks), 'task')} cancelled"])
    for one, owner in owners.items():
        if owner:
            speech.tell(f"{owner} works on {one!r} and learns it by the next heartbeat")
    return Exit.DONE


def _finished(run: RunState, run_id: RunId) -> bool:
    try:
        return is_finished(run, run_id)
    except ContractError:
        return False  # it follows something else than a plan, and may go on


def _meant(door: Door, name: str) -> tuple[RunId, TaskId | None]:
    if not name.endswith("/"):
        try:
            return door.desk.locate(name)
        except UnknownTask:
            pass  # then it should be a run
    run_id = name.removesuffix("/")
    try:
        door.desk.run(run_id)
    except UnknownRun as error:
        msg = f"neither a task nor a run {run_id!r} in this ledger"
        raise UnknownTask(msg) from error
    return run_id, None
