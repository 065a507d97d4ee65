"""The driver of a run: ask the topology what is next, let executors work, ask again.

It keeps nothing that the ledger does not have. Killed at any point and started again, it
reads the run and goes on; what was finished is not done again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final, TypeVar

import anyio
from anyio.abc import TaskGroup

from agent_run.contract.base import RunId, TaskId
from agent_run.desk.together import Together
from agent_run.engine.execute import Ordered, execute
from agent_run.engine.site import Site
from agent_run.engine.telling import Told
from agent_run.errors import ContractError, NotClaimable, StaleClaim, Unfit
from agent_run.ledger.commands import Escalate, Expire, Lapse
from agent_run.ledger.lookup import expired
from agent_run.ledger.state import RunState, Status
from agent_run.ports.executor import Executor
from agent_run.topology.ordering import ready_in_order, seconds_of, ways_to_go
from agent_run.topology.shape import Topology

ResultT = TypeVar("ResultT")

_TTL: Final = timedelta(seconds=60)
_LONGEST_NAP: Final = 1.0


@dataclass(frozen=True, slots=True)
class Crew:
    """Who works on the tasks of a run."""

    executors: Mapping[str, Executor]
    fallback: Executor | None = None
    """Who takes tasks that name nobody."""
    owner: str = "driver"
    at_once: int = 8
    """How many tasks are worked on at the same time."""
    ttl: timedelta = _TTL

    def who(self, run: RunState, task_id: TaskId) -> Executor | None:
        """Return the executor a task asks for."""
        name = run.tasks[task_id].manifest.executor
        return self.executors.get(name) if name else self.fallback


@dataclass(slots=True)
class _Floor:
    """What is being worked on right now, in this process."""

    desk: Together
    busy: set[TaskId] = field(default_factory=set)
    declined: dict[TaskId, int] = field(default_factory=dict)
    """Task -> page of the run at which it could not be claimed."""
    moved: anyio.Event = field(default_factory=anyio.Event)
    lengths: dict[TaskId, float] = field(default_factory=dict)
    """How long the way behind each task is; computed again when tasks were added."""

    def stir(self) -> None:
        self.moved.set()
        self.moved = anyio.Event()


async def drive(site: Site, run_id: RunId, topology: Topology, crew: Crew) -> RunState:
    """Bring the run as far as it goes by itself, and return it as it then stands.

    It ends when everything is settled, or when all that is left waits for a person.
    """
    floor = _Floor(Together(site.desk))
    async with anyio.create_task_group() as group:
        run = await _aside(lambda: site.desk.run(run_id))
        while True:
            run = await _reacted(floor, run_id, run, topology)
            run = await _swept(floor, run_id, run, site.clock())
            _send_to_work(site, run_id, run, crew, floor, group)
            if not floor.busy and not _will_move(run):
                break
            with anyio.move_on_after(_LONGEST_NAP):
                await floor.moved.wait()
            run = await _aside(lambda: site.desk.run(run_id))
    return run


async def _reacted(floor: _Floor, run_id: RunId, run: RunState, topology: Topology) -> RunState:
    """Write down everything the topology wants next, until it wants nothing more."""
    while commands := topology(run):
        run = await floor.desk.handle(run_id, *commands)
    return run


async def _swept(floor: _Floor, run_id: RunId, run: RunState, now: datetime) -> RunState:
    """Let go of claims whose owners vanished, and of questions nobody answered in time."""
    for name, task in run.tasks.items():
        if task.status is Status.CLAIMED and name not in floor.busy and expired(task, now):
            run = await floor.desk.handle(run_id, Expire(task_id=name, actor="driver"))
        elif task.status is Status.ASKED and task.deadline and task.deadline <= now:
            run = await floor.desk.handle(run_id, Lapse(task_id=name, actor="driver"))
    return run


def _send_to_work(
    site: Site, run_id: RunId, run: RunState, crew: Crew, floor: _Floor, group: TaskGroup
) -> None:
    if len(floor.busy) >= crew.at_once:
        return
    for task_id in _in_order(run, floor):
        if task_id in floor.busy or floor.declined.get(task_id) == run.seq:
            continue
        floor.busy.add(task_id)
        group.start_soon(_work, site, run_id, task_id, crew, floor)
        if len(floor.busy) >= crew.at_once:
            return


def _in_order(run: RunState, floor: _Floor) -> list[TaskId]:
    if len(floor.lengths) != len(run.tasks):
        needs = {name: task.manifest.needs for name, task in run.tasks.items()}
        floor.lengths = ways_to_go(needs, lambda name: seconds_of(run.tasks[name].manifest))
    waiting = [name for name, task in run.tasks.items() if task.status is Status.SUBMITTED]
    return [*waiting, *ready_in_order(run, floor.lengths)]


async def _work(site: Site, run_id: RunId, task_id: TaskId, crew: Crew, floor: _Floor) -> None:
    try:
        run = await _aside(lambda: site.desk.run(run_id))
        executor = crew.who(run, task_id)
        if executor is None:
            await floor.desk.handle(run_id, _nobody(run, task_id))
            return
        order = Ordered(executor, crew.owner, ttl=crew.ttl)
        await execute(_named(site, task_id), run_id, task_id, order)
    except (NotClaimable, StaleClaim) as refused:
        # Somebody else has it, or the budget is held by others: look again when things moved.
        site.tell(Told("wait", str(refused)))
        run = await _aside(lambda: site.desk.run(run_id))
        floor.declined[task_id] = run.seq
    except (Unfit, ContractError) as unfit:
        escalate = Escalate(
            task_id=task_id, actor=crew.owner, reason="executor_failed", note=str(unfit)
        )
        await floor.desk.handle(run_id, escalate)
    finally:
        floor.busy.discard(task_id)
        floor.stir()


def _named(site: Site, task_id: TaskId) -> Site:
    """Return the site with each line that is told about this task saying so."""

    def tell(told: Told) -> None:
        named = told.text if f"task={task_id} " in told.text else f"{task_id}: {told.text}"
        site.tell(replace(told, text=named))

    return replace(site, tell=tell)


def _nobody(run: RunState, task_id: TaskId) -> Escalate:
    name = run.tasks[task_id].manifest.executor
    note = f"no executor {name!r} is here" if name else "the task names no executor"
    return Escalate(task_id=task_id, actor="driver", reason="executor_failed", note=note)


def _will_move(run: RunState) -> bool:
    """Say whether something may happen without a person: a claim elsewhere, a deadline."""
    return any(
        task.status in {Status.READY, Status.CLAIMED, Status.SUBMITTED}
        or (task.status is Status.ASKED and task.deadline is not None)
        for task in run.tasks.values()
    )


async def _aside(work: Callable[[], ResultT]) -> ResultT:
    return await anyio.to_thread.run_sync(work)
