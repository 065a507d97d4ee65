"""The work of `verify`: a verdict on what was submitted, whoever submitted it."""

from typing import TypedDict, Unpack

from agent_run.cli.exits import Exit
from agent_run.cli.speech import Speech
from agent_run.cli.work.door import opened
from agent_run.cli.work.ending import ending_of
from agent_run.cli.work.executing import fenced, warn_of_fence
from agent_run.cli.work.listening import completed, transcript
from agent_run.contract.base import RunId, TaskId
from agent_run.engine.judge import judge
from agent_run.engine.site import Site
from agent_run.errors import TransitionError
from agent_run.ledger.state import RunState, Status, TaskState
from agent_run.ledger.words import counted
from agent_run.wiring.settings import FenceMode
from agent_run.wiring.site import Wanted, open_site


class Around(TypedDict):
    """What may be said about the machine."""

    cached: bool
    dirty: str | None
    fence: FenceMode | None


def verify(speech: Speech, *, task: str, dry_run: bool, **around: Unpack[Around]) -> int:
    """Run the gates on what was submitted, and say what followed."""
    with opened(speech, writes=True, dry_run=dry_run) as door:
        run_id, task_id = door.desk.locate(task)
        if dry_run:
            return _rehearse(speech, run_id, door.desk.run(run_id).tasks[task_id])
        tell = transcript(speech)
        wanted = Wanted(tell=tell, cached=around["cached"], dirty=around["dirty"])
        site = open_site(door.desk, fenced(door.settings, around["fence"]), wanted)
        warn_of_fence(speech, site)
        completed(lambda: judged(site, run_id, task_id), speech, tell)
        ending = ending_of(door.desk, run_id, task_id)
        speech.answer(ending.as_json(), ())
    if ending.code is not Exit.DONE:
        speech.tell(ending.sentence())
    return ending.code


def _rehearse(speech: Speech, run_id: RunId, task: TaskState) -> int:
    task_id, status = task.manifest.task_id, task.status
    if status is not Status.SUBMITTED:
        msg = f"task {task_id!r} is {status}, expected it to be submitted"
        raise TransitionError(msg)
    told = {"task_id": task_id, "run_id": run_id, "status": str(status), "dry_run": True}
    checks = counted(len(task.manifest.verification), "command")
    speech.answer(told, [f"would judge claim {task.claim} of {task_id} and run {checks}"])
    return Exit.DONE


async def judged(site: Site, run_id: RunId, task_id: TaskId) -> RunState:
    """Judge until the gates know, or a person is asked because they do not."""
    state = await judge(site, run_id, task_id)
    while state.tasks[task_id].status is Status.SUBMITTED:
        state = await judge(site, run_id, task_id)
    return state
