"""The work of `worker` and `judge`: long-running claimers for one or many machines."""

import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Final, TypedDict, Unpack

import anyio

from agent_run.cli.exits import Exit
from agent_run.cli.speech import Speech
from agent_run.cli.work.door import Door, opened
from agent_run.cli.work.ending import Ending, ending_of
from agent_run.cli.work.executing import fenced, warn_of_fence
from agent_run.cli.work.listening import Transcript, completed, transcript
from agent_run.cli.work.verifying import judged
from agent_run.contract.base import RunId, TaskId
from agent_run.contract.claim import ClaimCheck
from agent_run.desk import Desk
from agent_run.engine.aside import aside
from agent_run.engine.bench import at_bench
from agent_run.engine.site import Site
from agent_run.engine.telling import Told, tell_claim
from agent_run.engine.worker import attempt
from agent_run.errors import (
    AgentRunError,
    ContractError,
    TransitionError,
    Unfit,
    WorkspaceError,
)
from agent_run.ledger.commands import Command, Expire, Lapse
from agent_run.ledger.state import Status
from agent_run.ports.executor import Executor
from agent_run.ports.store import Wanted as Kind
from agent_run.wiring.settings import FenceMode, Settings
from agent_run.wiring.site import Wanted, open_executor, open_site

_LONGEST_WAIT: Final = 1.0
_LONGEST_PATIENCE: Final = 60.0
_AT_ONCE: Final = 100
_SWEEPER: Final = "sweeper"


class Around(TypedDict):
    """What may be said about the machine and the run."""

    once: bool
    run_id: RunId | None
    jsonl: bool
    cached: bool
    dirty: str | None
    fence: FenceMode | None


class Wish(Around):
    """What may be said about a worker."""

    executors: tuple[str, ...]
    owner: str | None
    ttl: timedelta | None
    no_judge: bool


@dataclass(slots=True)
class _Shift:
    """One process at work, and what came of it so far."""

    speech: Speech
    site: Site
    settings: Settings
    around: Around
    tell: Transcript
    done: dict[str, int] = field(default_factory=dict)
    code: Exit = Exit.DONE
    passed_over: set[tuple[RunId, TaskId, int]] = field(default_factory=set)
    """Records that cannot be judged here, each with the page it stands on."""

    @property
    def desk(self) -> Desk:
        return self.site.desk

    def end_with(self, ending: Ending) -> None:
        """Note how a task came out, and tell it to whoever reads a stream."""
        self.done[ending.status] = self.done.get(ending.status, 0) + 1
        if ending.code is not Exit.DONE:
            self.code = ending.code
        if self.around["jsonl"]:
            self.speech.line(ending.as_json())


def worker(speech: Speech, **wish: Unpack[Wish]) -> int:
    """Claim, do and judge tasks until nothing is left, or for ever."""
    with opened(speech, writes=True) as door:
        shift = _begun(door, wish)
        names, default = _names(shift.settings, wish["executors"])
        owner = wish["owner"] or shift.settings.owner
        if wish["run_id"] is not None:
            door.desk.run(wish["run_id"])
        desk = shift.site.desk
        hands = {name: open_executor(name, shift.settings, desk=desk) for name in names}
        crew = _Crew(shift, hands, default, owner, wish["ttl"], judges=not wish["no_judge"])
        return _served(shift, crew.one_more)


def judge(speech: Speech, **around: Unpack[Around]) -> int:
    """Judge what was submitted until nothing is left, or for ever."""
    with opened(speech, writes=True) as door:
        shift = _begun(door, around)
        return _served(shift, lambda: _judge_one(shift))


