"""The work of `checkout`, and what `submit` adds when there is one."""

from pydantic import JsonValue

from agent_run.cli.exits import Exit
from agent_run.cli.speech import Speech
from agent_run.cli.work.door import Door, opened
from agent_run.contract.base import RunId, TaskId
from agent_run.contract.record import Record
from agent_run.desk.counter import claim_check
from agent_run.engine.by_hand import check_out, checked_out, collect
from agent_run.engine.telling import Told
from agent_run.errors import StaleClaim
from agent_run.wiring.site import Wanted, open_site


def checkout(speech: Speech, *, task: str, claim: int, dirty: str | None) -> int:
    """Make a copy of the project for the owner of the claim, and print where it is."""

    def tell(told: Told) -> None:
        speech.tell(told.text)

    with opened(speech, writes=True) as door:
        run_id, task_id = door.desk.locate(task)
        check = claim_check(run_id, door.desk.run(run_id), task_id)
        if check.claim != claim:
            msg = f"claim {claim} on task {task_id!r} is not held; claim {check.claim} is"
            raise StaleClaim(msg)
        site = open_site(door.desk, door.settings, Wanted(tell=tell, dirty=dirty))
        path = check_out(site, check)
    told = {"task_id": task_id, "run_id": run_id, "claim": claim, "path": str(path)}
    speech.answer(told, [str(path)])
    speech.tell(f"work there, then: agent-run submit {task} --claim {claim} --record FILE")
    return Exit.DONE


def handed_in(
    door: Door, run_id: RunId, task_id: TaskId, claim: int, record: Record
) -> JsonValue:
    """Return what was seen in the copy of this claim; None if there is no copy."""
    place = checked_out(door.desk.pages(run_id), task_id, claim)
    if place is None or door.dry_run:
        return None
    if door.desk.run(run_id).tasks[task_id].claim != claim:
        return None  # the ledger says why it is refused
    found = collect(open_site(door.desk, door.settings), run_id, task_id, claim, record)
    for sentence in found.refused:
        door.speech.warn(sentence)
    return found.observed
