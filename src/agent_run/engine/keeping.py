"""One heartbeat for all claims of a process, and a look in between whether they still count.

A claim is kept from here and not by the executor: one that hangs would renew its own claim.
When a claim is lost, the work under it is cancelled, and only that work.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import anyio

from agent_run.contract.base import RunId, TaskId
from agent_run.contract.claim import ClaimCheck
from agent_run.desk import Desk
from agent_run.desk.together import Together
from agent_run.engine.aside import aside
from agent_run.errors import StoreError, TransitionError
from agent_run.ledger.commands import Heartbeat
from agent_run.ledger.lookup import held_claim
from agent_run.ledger.state import RunState

_BEATS_PER_TTL: Final = 3
_SHORTEST_PAUSE: Final = 0.05
_LOOK: Final = 1.0
"""Seconds until a worker knows that its task was cancelled."""


@dataclass(slots=True)
class Held:
    """One claim that is being worked under."""

    check: ClaimCheck
    ttl: timedelta
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    due: float = 0.0
    """When the next heartbeat is to be given, by the clock of the event loop."""
    begun: bool = False
    """Whether the executor was let loose, so that the attempt counts."""
    lost: str = ""
    """Why the claim is not ours any more. Empty means that it is."""
    missed: int = 0
    """How many heartbeats in a row the ledger did not answer."""

    @property
    def run_id(self) -> RunId:
        return self.check.run_id or self.check.task_id

    @property
    def pause(self) -> float:
        return max(_SHORTEST_PAUSE, self.ttl.total_seconds() / _BEATS_PER_TTL)

    def lose(self, why: str) -> None:
        self.lost = why
        self.scope.cancel()


@dataclass(slots=True)
class Keeper:
    """Keeps every claim that is worked under in this process."""

    desk: Together
    book: Desk
    """Where to look without writing."""
    _held: dict[tuple[RunId, TaskId], Held] = field(default_factory=dict)
    _until: float = 0.0
    """When the keeper wakes up by itself."""
    _sooner: anyio.Event = field(default_factory=anyio.Event)

    @contextmanager
    def keeping(self, held: Held) -> Iterator[None]:
        """Keep the claim meanwhile; what goes on inside is cancelled when it is lost."""
        place = held.run_id, held.check.task_id
        with held.scope:
            held.due = anyio.current_time() + held.pause
            self._held[place] = held
            if held.due < self._until:
                self._sooner.set()
            try:
                yield
            finally:
                del self._held[place]

    async def keep(self) -> None:
        """Give heartbeats and look, until cancelled."""
        while True:
            await self._rest()
            now = anyio.current_time()
            every = tuple(self._held.values())
            due = [held for held in every if held.due <= now]
            async with anyio.create_task_group() as group:
                for held in due:
                    group.start_soon(self._show_life, held)
            rest = [held for held in every if held.due > now and not held.lost]
            if rest:
                await self._look(rest)

    async def _rest(self) -> None:
        """Sleep until a heartbeat is due, or it is time to look."""
        now = anyio.current_time()
        self._until = min((held.due for held in self._held.values()), default=now + _LOOK)
        self._until = min(self._until, now + _LOOK)
        self._sooner = anyio.Event()
        with anyio.move_on_at(self._until):
            await self._sooner.wait()

    async def _show_life(self, held: Held) -> None:
        check = held.check
        heartbeat = Heartbeat(
            task_id=check.task_id, actor=check.owner, claim=check.claim or 0, ttl=held.ttl
        )
        try:
            await self.desk.handle(held.run_id, heartbeat)
            held.missed = 0
        except StoreError as error:
            # The ledger may come back; the claim holds as long as its time has not passed.
            held.missed += 1
            if held.missed >= _BEATS_PER_TTL:
                held.lose(f"the ledger did not answer for a whole claim: {error}")
        except TransitionError as error:
            held.lose(str(error))
        held.due = anyio.current_time() + held.pause

    async def _look(self, every: list[Held]) -> None:
        """Find out that a task was cancelled or taken over, without waiting for its beat."""
        names = {held.run_id for held in every}
        try:
            runs = await aside(lambda: {name: self.book.run(name) for name in names})
        except StoreError:
            return  # the next heartbeat says what follows from that
        for held in every:
            try:
                held_claim(runs[held.run_id], held.check.task_id, held.check.claim or 0)
            except TransitionError as error:
                held.lose(str(error))


def held_under(check: ClaimCheck, run: RunState) -> Held:
    """Return the claim to be kept; `run` is the run as it was when the claim was granted.

    How long it was granted for is said by the clock of the ledger, and not by ours.
    """
    left = check.expires_at - (run.at or check.expires_at)
    usual = run.tasks[check.task_id].manifest.claim_ttl
    return Held(check, left if left > timedelta() else usual)
