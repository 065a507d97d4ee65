"""One attempt at one task: copy, executor, scan, record; and a heartbeat beside it.

The heartbeat comes from here and not from the executor. When it is refused, the claim is
lost, and everything the executor started is dead before this returns.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import anyio
from anyio.abc import TaskGroup

from agent_run.contract.base import TaskId
from agent_run.contract.claim import ClaimCheck
from agent_run.engine.briefing import brief_for
from agent_run.engine.observing import (
    base_as_json,
    base_from_json,
    fence_summary,
    invalid_because,
    observation,
    settled_record,
)
from agent_run.engine.site import Site
from agent_run.engine.telling import Told
from agent_run.errors import AgentRunError, StaleClaim, StoreError, TransitionError, Unfit
from agent_run.ledger.commands import Heartbeat, Release, Submit, WriteNote
from agent_run.ledger.events import NoteWritten
from agent_run.ledger.state import RunState
from agent_run.ports.executor import Executor, Job, Seen, Work
from agent_run.ports.workspace import Base, Candidate, Checkout, Kind, Workspace

ResultT = TypeVar("ResultT")

_BEATS_PER_TTL: Final = 3
_BASE: Final = "base"
_DONE_TO: Final[Mapping[Kind, str]] = {
    "added": "added",
    "changed": "updated",
    "deleted": "deleted",
    "mode": "mode changed",
}
_CLAIM_LOST: Final = "the claim was lost while the executor worked"


@dataclass(slots=True)
class _Lease:
    """Whether the claim is still ours."""

    lost: str = ""


async def attempt(site: Site, check: ClaimCheck, executor: Executor) -> RunState:
    """Work on a claimed task until its record is submitted, and return the run.

    Raises:
        StaleClaim: The claim was lost; nothing was submitted.
        Unfit: The executor cannot work here; the claim was given back.
    """
    lease = _Lease()
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_beat, site, check, lease, group)
            state = await _worked(site, check, executor)
            group.cancel_scope.cancel()
            return state
    except* anyio.get_cancelled_exc_class():
        with anyio.CancelScope(shield=True):
            await _give_back(site, check, "the worker was interrupted")
        raise
    except* Unfit as unfit:
        await _give_back(site, check, str(unfit.exceptions[0]))
        raise _first(unfit) from None
    except* AgentRunError as error:
        raise _first(error) from None
    raise StaleClaim(lease.lost or _CLAIM_LOST)


async def _worked(site: Site, check: ClaimCheck, executor: Executor) -> RunState:
    run_id, task_id = check.run_id or check.task_id, check.task_id
    run = await _aside(lambda: site.desk.run(run_id))
    folder = site.folder / "jobs" / f"{run_id}-{check.claim}"
    await _aside(lambda: folder.mkdir(parents=True, exist_ok=True))
    manifest = run.tasks[task_id].manifest
    brief = brief_for(run_id, run, task_id, trace_id=site.desk.trace_id(run_id))
    limits = replace(site.limits, wall_sec=manifest.budget.time_budget_sec)
    job = Job(
        brief=brief,
        workspace=None,
        folder=folder,
        fence=site.fence,
        limits=limits,
        network=manifest.network,
    )
    try:
        if site.workspace is None or not _needs_files(executor, manifest.allowed_paths):
            work, candidate, kept = await executor.run(job), None, dict[str, str]()
        else:
            work, candidate, kept = await _on_files(site, check, job, executor, site.workspace)
        work = replace(work, invalid=invalid_because(work, task_id))
        kept |= await _keep(site, {"transcript": work.seen.transcript})
    finally:
        with anyio.CancelScope(shield=True):
            await _aside(lambda: site.remove(folder))
    return await _submit(site, check, executor, work, candidate, kept)


async def _on_files(
    site: Site, check: ClaimCheck, job: Job, executor: Executor, workspace: Workspace
) -> tuple[Work, Candidate, dict[str, str]]:
    base = await _base(site, check, workspace)
    claim = check.claim or 0
    checkout: Checkout = await _aside(
        lambda: workspace.prepare(base, task_id=check.task_id, claim=claim)
    )
    try:
        work = await executor.run(replace(job, workspace=checkout.path))
        _tell_fence(site, work.seen)
        manifest = job.brief.manifest
        candidate = await _aside(
            lambda: workspace.collect(
                checkout, allowed=manifest.allowed_paths, protected=manifest.protected_paths
            )
        )
        diff = await _aside(lambda: workspace.diff(base, candidate))
    except BaseException:
        with anyio.CancelScope(shield=True):
            await _aside(lambda: workspace.discard(checkout))
        raise
    _tell_changes(site, candidate)
    # The judge may be another process: what was collected waits for it.
    await _aside(lambda: workspace.park(checkout))
    return work, candidate, await _keep(site, {"diff": diff})


async def _base(site: Site, check: ClaimCheck, workspace: Workspace) -> Base:
    """Return the base of this task: the recorded one, or today's, which is then recorded."""
    run_id = check.run_id or check.task_id
    recorded = await _aside(lambda: recorded_base(site, run_id, check.task_id))
    if recorded is not None:
        return recorded
    base = await _aside(lambda: workspace.base(dirty=site.dirty))
    note = WriteNote(
        actor=check.owner, topic=_BASE, body=base_as_json(base), task_id=check.task_id
    )
    await _aside(lambda: site.desk.handle(run_id, note))
    for sentence in base.notes:
        site.tell(Told("base", sentence))
    if base.carried:
        site.tell(
            Told("base", f"uncommitted work is part of the base: {', '.join(base.carried)}")
        )
    return base


