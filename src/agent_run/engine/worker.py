"""One attempt at one task: brief, executor, record; with a copy of the project where it works
on files.

Work with files and work without goes the same way. When the claim is lost, everything the
executor started is dead before this returns.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import anyio

from agent_run.contract.claim import ClaimCheck
from agent_run.contract.manifest import Manifest
from agent_run.engine.aside import aside, within
from agent_run.engine.basing import base_for, checkout_name
from agent_run.engine.bench import Bench
from agent_run.engine.briefing import brief_for
from agent_run.engine.folders import held_folder
from agent_run.engine.keeping import Held, held_under
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
from agent_run.ledger.commands import Release, Submit
from agent_run.ledger.state import RunState
from agent_run.ports.executor import Executor, Job, Seen, Work
from agent_run.ports.fence import Limits
from agent_run.ports.workspace import Base, Candidate, Checkout, Kind, Workspace

_DONE_TO: Final[Mapping[Kind, str]] = {
    "added": "added",
    "changed": "updated",
    "deleted": "deleted",
    "mode": "mode changed",
}
_INTERRUPTED: Final = "the worker was interrupted"
_MOST_TOLD: Final = 20


@dataclass(frozen=True, slots=True)
class _Brought:
    """What an attempt brought, ready to be submitted."""

    work: Work
    candidate: Candidate | None = None
    diff: bytes = b""


async def attempt(
    bench: Bench, check: ClaimCheck, executor: Executor, *, run: RunState
) -> RunState:
    """Work on a claimed task until its record is submitted, and return the run.

    `run` is the run as it was when the claim was granted.

    Raises:
        StaleClaim: The claim was lost; nothing was submitted.
        Unfit: The executor cannot work here; the claim was given back.
    """
    site = bench.about(check.task_id)
    held = held_under(check, run)
    brought: _Brought | None = None
    try:
        with bench.keeper.keeping(held):
            job = await _job(bench, check, run)
            async with bench.outside():
                brought = await _brought(site, job, executor, held)
        if brought is not None:
            return await _submit(bench, check, executor, brought)
    except anyio.get_cancelled_exc_class():
        with anyio.CancelScope(shield=True):
            await _give_back(bench, check, _INTERRUPTED, counts=False)
        raise
    except Exception as error:
        trouble = _alone(error)
        counts = held.begun and not isinstance(trouble, Unfit)
        said = str(trouble) or type(trouble).__name__
        await _give_back(bench, check, said, counts=counts)
        if trouble is error:
            raise
        raise trouble from error
    raise StaleClaim(held.lost)


def within_time(limits: Limits, manifest: Manifest) -> Limits:
    """Return the limits of one attempt: the manifest's own time, or the usual one."""
    seconds = manifest.budget.time_budget_sec
    return limits if seconds is None else replace(limits, wall_sec=seconds)


async def _job(bench: Bench, check: ClaimCheck, run: RunState) -> Job:
    site, run_id = bench.site, check.run_id or check.task_id
    trace_id = await bench.trace_id(run_id)
    brief = brief_for(run_id, run, check.task_id, trace_id=trace_id)
    manifest = brief.manifest
    return Job(
        brief=brief,
        workspace=None,
        folder=site.folder / "jobs" / f"{run_id}-{check.claim}",
        fence=site.fence,
        limits=within_time(site.limits, manifest),
        network=manifest.network,
    )


async def _brought(site: Site, job: Job, executor: Executor, held: Held) -> _Brought:
    """Let the executor work: nowhere, in a folder of its own, or on a copy of the project."""
    manifest = job.brief.manifest
    if _touches_no_files(site, executor, manifest):
        held.begun = True
        brought = _Brought(await executor.run(job))
    else:
        async with within(held_folder(job.folder, site.remove)):
            brought = await _in_a_folder(site, job, executor, held)
    _tell_fence(site, brought.work.seen)
    invalid = invalid_because(brought.work, manifest)
    return replace(brought, work=replace(brought.work, invalid=invalid)) if invalid else brought


def _touches_no_files(site: Site, executor: Executor, manifest: Manifest) -> bool:
    if executor.wants_workspace:
        return False
    files = manifest.allowed_paths or manifest.verification or manifest.invariants
    return site.workspace is None or not files


async def _in_a_folder(site: Site, job: Job, executor: Executor, held: Held) -> _Brought:
    workspace = site.workspace
    if workspace is None:
        held.begun = True
        return _Brought(await executor.run(job))
    base = await aside(lambda: base_for(site, held.check, workspace))
    checkout = await aside(lambda: _checkout(site, held.check, base, workspace))
    try:
        held.begun = True
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
    return _Brought(work, candidate, diff)


async def _submit(
    bench: Bench, check: ClaimCheck, executor: Executor, brought: _Brought
) -> RunState:
    site, work, candidate = bench.about(check.task_id), brought.work, brought.candidate
    contents = {"diff": brought.diff, "transcript": work.seen.transcript}
    wanted = {name: body for name, body in contents.items() if body}
    kept = await aside(lambda: _kept(site, wanted)) if wanted else {}
    record = settled_record(work, candidate, check.task_id)
    submit = Submit(
        task_id=check.task_id,
        actor=check.owner,
        claim=check.claim or 0,
        record=record,
        observed=observation(work, candidate, executor=executor.name, kept=kept),
    )
    run_id = check.run_id or check.task_id
    state = await bench.desk.handle(run_id, submit)
    if candidate is not None:
        task = state.tasks[check.task_id]
        await aside(lambda: let_go(site, run_id, task, check.claim))
    said = f"status={record.status} files={len(record.files_changed)} risks={len(record.risks)}"
    site.tell(Told("summary", said))
    return state


def _kept(site: Site, contents: Mapping[str, bytes]) -> dict[str, str]:
    return {name: site.desk.store.put_blob(body) for name, body in contents.items()}


async def _give_back(bench: Bench, check: ClaimCheck, reason: str, *, counts: bool) -> None:
    release = Release(
        task_id=check.task_id,
        actor=check.owner,
        claim=check.claim or 0,
        reason=reason,
        counts=counts,
    )
    try:
        await bench.desk.handle(check.run_id or check.task_id, release)
    except TransitionError:
        return  # the claim is not ours any more, so there is nothing to give back
    except StoreError as error:
        told = f"could not be given back, it ends at {check.expires_at:%H:%M:%S}: {error}"
        bench.about(check.task_id).tell(Told("claim", told))


def _alone(error: Exception) -> Exception:
    """Return the error that a task group wrapped, if it was only one."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


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
