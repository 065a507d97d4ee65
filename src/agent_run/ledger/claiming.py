"""Rules of ownership: one owner at a time, known by the page that granted the claim."""

from datetime import datetime

from agent_run.contract.budget import NOTHING
from agent_run.errors import NotClaimable, TransitionError
from agent_run.ledger.commands import Claim, Expire, Heartbeat, Release
from agent_run.ledger.events import (
    AnyEvent,
    ClaimExpired,
    ClaimExtended,
    ClaimReleased,
    TaskClaimed,
    TaskEscalated,
)
from agent_run.ledger.lookup import expired, held_claim, in_status, task_of
from agent_run.ledger.spending import hold_for, over_budget, run_cannot_afford
from agent_run.ledger.state import RunState, Status, TaskState
from agent_run.ledger.words import moment


def claim(run: RunState, command: Claim, now: datetime) -> tuple[AnyEvent, ...]:
    """Grant the claim, or say who or what stands in the way.

    A claim whose time has passed is taken over. When no attempt or no budget is left, the
    answer is an escalation: the caller sees it in the state and does not get the task.
    """
    task = task_of(run, command.task_id)
    if run.cancelled:
        msg = f"task {command.task_id!r} belongs to a cancelled run"
        raise NotClaimable(msg)
    lapsed = _lapsed(task, command.owner, now)
    if task.status is Status.CLAIMED and not lapsed:
        until = moment(task.expires_at)
        msg = f"task {command.task_id!r} is claimed by {task.owner!r} until {until}"
        raise NotClaimable(msg)
    if (task.status is not Status.READY or task.unmet) and not lapsed:
        raise NotClaimable(_why_not(command.task_id, task))
    if lapsed and (task.manifest.on_crash == "escalate" or not task.attempts_left):
        return (*lapsed, _crashed(task, now, command.owner))
    broken = run_cannot_afford(run, task, now)
    if broken:
        return (*lapsed, *_no_budget(run, command, broken, now))
    if not task.attempts_left:
        return (*lapsed, _no_attempt_left(task, now, command.owner))
    return (*lapsed, _granted(run, task, command, now))


def heartbeat(run: RunState, command: Heartbeat, now: datetime) -> tuple[AnyEvent, ...]:
    """Hold the claim for another while; never shorten it."""
    task = held_claim(run, command.task_id, command.claim)
    until = now + (command.ttl or task.manifest.claim_ttl)
    if task.expires_at is not None and until < task.expires_at:
        until = task.expires_at
    return (
        ClaimExtended(
            task_id=command.task_id,
            at=now,
            actor=command.actor,
            claim=command.claim,
            expires_at=until,
        ),
    )


def release(run: RunState, command: Release, now: datetime) -> tuple[AnyEvent, ...]:
    """Give the task back; an attempt that was given back is not counted."""
    task = held_claim(run, command.task_id, command.claim)
    released = ClaimReleased(
        task_id=command.task_id,
        at=now,
        actor=command.actor,
        claim=command.claim,
        reason=command.reason,
        counted=command.counts,
    )
    if command.counts and not task.attempts_left:
        return (released, _no_attempt_left(task, now, command.actor))
    return (released,)


def expire(run: RunState, command: Expire, now: datetime) -> tuple[AnyEvent, ...]:
    """Let go of a claim whose time has passed, and of nothing else."""
    task = in_status(run, command.task_id, Status.CLAIMED)
    lapsed = _lapsed(task, command.actor, now)
    if not lapsed:
        msg = f"the claim on task {command.task_id!r} holds until {moment(task.expires_at)}"
        raise TransitionError(msg)
    if task.manifest.on_crash == "escalate" or not task.attempts_left:
        return (*lapsed, _crashed(task, now, command.actor))
    return lapsed


def _granted(run: RunState, task: TaskState, command: Claim, now: datetime) -> TaskClaimed:
    return TaskClaimed(
        task_id=command.task_id,
        at=now,
        actor=command.owner,
        owner=command.owner,
        expires_at=now + (command.ttl or task.manifest.claim_ttl),
        attempt=task.attempt + 1,
        held=hold_for(run, task),
    )


def _lapsed(task: TaskState, actor: str, now: datetime) -> tuple[ClaimExpired, ...]:
    if task.status is not Status.CLAIMED or not expired(task, now):
        return ()
    return (
        ClaimExpired(
            task_id=task.manifest.task_id,
            at=now,
            actor=actor,
            claim=task.claim or 0,
            owner=task.owner or "",
        ),
    )


def _crashed(task: TaskState, now: datetime, actor: str) -> TaskEscalated:
    return TaskEscalated(
        task_id=task.manifest.task_id,
        at=now,
        actor=actor,
        reason="crashed",
        note=f"owner {task.owner!r} was not heard of in time at attempt {task.attempt}",
    )


def _no_attempt_left(task: TaskState, now: datetime, actor: str) -> TaskEscalated:
    return TaskEscalated(
        task_id=task.manifest.task_id,
        at=now,
        actor=actor,
        reason="executor_failed",
        note=f"no attempt is left of {task.granted}",
    )


def _no_budget(
    run: RunState, command: Claim, broken: list[str], now: datetime
) -> tuple[AnyEvent, ...]:
    note = "the run's budget does not allow another attempt: " + "; ".join(broken)
    if run.committed - run.spent != NOTHING:
        msg = f"task {command.task_id!r} waits for budget that others have set aside: {note}"
        raise NotClaimable(msg)
    escalated = over_budget(
        run.budget, task_id=command.task_id, note=note, now=now, actor=command.owner
    )
    return (escalated,)


def _why_not(task_id: str, task: TaskState) -> str:
    if task.status in {Status.WAITING, Status.READY}:
        waits = [repr(need) for need in sorted(task.unmet)]
        if not task.approved:
            waits.append("a person's approval")
        return f"task {task_id!r} waits for " + ", ".join(waits)
    return f"task {task_id!r} is {task.status}, expected it to be ready"
