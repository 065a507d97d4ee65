"""One attempt at one task: copy, executor, scan, record; and a heartbeat beside it.

The heartbeat comes from here and not from the executor. When it is refused, the claim is
lost, and everything the executor started is dead before this returns.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import TaskGroup

from agent_run.contract.claim import ClaimCheck
from agent_run.contract.manifest import Manifest
from agent_run.engine.aside import aside, within
from agent_run.engine.basing import base_for, checkout_name
from agent_run.engine.briefing import brief_for
from agent_run.engine.folders import held_folder
from agent_run.engine.observing import (
    fence_summary,
    invalid_because,
    observation,
    settled_record,
)
from agent_run.engine.parting import let_go, let_go_before
from agent_run.engine.rooms import import_path
from agent_run.engine.site import Site
from agent_run.engine.telling import Told
from agent_run.errors import StaleClaim, StoreError, TransitionError, Unfit
from agent_run.ledger.commands import Heartbeat, Release, Submit
from agent_run.ledger.lookup import held_claim
from agent_run.ledger.state import RunState
from agent_run.ports.executor import Executor, Job, Seen, Work
from agent_run.ports.fence import Limits
from agent_run.ports.workspace import Base, Candidate, Checkout, Kind, Workspace

_BEATS_PER_TTL: Final = 3
_SHORTEST_PAUSE: Final = 0.05
_LOOK: Final = 1.0
"""Seconds until a worker knows that its task was cancelled."""
_DONE_TO: Final[Mapping[Kind, str]] = {
    "added": "added",
    "changed": "updated",
    "deleted": "deleted",
    "mode": "mode changed",
}
_INTERRUPTED: Final = "the worker was interrupted"
_MOST_TOLD: Final = 20


@dataclass(slots=True)
class _Lease:
    """How this worker stands to its claim."""

    lost: str = ""
    """Why the claim is not ours any more. Empty means that it is."""
    begun: bool = False
    """Whether the executor was let loose, so that the attempt counts."""
    submitting: bool = False
    """Whether the record is on its way; from then on a heartbeat means nothing."""


@dataclass(frozen=True, slots=True)
class _Brought:
    """What an attempt brought, ready to be submitted."""

    work: Work
    candidate: Candidate | None = None
    kept: Mapping[str, bytes] | None = None


async def attempt(site: Site, check: ClaimCheck, executor: Executor) -> RunState:
    """Work on a claimed task until its record is submitted, and return the run.

    Raises:
        StaleClaim: The claim was lost; nothing was submitted.
        Unfit: The executor cannot work here; the claim was given back.
    """
    lease = _Lease()
    state: RunState | None = None
    trouble: Exception | None = None
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_beat, site, check, lease, group)
            try:
                state = await _worked(site, check, executor, lease)
            except Exception as error:  # noqa: BLE001 - raised below, outside of the group
                trouble = _alone(error)
            group.cancel_scope.cancel()
    except anyio.get_cancelled_exc_class():
        with anyio.CancelScope(shield=True):
            await _give_back(site, check, _INTERRUPTED, counts=False)
        raise
    if state is not None:
        return state
    if trouble is None:
        raise StaleClaim(lease.lost)
    counts = lease.begun and not isinstance(trouble, Unfit)
    await _give_back(site, check, str(trouble) or type(trouble).__name__, counts=counts)
    raise trouble


async def _worked(site: Site, check: ClaimCheck, executor: Executor, lease: _Lease) -> RunState:
    run_id = check.run_id or check.task_id
    folder = site.folder / "jobs" / f"{run_id}-{check.claim}"
    async with within(held_folder(folder, site.remove)):
        job = await aside(lambda: _job(site, check, folder))
        manifest = job.brief.manifest
        if site.workspace is None or not _needs_files(executor, manifest):
            lease.begun = True
            brought = _Brought(await executor.run(job))
        else:
            brought = await _on_files(site, check, job, executor, lease)
        _tell_fence(site, brought.work.seen)
        work = replace(brought.work, invalid=invalid_because(brought.work, manifest))
        lease.submitting = True
        return await aside(lambda: _submit(site, check, executor, replace(brought, work=work)))


def within_time(limits: Limits, manifest: Manifest) -> Limits:
    """Return the limits of one attempt: the manifest's own time, or the usual one."""
    seconds = manifest.budget.time_budget_sec
    return limits if seconds is None else replace(limits, wall_sec=seconds)


def _job(site: Site, check: ClaimCheck, folder: Path) -> Job:
    run_id = check.run_id or check.task_id
    run, trace_id = site.desk.run(run_id), site.desk.trace_id(run_id)
    brief = brief_for(run_id, run, check.task_id, trace_id=trace_id)
    manifest = brief.manifest
    return Job(
        brief=brief,
        workspace=None,
        folder=folder,
        fence=site.fence,
        limits=within_time(site.limits, manifest),
        network=manifest.network,
    )


async def _on_files(
    site: Site, check: ClaimCheck, job: Job, executor: Executor, lease: _Lease
) -> _Brought:
    workspace = site.workspace
    if workspace is None:
        msg = f"task {check.task_id!r} works on files, and there is no project here"
        raise Unfit(msg)
    base = await aside(lambda: base_for(site, check, workspace))
    checkout = await aside(lambda: _checkout(site, check, base, workspace))
    try:
        lease.begun = True
        env = import_path(checkout.path, site.imports)
        job = replace(job, workspace=checkout.path, tree=checkout.top, env=env)
        work = await executor.run(job)
        brought = await aside(lambda: _collected(workspace, checkout, job, work))
        # The judge may be another process: what was collected waits for it.
        await aside(lambda: workspace.park(checkout))
    except BaseException:
        with anyio.CancelScope(shield=True):
            await aside(lambda: workspace.discard(checkout))
        raise
    if brought.candidate is not None:
        _tell_changes(site, brought.candidate)
    return brought