def recorded_base(site: Site, run_id: str, task_id: TaskId) -> Base | None:
    """Return the base that the first attempt at the task started from."""
    for page in site.desk.pages(run_id):
        if page.kind == "note_written" and page.task_id == task_id:
            event = page.event()
            if isinstance(event, NoteWritten) and event.topic == _BASE:
                return base_from_json(event.body)  # type: ignore[arg-type]  # we wrote it
    return None


async def _submit(
    site: Site,
    check: ClaimCheck,
    executor: Executor,
    work: Work,
    candidate: Candidate | None,
    kept: dict[str, str],
) -> RunState:
    record = settled_record(work, candidate, check.task_id)
    submit = Submit(
        task_id=check.task_id,
        actor=check.owner,
        claim=check.claim or 0,
        record=record,
        observed=observation(work, candidate, executor=executor.name, kept=kept),
    )
    state = await _aside(lambda: site.desk.handle(check.run_id or check.task_id, submit))
    said = f"status={record.status} files={len(record.files_changed)} risks={len(record.risks)}"
    site.tell(Told("summary", said))
    return state


async def _beat(site: Site, check: ClaimCheck, lease: _Lease, group: TaskGroup) -> None:
    run_id, claim = check.run_id or check.task_id, check.claim or 0
    ttl = check.expires_at - site.clock()
    pause = max(0.05, ttl.total_seconds() / _BEATS_PER_TTL)
    heartbeat = Heartbeat(task_id=check.task_id, actor=check.owner, claim=claim, ttl=ttl)
    missed = 0
    while True:
        await anyio.sleep(pause)
        try:
            await _aside(lambda: site.desk.handle(run_id, heartbeat))
            missed = 0
        except StoreError as error:
            # The ledger may come back; the claim holds as long as its time has not passed.
            missed += 1
            if missed >= _BEATS_PER_TTL:
                lease.lost = f"the ledger did not answer for a whole claim: {error}"
        except TransitionError as error:
            lease.lost = str(error)
        if lease.lost:
            site.tell(Told("claim", f"lost: {lease.lost}"))
            group.cancel_scope.cancel()
            return


async def _give_back(site: Site, check: ClaimCheck, reason: str) -> None:
    release = Release(
        task_id=check.task_id, actor=check.owner, claim=check.claim or 0, reason=reason
    )
    await _aside(lambda: site.desk.handle(check.run_id or check.task_id, release))


async def _keep(site: Site, contents: dict[str, bytes]) -> dict[str, str]:
    kept: dict[str, str] = {}
    for name, content in contents.items():
        if content:
            kept[name] = await anyio.to_thread.run_sync(site.desk.store.put_blob, content)
    return kept


def _needs_files(executor: Executor, allowed: tuple[str, ...]) -> bool:
    return executor.wants_workspace or bool(allowed)


def _tell_fence(site: Site, seen: Seen) -> None:
    summary = fence_summary(seen.fence)
    if isinstance(summary, dict) and summary["kind"] == "none":
        site.tell(Told("fence", "NOTHING holds the executor on this machine"))


def _tell_changes(site: Site, candidate: Candidate) -> None:
    words = {
        "added": "added",
        "changed": "updated",
        "deleted": "deleted",
        "mode": "mode changed",
    }
    for change in candidate.changes:
        site.tell(Told("edit", f"{change.path} {words[change.kind]}"))
    for issue in candidate.refused:
        site.tell(Told("refused", issue.sentence))


async def _aside(work: Callable[[], ResultT]) -> ResultT:
    """Do what blocks in a thread, and let it finish: half a commit is no commit."""
    return await anyio.to_thread.run_sync(work)


def _first(group: BaseExceptionGroup[AgentRunError]) -> AgentRunError:
    inner: BaseException = group
    while isinstance(inner, BaseExceptionGroup):
        inner = inner.exceptions[0]
    if not isinstance(inner, AgentRunError):
        raise inner
    return inner
