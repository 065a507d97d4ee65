"""A long-running process: it takes pieces of work, does several at once, and ends cleanly.

One loop takes; whatever it took is in somebody's hands before anything can interrupt it.
When the process is told to end, every hand gives back what it holds.
"""

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Final, TypeAlias, TypedDict

import anyio
from anyio.abc import TaskGroup

from agent_run.cli.exits import Exit
from agent_run.cli.speech import Speech
from agent_run.cli.work.door import Door
from agent_run.cli.work.ending import Ending
from agent_run.cli.work.executing import fenced, warn_of_fence
from agent_run.cli.work.listening import Transcript, completed, transcript
from agent_run.contract.base import RunId
from agent_run.desk import Desk
from agent_run.engine.aside import aside
from agent_run.engine.bench import Bench, at_bench
from agent_run.engine.execute import tidy
from agent_run.engine.site import Site
from agent_run.errors import AgentRunError, Unfit
from agent_run.wiring.settings import FenceMode, Settings
from agent_run.wiring.site import Wanted, open_site

_LONGEST_WAIT: Final = 1.0
_LONGEST_PATIENCE: Final = 60.0

Piece: TypeAlias = Callable[[], Awaitable[None]]
"""One piece of work that was taken."""
Take: TypeAlias = Callable[[Bench], Awaitable[Piece | None]]
"""Takes the most urgent piece; `None` if there is none."""


class Around(TypedDict):
    """What may be said about the machine and the run."""

    once: bool
    at_once: int
    run_id: RunId | None
    jsonl: bool
    cached: bool
    dirty: str | None
    fence: FenceMode | None


@dataclass(slots=True)
class Shift:
    """One process at work, and what came of it so far."""

    speech: Speech
    site: Site
    settings: Settings
    around: Around
    tell: Transcript
    done: dict[str, int] = field(default_factory=dict)
    code: Exit = Exit.DONE

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


def begun(door: Door, around: Around) -> Shift:
    """Return the shift of a process that is about to serve."""
    speech, settings = door.speech, fenced(door.settings, around["fence"])
    tell = transcript(speech, aside=around["jsonl"])
    wanted = Wanted(tell=tell, cached=around["cached"], dirty=around["dirty"])
    site = open_site(door.desk, settings, wanted)
    warn_of_fence(speech, site)
    return Shift(speech, site, settings, around, tell)


def served(shift: Shift, take: Take) -> int:
    """Do whatever can be taken, until nothing is left or for ever; return the exit code."""
    try:
        completed(lambda: _serve(shift, take), shift.speech, shift.tell)
    finally:
        if shift.speech.as_json and not shift.around["jsonl"]:
            shift.speech.object({"done": sum(shift.done.values()), "status": shift.done})
    return shift.code if shift.around["once"] else Exit.DONE


async def _serve(shift: Shift, take: Take) -> None:
    hands = shift.around["at_once"]
    async with at_bench(shift.site, many=hands > 1, hands=hands) as bench:
        await aside(lambda: tidy(shift.site))
        async with anyio.create_task_group() as group:
            floor = _Floor(shift, group)
            await floor.keep_busy(lambda: take(bench))
    if floor.trouble is not None:
        raise floor.trouble


@dataclass(slots=True)
class _Floor:
    """The hands of one process."""

    shift: Shift
    group: TaskGroup
    busy: int = 0
    ended: anyio.Event = field(default_factory=anyio.Event)
    """Set when the next of them ends."""
    patience: float = _LONGEST_WAIT
    """How long to wait at most; longer after each trouble in a row."""
    trouble: Exception | None = None
    """Why the process cannot go on."""

    async def keep_busy(self, take: Callable[[], Awaitable[Piece | None]]) -> None:
        """Let every hand have a piece, until nothing is left if that is wanted."""
        once, hands = self.shift.around["once"], self.shift.around["at_once"]
        while True:
            piece = await self._taken(take)
            if piece is not None:
                self.busy += 1
                self.group.start_soon(self._do, piece)
            elif once and not self.busy:
                return
            while self.busy >= hands:
                await self.ended.wait()
            if piece is None or self.patience > _LONGEST_WAIT:
                await self._rest()

    async def _taken(self, take: Callable[[], Awaitable[Piece | None]]) -> Piece | None:
        try:
            return await take()
        except AgentRunError as error:
            self._meet(error)
            return None

    async def _do(self, piece: Piece) -> None:
        try:
            await piece()
            self.patience = _LONGEST_WAIT
        except Exception as error:  # noqa: BLE001 - raised when all hands have let go
            self._meet(error)
        finally:
            self.shift.tell.finish()
            self.busy -= 1
            self.ended.set()
            self.ended = anyio.Event()

    def _meet(self, error: Exception) -> None:
        """Go on after trouble that may pass, more and more slowly; stop after any other."""
        passing = isinstance(error, AgentRunError) and not isinstance(error, Unfit)
        if passing and not self.shift.around["once"]:
            # The ledger may come back, or the task; who asks too often fills the ledger.
            self.shift.speech.warn(str(error))
            self.patience = min(2 * self.patience, _LONGEST_PATIENCE)
        else:
            self.trouble = self.trouble or error
            self.group.cancel_scope.cancel()

    async def _rest(self) -> None:
        """Wait until something new is written; after trouble, wait out the whole time."""
        # Workers that woke up together must not ask together again and again.
        pause = random.uniform(self.patience / 5, self.patience)  # noqa: S311 - no secret
        if self.patience > _LONGEST_WAIT:
            await anyio.sleep(pause)
        else:
            wait = partial(self.shift.desk.wait, timedelta(seconds=pause))
            await aside(wait)