def _checkout(site: Site, check: ClaimCheck, base: Base, workspace: Workspace) -> Checkout:
    run_id, claim = check.run_id or check.task_id, check.claim or 0
    if check.attempt > 1:
        let_go_before(site, run_id, check.task_id, claim)
    name = checkout_name(run_id, check.task_id)
    return workspace.prepare(base, task_id=name, claim=claim)


def _collected(workspace: Workspace, checkout: Checkout, job: Job, work: Work) -> _Brought:
    manifest = job.brief.manifest
    candidate = workspace.collect(
        checkout, allowed=manifest.allowed_paths, protected=manifest.protected_paths
    )
    diff = workspace.diff(checkout.base, candidate) if candidate.changes else b""
    return _Brought(work, candidate, {"diff": diff})


def _submit(site: Site, check: ClaimCheck, executor: Executor, brought: _Brought) -> RunState:
    work, candidate = brought.work, brought.candidate
    contents = {**(brought.kept or {}), "transcript": work.seen.transcript}
    kept = {name: site.desk.store.put_blob(body) for name, body in contents.items() if body}
    record = settled_record(work, candidate, check.task_id)
    submit = Submit(
        task_id=check.task_id,
        actor=check.owner,
        claim=check.claim or 0,
        record=record,
        observed=observation(work, candidate, executor=executor.name, kept=kept),
    )
    run_id = check.run_id or check.task_id
    state = site.desk.handle(run_id, submit)
    let_go(site, run_id, state.tasks[check.task_id], check.claim)
    said = f"status={record.status} files={len(record.files_changed)} risks={len(record.risks)}"
    site.tell(Told("summary", said))
    return state


async def _beat(site: Site, check: ClaimCheck, lease: _Lease, group: TaskGroup) -> None:
    """Show that we live, and look in between whether the claim is still wanted."""
    ttl = await aside(lambda: _ttl(site, check))
    pause = max(_SHORTEST_PAUSE, ttl.total_seconds() / _BEATS_PER_TTL)
    last, missed = anyio.current_time(), 0
    while True:
        await anyio.sleep(min(pause, _LOOK))
        due = anyio.current_time() - last >= pause
        try:
            await aside(partial(_show_life if due else _look, site, check, ttl))
            missed = 0
        except StoreError as error:
            # The ledger may come back; the claim holds as long as its time has not passed.
            missed += due
            if missed >= _BEATS_PER_TTL:
                lease.lost = f"the ledger did not answer for a whole claim: {error}"
        except TransitionError as error:
            lease.lost = str(error)
        last = anyio.current_time() if due else last
        if lease.submitting:
            return  # the answer to the record says how things stand
        if lease.lost:
            group.cancel_scope.cancel()
            return


def _ttl(site: Site, check: ClaimCheck) -> timedelta:
    """Return how long the claim was granted for, by the clock of the ledger and not ours."""
    run = site.desk.run(check.run_id or check.task_id)
    left = check.expires_at - (run.at or check.expires_at)
    return left if left > timedelta() else run.tasks[check.task_id].manifest.claim_ttl


def _show_life(site: Site, check: ClaimCheck, ttl: timedelta) -> None:
    heartbeat = Heartbeat(
        task_id=check.task_id, actor=check.owner, claim=check.claim or 0, ttl=ttl
    )
    site.desk.handle(check.run_id or check.task_id, heartbeat)


def _look(site: Site, check: ClaimCheck, ttl: timedelta) -> None:
    """Find out that a task was cancelled or taken over, without waiting for the heartbeat."""
    run = site.desk.run(check.run_id or check.task_id)
    held_claim(run, check.task_id, check.claim or 0)


async def _give_back(site: Site, check: ClaimCheck, reason: str, *, counts: bool) -> None:
    release = Release(
        task_id=check.task_id,
        actor=check.owner,
        claim=check.claim or 0,
        reason=reason,
        counts=counts,
    )
    try:
        await aside(lambda: site.desk.handle(check.run_id or check.task_id, release))
    except TransitionError:
        return  # the claim is not ours any more, so there is nothing to give back
    except StoreError as error:
        told = f"could not be given back, it ends at {check.expires_at:%H:%M:%S}: {error}"
        site.tell(Told("claim", told))


def _alone(error: Exception) -> Exception:
    """Return the error that a task group wrapped, if it was only one."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _needs_files(executor: Executor, manifest: Manifest) -> bool:
    checks = manifest.verification or manifest.invariants
    return executor.wants_workspace or bool(manifest.allowed_paths or checks)


def _tell_fence(site: Site, seen: Seen) -> None:
    summary = fence_summary(seen.fence)
    if isinstance(summary, dict) and summary["kind"] == "none":
        site.tell(Told("fence", "NOTHING holds the executor on this machine"))


def _tell_changes(site: Site, candidate: Candidate) -> None:
    lines = [
        *(Told("edit", f"{one.path} {_DONE_TO[one.kind]}") for one in candidate.changes),
        *(Told("refused", issue.sentence) for issue in candidate.refused),
    ]
    for told in lines[:_MOST_TOLD]:
        site.tell(told)
    if len(lines) > _MOST_TOLD:
        more = len(lines) - _MOST_TOLD
        site.tell(Told("note", f"and {more} files more, which the ledger names"))
