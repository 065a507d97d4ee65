"""The desk for many coroutines: what they wish at one moment is committed together.

The first wish of a round leads it: it waits until the round before is committed, and then
takes all wishes of its own to the desk in one trip to a thread. Nobody polls, and nobody
waits longer than two commits.
"""

import anyio
from anyio.lowlevel import checkpoint

from agent_run.contract.base import RunId
from agent_run.desk.batch import Ask
from agent_run.desk.counter import Desk
from agent_run.ledger.commands import Command
from agent_run.ledger.state import RunState


class _Round:
    """Wishes that are committed together, and the moment they are."""

    __slots__ = ("asks", "committed")

    def __init__(self) -> None:
        self.asks: list[Ask] = []
        self.committed = anyio.Event()


class Together:
    """Commits what many coroutines of one event loop ask for, as few times as possible."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._gathering = _Round()
        self._under_way: _Round | None = None

    async def handle(self, run_id: RunId, *commands: Command) -> RunState:
        """Grant all `commands` on the newest state, or raise and write nothing."""
        ask, own = Ask(run_id, commands), self._gathering
        own.asks.append(ask)
        # What was begun is finished: a wish half granted is no wish.
        with anyio.CancelScope(shield=True):
            if own.asks[0] is ask:
                await self._lead(own)
            else:
                await own.committed.wait()
        return ask.answer()

    async def _lead(self, own: _Round) -> None:
        if self._under_way is not None:
            await self._under_way.committed.wait()
        # Those who were answered a moment ago mostly wish for something at once. Without a
        # chance to do so, every other commit would hold one wish only.
        await checkpoint()
        self._gathering, self._under_way = _Round(), own
        try:
            await anyio.to_thread.run_sync(self._desk.settle, own.asks)
        finally:
            self._under_way = None
            own.committed.set()
