"""The work of `worker` and `judge`: what they take, and what they do with it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Final, TypeAlias, Unpack

import anyio

from agent_run.cli.exits import Exit
from agent_run.cli.speech import Speech
from agent_run.cli.work.door import opened
from agent_run.cli.work.ending import ending_of
from agent_run.cli.work.serving import Around, Piece, Shift, begun, served
from agent_run.contract.base import RunId, TaskId
from agent_run.contract.claim import ClaimCheck
from agent_run.desk import Desk
from agent_run.engine.aside import aside
from agent_run.engine.bench import Bench
from agent_run.engine.judge import judge_at
from agent_run.engine.telling import Told, tell_claim
from agent_run.engine.worker import attempt
from agent_run.errors import ContractError, TransitionError, WorkspaceError
from agent_run.ledger.commands import Command, Expire, Lapse
from agent_run.ledger.state import RunState, Status
from agent_run.ports.executor import Executor
from agent_run.ports.store import TaskRow
from agent_run.ports.store import Wanted as Kind
from agent_run.wiring.settings import Settings
from agent_run.wiring.site import open_executor

_MOST_ROWS: Final = 100
_SWEEPER: Final = "sweeper"
_SWEPT: Final[dict[Kind, type[Expire | Lapse]]] = {
    "expired": Expire,
    "overdue": Lapse,
    "undecided": Lapse,
    "unapproved": Lapse,
}
_Place: TypeAlias = tuple[RunId, TaskId, int]
"""A record, by the page it stands on."""


class Wish(Around):
    """What may be said about a worker."""

    executors: tuple[str, ...]
    owner: str | None
    ttl: timedelta | None
    no_judge: bool


def worker(speech: Speech, **wish: Unpack[Wish]) -> int:
    """Claim, do and judge tasks until nothing is left, or for ever."""
    with opened(speech, writes=True) as door:
        shift = begun(door, wish)
        names, default = _names(shift.settings, wish["executors"])
        owner = wish["owner"] or shift.settings.owner
        if wish["run_id"] is not None:
            door.desk.run(wish["run_id"])
        desk = shift.site.desk
        executors = {name: open_executor(name, shift.settings, desk=desk) for name in names}
        court = None if wish["no_judge"] else _Court(shift)
        crew = _Crew(shift, executors, default, owner, wish["ttl"], court)
        return served(shift, crew.take)


def judge(speech: Speech, **around: Unpack[Around]) -> int:
    """Judge what was submitted until nothing is left, or for ever."""
    with opened(speech, writes=True) as door:
        shift = begun(door, around)
        return served(shift, _Court(shift).take)


@dataclass(frozen=True, slots=True)
class _Crew:
    """The executors that one worker process can let loose."""

    shift: Shift
    executors: dict[str, Executor]
    default: str
    owner: str
    ttl: timedelta | None
    court: "_Court | None"
    """Where the work is judged. `None` leaves the verdict to another process."""

    async def take(self, bench: Bench) -> Piece | None:
        """Claim the most urgent task; if there is none, judge what somebody left unjudged."""
        await aside(lambda: sweep(self.shift.desk))
        with anyio.CancelScope(shield=True):
            # A claim that was granted must come into the hands of someone who gives it back.
            claimed = await aside(self._claimed)
        if claimed is not None:
            return partial(self._attempt, bench, *claimed)
        return None if self.court is None else await self.court.take_left(bench, self.ttl)

    def _claimed(self) -> tuple[ClaimCheck, RunState] | None:
        desk, run_id = self.shift.desk, self.shift.around["run_id"]
        check = desk.claim_next(
            owner=self.owner, ttl=self.ttl, run_id=run_id, executors=tuple(self.executors)
        )
        return None if check is None else (check, desk.run(check.run_id or check.task_id))

    async def _attempt(self, bench: Bench, check: ClaimCheck, run: RunState) -> None:
        shift, task_id, run_id = self.shift, check.task_id, check.run_id or check.task_id
        site, manifest = bench.about(task_id), run.tasks[task_id].manifest
        tell_claim(site.tell, check, self.ttl or manifest.claim_ttl)
        executor = self.executors[manifest.executor or self.default]
        try:
            run = await attempt(bench, check, executor, run=run)
            if self.court is not None:
                run = await self.court.judged(bench, run_id, task_id, run)
        except TransitionError as lost:
            site.tell(Told("claim", f"lost: {lost}"))
            shift.code = Exit.NOT_YOURS
            return
        if run.tasks[task_id].status is not Status.SUBMITTED:
            shift.end_with(await aside(lambda: ending_of(shift.desk, run_id, task_id)))


@dataclass(frozen=True, slots=True)
class _Court:
    """The records that one process has before it."""

    shift: Shift
    heard: set[tuple[RunId, TaskId]] = field(default_factory=set)
    """Tasks whose records are being judged here."""
    passed_over: set[_Place] = field(default_factory=set)
    """Records that cannot be judged here."""
    standing: dict[_Place, float] = field(default_factory=dict)
    """Since when a record was seen to stand unjudged, by the clock of the event loop."""

    async def take(self, bench: Bench) -> Piece | None:
        """Take the most urgent record that nobody here has before them."""
        await aside(lambda: sweep(self.shift.desk))
        row = next(iter(await self._unjudged()), None)
        return None if row is None else self._piece(bench, row)

    async def take_left(self, bench: Bench, ttl: timedelta | None) -> Piece | None:
        """Take a record that stood unjudged for as long as a claim holds: its judge is dead."""
        rows, now = await self._unjudged(), anyio.current_time()
        for place in set(self.standing) - {_place(row) for row in rows}:
            del self.standing[place]
        for row in rows:
            stood = now - self.standing.setdefault(_place(row), now)
            if ttl is not None and stood < ttl.total_seconds():
                continue
            if ttl is not None or stood >= await aside(partial(self._usual, row)):
                return self._piece(bench, row)
        return None

    async def judged(
        self, bench: Bench, run_id: RunId, task_id: TaskId, run: RunState
    ) -> RunState:
        """Judge until the gates know, or a person is asked because they do not."""
        self.heard.add((run_id, task_id))
        try:
            while run.tasks[task_id].status is Status.SUBMITTED:
                run = await judge_at(bench, run_id, task_id, run=run)
        finally:
            self.heard.discard((run_id, task_id))
        return run

    async def _unjudged(self) -> list[TaskRow]:
        desk, run_id = self.shift.desk, self.shift.around["run_id"]
        most = _MOST_ROWS + len(self.heard) + len(self.passed_over)
        rows = await aside(lambda: desk.find("submitted", limit=most, run_id=run_id))
        return [
            row
            for row in rows
            if (row.run_id, row.task_id) not in self.heard
            and _place(row) not in self.passed_over
        ]

    def _usual(self, row: TaskRow) -> float:
        """Return how many seconds a claim on the task holds, if nobody says otherwise."""
        manifest = self.shift.desk.run(row.run_id).tasks[row.task_id].manifest
        return manifest.claim_ttl.total_seconds()

    def _piece(self, bench: Bench, row: TaskRow) -> Piece:
        self.heard.add((row.run_id, row.task_id))
        return partial(self._judge, bench, row)

    async def _judge(self, bench: Bench, row: TaskRow) -> None:
        shift, run_id, task_id = self.shift, row.run_id, row.task_id
        try:
            run = await aside(lambda: shift.desk.run(run_id))
            # If it is submitted no more, whoever was first has judged it: that is refused.
            run = await judge_at(bench, run_id, task_id, run=run)
            await self.judged(bench, run_id, task_id, run)
        except (TransitionError, WorkspaceError) as error:
            # Someone else judged it, or its files lie on another machine.
            self.passed_over.add(_place(row))
            shift.speech.tell(f"task {task_id!r} of run {run_id!r}: {error}")
            return
        finally:
            self.heard.discard((run_id, task_id))
        shift.end_with(await aside(lambda: ending_of(shift.desk, run_id, task_id)))


def _place(row: TaskRow) -> _Place:
    return row.run_id, row.task_id, row.changed


def sweep(desk: Desk) -> int:
    """Let go of claims that ran out, and act on the silence of people; return how often."""
    swept = 0
    for run_id, command in _overdue(desk):
        try:
            desk.handle(run_id, command)
        except TransitionError:
            continue  # another process was first
        swept += 1
    return swept


def _overdue(desk: Desk) -> Iterator[tuple[RunId, Command]]:
    for kind, wish in _SWEPT.items():
        for row in desk.find(kind, limit=_MOST_ROWS):
            yield row.run_id, wish(task_id=row.task_id, actor=_SWEEPER)


def _names(settings: Settings, asked: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """Return the executors to work for, and the one that takes tasks for anybody."""
    names = dict.fromkeys((*asked, *(() if asked else settings.executors)))
    default = asked[0] if asked else settings.executor
    if default is None and len(names) == 1:
        default = next(iter(names))
    if default is None:
        msg = "no executor is named for tasks that name none: use --executor, or set one"
        raise ContractError(msg)
    return tuple(dict.fromkeys((default, *names))), default
