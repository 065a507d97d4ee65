"""From a posted task to its end: claim, attempt, judge, and again while attempts are left."""

from dataclasses import dataclass
from datetime import timedelta

from agent_run.contract.base import RunId, TaskId
from agent_run.desk.counter import claim_check
from agent_run.engine.aside import aside
from agent_run.engine.bench import Bench, at_bench
from agent_run.engine.folders import sweep
from agent_run.engine.judge import judge_at
from agent_run.engine.site import Site
from agent_run.engine.telling import Told, tell_claim
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
    async with at_bench(site) as bench:
        await aside(lambda: tidy(site))
        run = await aside(lambda: site.desk.run(run_id))
        return await execute_at(bench, run_id, task_id, order, run=run)


async def execute_at(
    bench: Bench, run_id: RunId, task_id: TaskId, order: Ordered, *, run: RunState
) -> RunState:
    """Do the same at a bench; `run` is the run as it was last seen.

    Raises:
        NotClaimable: Someone else holds it, or it waits for something.
        StaleClaim: The claim was lost; nothing was submitted.
        Unfit: The executor cannot work on this machine.
    """
    done, judged, state = 0, False, run
    while True:
        task = state.tasks[task_id]
        if task.status is Status.SUBMITTED:
            state, judged = await judge_at(bench, run_id, task_id, run=state), True
            continue
        if (done or judged) and task.status is not Status.READY:
            return state
        if done and _enough(order, done):
            return state
        state = await claim(bench, run_id, task_id, order)
        if state.tasks[task_id].status is not Status.CLAIMED:
            return state
        done += 1
        check = claim_check(run_id, state, task_id)
        try:
            state = await attempt(bench, check, order.executor, run=state)
        except StaleClaim as lost:
            bench.about(task_id).tell(Told("claim", f"lost: {lost}"))
            raise


async def claim(bench: Bench, run_id: RunId, task_id: TaskId, order: Ordered) -> RunState:
    """Ask for the claim check, and return the run; to ask may end the task instead."""
    command = Claim(task_id=task_id, owner=order.owner, ttl=order.ttl)
    state = await bench.desk.handle(run_id, command)
    task, tell = state.tasks[task_id], bench.about(task_id).tell
    if task.status is Status.CLAIMED:
        tell_claim(
            tell, claim_check(run_id, state, task_id), order.ttl or task.manifest.claim_ttl
        )
    else:
        tell(Told("claim", f"task={task_id} {task.status}: {task.note}"))
    return state


def tidy(site: Site) -> None:
    """Remove what workers and judges that died have left behind; never what is in use."""
    for kind in ("jobs", "rooms"):
        sweep(site.folder / kind, site.remove)
    if site.workspace is not None:
        site.workspace.sweep()


def _enough(order: Ordered, done: int) -> bool:
    return order.attempts is not None and done >= order.attempts
