"""The driver of a run: ask the topology what is next, let executors work, ask again.

It keeps nothing that the ledger does not have. Killed at any point and started again, it
reads the run and goes on; what was finished is not done again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from time import monotonic
from typing import Final

import anyio
from anyio.abc import TaskGroup

from agent_run.contract.base import RunId, TaskId
from agent_run.desk.together import Together
from agent_run.engine.aside import aside
from agent_run.engine.bench import Bench, at_bench
from agent_run.engine.execute import Ordered, execute_at, tidy
from agent_run.engine.line import Line
from agent_run.engine.patience import awaited_by, in_short
from agent_run.engine.site import Site
from agent_run.engine.telling import Told
from agent_run.errors import (
    ContractError,
    TransitionError,
    UncommittedWork,
    Unfit,
    WorkspaceError,
)
from agent_run.ledger.commands import Command, Escalate, Expire, Lapse
from agent_run.ledger.lookup import expired
from agent_run.ledger.state import RunState, Status
from agent_run.ports.executor import Executor
from agent_run.topology.shape import Topology

_TTL: Final = timedelta(seconds=60)
_LONGEST_NAP: Final = 1.0
_REST: Final = 20.0
"""How long the driver lets a run go on by itself, as a multiple of what the last look took."""
_AT_THE_DESK: Final = 16
"""How many may be on their way from one piece of work to the next.