@dataclass(slots=True)
class _Crew:
    """The executors that one worker process can let loose."""

    shift: _Shift
    hands: dict[str, Executor]
    default: str
    owner: str
    ttl: timedelta | None
    judges: bool

    async def one_more(self) -> bool:
        """Work on the most urgent task; say whether there was one."""
        desk = self.shift.desk
        await aside(lambda: sweep(desk))
        with anyio.CancelScope(shield=True):
            # A claim that was granted must come into the hands of someone who gives it back.
            check = await aside(
                lambda: desk.claim_next(
                    owner=self.owner,
                    ttl=self.ttl,
                    run_id=self.shift.around["run_id"],
                    executors=tuple(self.hands),
                )
            )
        if check is None:
            return False
        await self._attempt(check.run_id or check.task_id, check)
        return True

    async def _attempt(self, run_id: RunId, check: ClaimCheck) -> None:
        shift, task_id = self.shift, check.task_id
        run = await aside(lambda: shift.desk.run(run_id))
        manifest = run.tasks[task_id].manifest
        tell_claim(shift.site.tell, check, self.ttl or manifest.claim_ttl)
        executor = self.hands[manifest.executor or self.default]
        try:
            async with at_bench(shift.site) as bench:
                state = await attempt(bench, check, executor, run=run)
            if self.judges and state.tasks[task_id].status is Status.SUBMITTED:
                await judged(shift.site, run_id, task_id)
        except TransitionError as lost:
            shift.site.tell(Told("claim", f"lost: {lost}"))
            shift.code = Exit.NOT_YOURS
            return
        if self.judges or state.tasks[task_id].status is not Status.SUBMITTED:
            shift.end_with(await aside(lambda: ending_of(shift.desk, run_id, task_id)))


async def _judge_one(shift: _Shift) -> bool:
    """Judge one record; say whether there was one."""
    await aside(lambda: sweep(shift.desk))
    most = _AT_ONCE + len(shift.passed_over)
    for row in await aside(
        lambda: shift.desk.find("submitted", limit=most, run_id=shift.around["run_id"])
    ):
        place = (row.run_id, row.task_id, row.changed)
        if place in shift.passed_over:
            continue
        try:
            await judged(shift.site, row.run_id, row.task_id)
        except (TransitionError, WorkspaceError) as error:
            # Someone else judged it, or its files lie on another machine.
            shift.passed_over.add(place)
            shift.speech.tell(f"task {row.task_id!r} of run {row.run_id!r}: {error}")
            continue
        shift.end_with(await aside(partial(ending_of, shift.desk, row.run_id, row.task_id)))
        return True
    return False


def sweep(desk: Desk) -> int:
    """Let go of claims that ran out and of questions nobody answered; return how many."""
    swept = 0
    for run_id, command in _overdue(desk):
        try:
            desk.handle(run_id, command)
        except TransitionError:
            continue  # another process was first
        swept += 1
    return swept


def _overdue(desk: Desk) -> Iterator[tuple[RunId, Command]]:
    kinds: dict[Kind, type[Expire | Lapse]] = {"expired": Expire, "overdue": Lapse}
    for kind, wish in kinds.items():
        for row in desk.find(kind, limit=_AT_ONCE):
            yield row.run_id, wish(task_id=row.task_id, actor=_SWEEPER)


def _begun(door: Door, around: Around) -> _Shift:
    speech, settings = door.speech, fenced(door.settings, around["fence"])
    tell = transcript(speech, aside=around["jsonl"])
    wanted = Wanted(tell=tell, cached=around["cached"], dirty=around["dirty"])
    site = open_site(door.desk, settings, wanted)
    warn_of_fence(speech, site)
    return _Shift(speech, site, settings, around, tell)


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


def _served(shift: _Shift, one_more: Callable[[], Awaitable[bool]]) -> int:
    try:
        completed(lambda: _serve(shift, one_more), shift.speech, shift.tell)
    finally:
        if shift.speech.as_json and not shift.around["jsonl"]:
            shift.speech.object({"done": sum(shift.done.values()), "status": shift.done})
    return shift.code if shift.around["once"] else Exit.DONE


async def _serve(shift: _Shift, one_more: Callable[[], Awaitable[bool]]) -> None:
    once, longest = shift.around["once"], _LONGEST_WAIT
    while True:
        try:
            worked, longest = await one_more(), _LONGEST_WAIT
        except Unfit:
            raise
        except AgentRunError as error:
            # The ledger may come back, or the task; who asks too often fills the ledger.
            if once:
                raise
            shift.speech.warn(str(error))
            worked, longest = False, min(2 * longest, _LONGEST_PATIENCE)
        shift.tell.finish()
        if not worked and once:
            return
        if not worked:
            # Workers that woke up together must not ask together again and again.
            pause = random.uniform(longest / 5, longest)  # noqa: S311 - no secret
            await _wait(shift.desk, pause, in_vain=longest > _LONGEST_WAIT)


async def _wait(desk: Desk, seconds: float, *, in_vain: bool) -> None:
    """Wait until something new is written; after trouble, wait out the whole time."""
    if in_vain:
        await anyio.sleep(seconds)
    else:
        await aside(partial(desk.wait, timedelta(seconds=seconds)))
