"""The work of `verify`: a verdict on what was submitted, whoever submitted it."""

from agent_run.cli.exits import Exit
from agent_run.cli.speech import Speech
from agent_run.cli.work.door import opened
from agent_run.cli.work.ending import ending_of
from agent_run.cli.work.executing import fenced, warn_of_fence
from agent_run.cli.work.listening import completed, transcript
from agent_run.contract.base import RunId, TaskId
from agent_run.engine.judge import judge
from agent_run.engine.site import Site
from agent_run.ledger.state import RunState, Status
from agent_run.wiring.settings import FenceMode
from agent_run.wiring.site import Wanted, open_site


def verify(
    speech: Speech, *, task: str, cached: bool, dirty: str | None, fence: FenceMode | None
) -> int:
    """Run the gates on what was submitted, and say what followed."""
    with opened(speech, writes=True) as door:
        run_id, task_id = door.desk.locate(task)
        tell = transcript(speech)
        wanted = Wanted(tell=tell, cached=cached, dirty=dirty)
        site = open_site(door.desk, fenced(door.settings, fence), wanted)
        warn_of_fence(speech, site)
        completed(lambda: judged(site, run_id, task_id), speech, tell)
        ending = ending_of(door.desk, run_id, task_id)
        speech.answer(ending.as_json(), ())
    if ending.code is not Exit.DONE:
        speech.tell(ending.sentence())
    return ending.code


async def judged(site: Site, run_id: RunId, task_id: TaskId) -> RunState:
    """Judge until the gates know, or a person is asked because they do not."""
    state = await judge(site, run_id, task_id)
    while state.tasks[task_id].status is Status.SUBMITTED:
        state = await judge(site, run_id, task_id)
    return state