When many come back at one moment, the first are at work again while the last still wait;
if all went through each step together, all would wait for all.
"""


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

    site: Site
    run_id: RunId
    crew: Crew
    bench: Bench
    line: Line = field(default_factory=Line)
    busy: set[TaskId] = field(default_factory=set)
    declined: dict[TaskId, int] = field(default_factory=dict)
    """Task -> page of the run at which it could not be claimed."""
    moved: anyio.Event = field(default_factory=anyio.Event)
    idle: anyio.Event = field(default_factory=anyio.Event)
    looked: float = 0.0
    """How many seconds of thinking the last look at the whole run took."""
    waits_for: str = ""
    """What people were told last that is waited for."""

    @property
    def desk(self) -> Together:
        return self.bench.desk

    def begin_to_look(self) -> None:
        self.moved, self.idle, self.looked = anyio.Event(), anyio.Event(), 0.0

    def stir(self) -> None:
        self.moved.set()
        if not self.busy:
            self.idle.set()

    def tell_once(self, awaited: str) -> None:
        """Say what is waited for, if it is something new."""
        if awaited != self.waits_for:
            self.waits_for = awaited
            self.site.tell(Told("wait", awaited))

    def take(self) -> TaskId | None:
        """Take the next task of the line, unless enough are worked on."""
        if len(self.busy) >= self.crew.at_once:
            return None
        task_id = self.line.take(without=self.busy)
        if task_id is not None:
            self.busy.add(task_id)
        return task_id


async def drive(site: Site, run_id: RunId, topology: Topology, crew: Crew) -> RunState:
    """Bring the run as far as it goes by itself, and return it as it then stands.

    It ends when everything is settled, or when all that is left waits for a person.
    """
    async with (
        at_bench(site, many=True, hands=crew.at_once, at_the_desk=_AT_THE_DESK) as bench,
        anyio.create_task_group() as group,
    ):
        await aside(lambda: tidy(site))
        floor = _Floor(site, run_id, crew, bench)
        while True:
            floor.begin_to_look()
            run = await aside(lambda: site.desk.run(run_id))
            run = await _reacted(floor, run, topology)
            swept = await _swept(floor, run, site.clock())
            if swept.seq != run.seq:
                run = await _reacted(floor, swept, topology)
            _line_up(floor, run)
            _send_to_work(floor, group)
            if not floor.busy:
                awaited = list(awaited_by(run, site.clock()))
                if not awaited:
                    break
                floor.tell_once(in_short(awaited))
            await _until_it_moves(floor)
    return run


async def _until_it_moves(floor: _Floor) -> None:
    """Wait until the whole run is worth looking at again.

    A long run takes long to look at. What must not wait for that goes on by itself: whoever
    ends a task takes the next one from the line.
    """
    if not floor.busy:  # only somebody else can move it
        await aside(lambda: floor.site.desk.wait(timedelta(seconds=_LONGEST_NAP)))
        return
    with anyio.move_on_after(_LONGEST_NAP):
        with anyio.move_on_after(floor.looked * _REST):
            await floor.idle.wait()
        await floor.moved.wait()


async def _reacted(floor: _Floor, run: RunState, topology: Topology) -> RunState:
    """Write down everything the topology wants next, until it wants nothing more."""
    while True:
        began = monotonic()
        commands = topology(run)
        floor.looked += monotonic() - began
        if not commands:
            return run
        run = await _granted(floor, run, *commands)


async def _swept(floor: _Floor, run: RunState, now: datetime) -> RunState:
    """Let go of claims whose owners vanished, and act on the silence of people."""
    for name, task in run.tasks.items():
        if task.status is Status.CLAIMED and name not in floor.busy and expired(task, now):
            run = await _granted(floor, run, Expire(task_id=name, actor="driver"))
        elif task.deadline and (late := task.lapses_at) and late <= now:
            run = await _granted(floor, run, Lapse(task_id=name, actor="driver"))
    return run


async def _granted(floor: _Floor, run: RunState, *commands: Command) -> RunState:
    """Return the run after `commands`, or as it is now if somebody else was first."""
    try:
        return await floor.desk.handle(floor.run_id, *commands)
    except TransitionError:
        newer = await aside(lambda: floor.site.desk.run(floor.run_id))
        if newer.seq == run.seq:
            raise  # nobody was: the wish itself is wrong
        return newer


def _line_up(floor: _Floor, run: RunState) -> None:
    began = monotonic()
    refused = {task for task, page in floor.declined.items() if page == run.seq}
    floor.line.fill(run, without=floor.busy | refused)
    floor.looked += monotonic() - began


def _send_to_work(floor: _Floor, group: TaskGroup) -> None:
    while (task_id := floor.take()) is not None:
        group.start_soon(_hand, floor, task_id)


async def _hand(floor: _Floor, task_id: TaskId) -> None:
    """Work on one task after the other, as long as there is one in the line."""
    following: TaskId | None = task_id
    async with floor.bench.inside():
        while following is not None:
            run: RunState | None = None
            try:
                run = await _work(floor, following)
            finally:
                floor.busy.discard(following)
                if run is None or not floor.line.follow(run, following):
                    floor.stir()
            following = floor.take()


async def _work(floor: _Floor, task_id: TaskId) -> RunState | None:
    """Return the run after the task was worked on; `None` if it has to be looked at."""
    site, run_id, crew = floor.site, floor.run_id, floor.crew
    run = floor.line.run
    executor = crew.who(run, task_id)
    try:
        if executor is None:
            return await floor.desk.handle(run_id, _nobody(run, task_id))
        order = Ordered(executor, crew.owner, ttl=crew.ttl)
        return await execute_at(floor.bench, run_id, task_id, order, run=run)
    except TransitionError as refused:
        # Somebody else has it, does it or judges it, or the budget is held by others: look
        # again when things moved.
        site.tell(Told("wait", str(refused)))
        run = await aside(lambda: site.desk.run(run_id))
        floor.declined[task_id] = run.seq
    except UncommittedWork:
        raise  # nothing can be done before the user has put the project in order
    except (Unfit, ContractError, WorkspaceError) as unfit:
        escalate = Escalate(
            task_id=task_id, actor=crew.owner, reason="executor_failed", note=str(unfit)
        )
        await floor.desk.handle(run_id, escalate)
    return None


def _nobody(run: RunState, task_id: TaskId) -> Escalate:
    name = run.tasks[task_id].manifest.executor
    note = f"no executor {name!r} is here" if name else "the task names no executor"
    return Escalate(task_id=task_id, actor="driver", reason="executor_failed", note=note)
