"""The desk for many coroutines: what they wish at one moment is committed together.

Whoever comes first leads: it takes all that waits to the desk in one trip to a thread, and
then lets the next one lead. Nobody polls, and nobody waits longer than one commit.
"""

from collections import deque

import anyio

from agent_run.contract.base import RunId
from agent_run.desk.batch import Ask
from agent_run.desk.counter import Desk
from agent_run.ledger.commands import Command
from agent_run.ledger.state import RunState


class _Turn:
    """One coroutine's wish, and the moment it may go on."""

    __slots__ = ("ask", "go_on")

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self.go_on = anyio.Event()


class Together:
    """Commits what many coroutines of one event loop ask for, as few times as possible."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._waiting: deque[_Turn] = deque()
        self._led = False

    async def handle(self, run_id: RunId, *commands: Command) -> RunState:
        """Grant all `commands` on the newest state, or raise and write nothing."""
        turn = _Turn(Ask(run_id, commands))
        self._waiting.append(turn)
        # What was begun is finished: a wish half granted is no wish.
        with anyio.CancelScope(shield=True):
            if self._led:
                await turn.go_on.wait()
            if not turn.ask.answered:
                await self._lead()
        return turn.ask.answer()

    async def _lead(self) -> None:
        self._led = True
        batch = list(self._waiting)
        self._waiting.clear()
        try:
            await anyio.to_thread.run_sync(self._desk.settle, [turn.ask for turn in batch])
        finally:
            for turn in batch:
                turn.go_on.set()
            if self._waiting:
                self._waiting[0].go_on.set()  # the next one leads
            else:
                self._led = False
