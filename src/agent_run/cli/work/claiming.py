"""The work of claim, heartbeat, release and submit: the handoff by hand."""

from datetime import timedelta
from typing import TypedDict, Unpack

import click
from pydantic import JsonValue

from agent_run.cli.declaring import loaded
from agent_run.cli.exits import Exit
from agent_run.cli.speech import Speech
from agent_run.cli.work.documents import read_file
from agent_run.cli.work.door import Door, opened
from agent_run.cli.work.wording import handed
from agent_run.contract.base import RunId, TaskId, format_duration
from agent_run.contract.claim import ClaimCheck
from agent_run.contract.reading import load
from agent_run.contract.record import Record
from agent_run.desk.counter import claim_check
from agent_run.errors import ContractError, NotClaimable
from agent_run.ledger.commands import Claim, Heartbeat, Release, Submit
from agent_run.ledger.state import FOR_A_PERSON, RunState, Status, TaskState
from agent_run.ledger.words import stamp
from agent_run.ports.store import Search, Wanted
from agent_run.wiring.opening import wall_clock

_LONGEST_OWNER = 200


class Wish(TypedDict):
    """What else may be said about a claim."""

    owner: str | None
    ttl: timedelta | None
    run_id: RunId | None
    executors: tuple[str, ...]
    dry_run: bool


def claim(speech: Speech, *, task: str | None, take_next: bool, **wish: Unpack[Wish]) -> int:
    """Grant the claim check, or say who or what stands in the way."""
    if (task is None) is not take_next:
        msg = "name a TASK, or say --next, but not both"
        raise click.UsageError(msg, click.get_current_context())
    if wish["executors"] and task is not None:
        msg = "--executor chooses among tasks, so it goes with --next"
        raise click.UsageError(msg, click.get_current_context())
    run_id, ttl, dry_run = wish["run_id"], wish["ttl"], wish["dry_run"]
    with opened(speech, writes=True, dry_run=dry_run) as door:
        wanted = Claim(task_id=task or "", owner=_who(door, wish["owner"]), ttl=ttl)
        if task is None:
            check, state = _claim_next(door, wanted, run_id, wish["executors"] or None)
        else:
            check, state = _claim_one(door, wanted, run_id)
        trace_id = None if dry_run else door.desk.trace_id(check.run_id or "")
    held = state.tasks[check.task_id]
    told = check.model_dump(mode="json") | {"trace_id": trace_id, "dry_run": dry_run}
    speech.answer(told | handed(held), [_claim_line(check, held, ttl)])
    return Exit.DONE


def heartbeat(
    speech: Speech,
    *,
    task: str,
    claim: int,
    ttl: timedelta | None,
    owner: str | None,
    dry_run: bool,
) -> int:
    """Hold the claim for another while."""
    with opened(speech, writes=True, dry_run=dry_run) as door:
        run_id, task_id = door.desk.locate(task)
        actor = _holder(door, run_id, task_id, claim, owner)
        beat = Heartbeat(task_id=task_id, actor=actor, claim=claim, ttl=ttl)
        state = door.handle(run_id, beat)
    check = claim_check(run_id, state, task_id)
    told = check.model_dump(mode="json") | {"dry_run": dry_run}
    speech.answer(
        told, [f"[claim]   task={task_id} claim={claim} until={stamp(check.expires_at)}"]
    )
    return Exit.DONE


def release(
    speech: Speech, *, task: str, claim: int, reason: str, owner: str | None, dry_run: bool
) -> int:
    """Give the task back."""
    with opened(speech, writes=True, dry_run=dry_run) as door:
        run_id, task_id = door.desk.locate(task)
        actor = _holder(door, run_id, task_id, claim, owner)
        back = Release(task_id=task_id, actor=actor, claim=claim, reason=reason)
        state = door.handle(run_id, back)
    now = state.tasks[task_id]
    speech.answer(
        _standing(run_id, now) | {"claim": claim, "dry_run": dry_run},
        [f"[release] task={task_id} claim={claim} -> {now.status}"],
    )
    return Exit.DONE


