"""From a posted task to its end: claim, attempt, judge, and again while attempts are left."""

from dataclasses import dataclass
from datetime import timedelta

import anyio

from agent_run.contract.base import RunId, TaskId, format_duration
from agent_run.contract.claim import ClaimCheck
from agent_run.desk.counter import claim_check
from agent_run.engine.aside import aside
from agent_run.engine.folders import sweep
from agent_run.engine.judge import judge
from agent_run.engine.site import Site
from agent_run.engine.telling import Told
from agent_run.engine.worker import attempt
from agent_run.errors import StaleClaim
from agent_run.ledger.commands import Claim
from agent_run.ledger.state import RunState, Status
from agent_run.ports.executor import Executor


@dataclass(frozen=True, slots=True)
class Ordered:
    """Who is to work on the task, and how often at most in this call."""

    executor: Executor
    owner: str
    ttl: timedelta | None = None
    attempts: int | None = None
    """`None` means as often as the manifest's budget allows."""


async def execute(site: Site, run_id: RunId, task_id: TaskId, order: Ordered) -> RunState:
    """Claim the task and work on it until it is settled, waits, or no attempt is left.

    Raises:
        NotClaimable: Someone else holds it, or it waits for something.
        Unfit: The executor cannot work on this machine.
    """
    done, judged = 0, False
    await aside(lambda: tidy(site))
    state = await aside(lambda: site.desk.run(run_id))
    while True:
        task = state.tasks[task_id]
        if task.status is Status.SUBMITTED:
            state, judged = await judge(site, run_id, task_id), True
            continue
        if (done or judged) and task.status is not Status.READY:
            return state
        if done and _enough(order, done):
            return state
        check = await claim(site, run_id, task_id, order)
        if check is None:
            return await aside(lambda: site.desk.run(run_id))
        done += 1
        try:
            state = await attempt(site, check, order.executor)
        except StaleClaim as lost:
            site.tell(Told("claim", f"lost: {lost}"))
            raise


async def claim(
    site: Site, run_id: RunId, task_id: TaskId, order: Ordered
) -> ClaimCheck | None:
    """Take the claim check; None if asking for it ended the task instead."""
    command = Claim(task_id=task_id, owner=order.owner, ttl=order.ttl)
    with anyio.CancelScope(shield=True):
        # A claim that was granted must come into the hands of someone who gives it back.
        state = await aside(lambda: site.desk.handle(run_id, command))
    task = state.tasks[task_id]
    if task.status is not Status.CLAIMED:
        site.tell(Told("claim", f"task={task_id} {task.status}: {task.note}"))
        return None
    check = claim_check(run_id, state, task_id)
    ttl = format_duration(order.ttl or task.manifest.claim_ttl)
    said = f"task={task_id} owner={check.owner} ttl={ttl}"
    site.tell(Told("claim", f"{said} attempt={check.attempt} claim={check.claim}"))
    return check


def tidy(site: Site) -> None:
    """Remove what workers and judges that died have left behind; never what is in use."""
    for kind in ("jobs", "rooms"):
        sweep(site.folder / kind, site.remove)
    if site.workspace is not None:
        site.workspace.sweep()


def _enough(order: Ordered, done: int) -> bool:
    return order.attempts is not None and done >= order.attempts