def submit(
    speech: Speech, *, task: str, claim: int, file: str, owner: str | None, dry_run: bool
) -> int:
    """Hand in the record, and say by the exit code whether a person must look first."""
    record = load(Record, read_file(file))
    with opened(speech, writes=True, dry_run=dry_run) as door:
        run_id, task_id = door.desk.locate(task)
        actor = _holder(door, run_id, task_id, claim, owner)
        # Copies of the project are heavy to load, and most commands here know of none.
        handed_in = loaded("agent_run.cli.work.by_hand:handed_in")
        seen: JsonValue = handed_in(door, run_id, task_id, claim, record)
        handing = Submit(
            task_id=task_id, actor=actor, claim=claim, record=record, observed=seen
        )
        now = door.handle(run_id, handing).tasks[task_id]
    files, risks = len(record.files_changed), len(record.risks)
    speech.answer(
        _standing(run_id, now) | {"claim": claim, "dry_run": dry_run},
        [f"[summary] status={record.status} files={files} risks={risks} -> {now.status}"],
    )
    if now.status is not Status.SUBMITTED:
        speech.tell(now.question.text if now.question else now.note)
    return _follows(now)


def _claim_one(door: Door, wanted: Claim, run_id: RunId | None) -> tuple[ClaimCheck, RunState]:
    name = wanted.task_id if run_id is None else f"{run_id}/{wanted.task_id}"
    run_id, task_id = door.desk.locate(name)
    state = door.handle(run_id, Claim(task_id=task_id, owner=wanted.owner, ttl=wanted.ttl))
    return claim_check(run_id, state, task_id), state


def _claim_next(
    door: Door, wanted: Claim, run_id: RunId | None, executors: tuple[str, ...] | None
) -> tuple[ClaimCheck, RunState]:
    if run_id is not None:
        door.desk.run(run_id)
    if door.dry_run:
        return _would_claim(door, wanted, run_id, executors)
    check = door.desk.claim_next(
        owner=wanted.owner, ttl=wanted.ttl, run_id=run_id, executors=executors
    )
    if check is None or check.run_id is None:
        raise _nothing(run_id, executors)
    return check, door.desk.run(check.run_id)


def _would_claim(
    door: Door, wanted: Claim, run_id: RunId | None, executors: tuple[str, ...] | None
) -> tuple[ClaimCheck, RunState]:
    kinds: tuple[Wanted, ...] = ("expired", "ready")
    for kind in kinds:
        search = Search(kind, wall_clock(), run_id=run_id, executors=executors)
        for row in door.desk.store.find(search):
            return _claim_one(
                door, Claim(task_id=row.task_id, owner=wanted.owner, ttl=wanted.ttl), row.run_id
            )
    raise _nothing(run_id, executors)


def _nothing(run_id: RunId | None, executors: tuple[str, ...] | None) -> NotClaimable:
    where = "" if run_id is None else f" in run {run_id!r}"
    whom = "" if executors is None else " for " + " or ".join(map(repr, executors))
    return NotClaimable(f"no task is ready to be claimed{where}{whom}")


def _who(door: Door, owner: str | None) -> str:
    name = door.settings.owner if owner is None else owner
    if not name or len(name) > _LONGEST_OWNER:
        msg = f"owner {name[:20]!r} is {len(name)} characters long, expected 1 to 200"
        raise ContractError(msg)
    return name


def _holder(door: Door, run_id: RunId, task_id: TaskId, claim: int, owner: str | None) -> str:
    """Return who acts: the one named, else the owner of this claim, else the user."""
    if owner is not None:
        return _who(door, owner)
    task = door.desk.run(run_id).tasks[task_id]
    return (task.owner if task.claim == claim else None) or _who(door, None)


def _claim_line(check: ClaimCheck, task: TaskState, ttl: timedelta | None) -> str:
    lasts = format_duration(ttl or task.manifest.claim_ttl)
    return (
        f"[claim]   task={check.task_id} owner={check.owner} ttl={lasts}"
        f" attempt={check.attempt} claim={check.claim}"
    )


def _standing(run_id: RunId, task: TaskState) -> dict[str, JsonValue]:
    return {
        "task_id": task.manifest.task_id,
        "run_id": run_id,
        "status": task.status.value,
        "attempt": task.attempt,
        "reason": task.reason,
        "note": task.note,
    }


def _follows(task: TaskState) -> Exit:
    if task.reason == "over_budget" and task.status is not Status.SUBMITTED:
        return Exit.OVER_BUDGET
    if task.status in FOR_A_PERSON:
        return Exit.FOR_A_PERSON
    return Exit.FAILED if task.status is Status.FAILED else Exit.DONE
