"""Where tasks are worked on in one process: one way to the desk, one keeper of all claims.

What many tasks write at one moment is one commit, and one heartbeat keeps all their claims.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Final

import anyio

from agent_run.contract.base import RunId, TaskId
from agent_run.desk.together import Together
from agent_run.engine.aside import aside
from agent_run.engine.keeping import Keeper
from agent_run.engine.site import Site
from agent_run.engine.telling import Told, to_nobody

_OTHER_THREADS: Final = 40


@dataclass(slots=True)
class Bench:
    """The site as this process works in it. One event loop, as many tasks as wanted."""

    site: Site
    desk: Together
    keeper: Keeper
    many: bool = False
    """Whether several tasks are worked on, so that each line told must say about which."""
    door: anyio.Semaphore | None = None
    """Held by whoever is on the way from one piece of work to the next. `None` lets all."""
    _traces: dict[RunId, str] = field(default_factory=dict)

    async def trace_id(self, run_id: RunId) -> str:
        """Return the id under which everything about the run can be traced."""
        known = self._traces.get(run_id)
        if known is None:
            known = self._traces[run_id] = await aside(lambda: self.site.desk.trace_id(run_id))
        return known

    def inside(self) -> AbstractAsyncContextManager[object]:
        """Pass the door, and hold it to the end."""
        return self.door or nullcontext()

    def outside(self) -> AbstractAsyncContextManager[object]:
        """Let others through the door meanwhile; whoever calls holds it."""
        return nullcontext() if self.door is None else _Outside(self.door)

    def about(self, task_id: TaskId) -> Site:
        """Return the site with each line that is told about this task saying so, if need be."""
        site = self.site
        if not self.many or site.tell is to_nobody:
            return site

        def tell(told: Told) -> None:
            named = told.text if f"task={task_id} " in told.text else f"{task_id}: {told.text}"
            site.tell(replace(told, text=named))

        return replace(site, tell=tell)


@dataclass(frozen=True, slots=True)
class _Outside:
    """The time between letting others through a door and passing it again."""

    door: anyio.Semaphore

    async def __aenter__(self) -> None:
        self.door.release()

    async def __aexit__(self, *how: object) -> None:
        try:
            self.door.acquire_nowait()
        except anyio.WouldBlock:
            with anyio.CancelScope(shield=True):
                await self.door.acquire()


def bench_of(site: Site, *, many: bool = False, at_the_desk: int | None = None) -> Bench:
    """Return a bench on which nobody keeps claims: for those who hold none."""
    desk = Together(site.desk)
    door = None if at_the_desk is None else anyio.Semaphore(at_the_desk)
    return Bench(site, desk, Keeper(desk, site.desk), many, door)


@asynccontextmanager
async def at_bench(
    site: Site, *, many: bool = False, hands: int = 1, at_the_desk: int | None = None
) -> AsyncIterator[Bench]:
    """Offer a bench on which claims are kept as long as they are worked under.

    `hands` is how many tasks are worked on at once, and `at_the_desk` how many of them may
    be on their way from one piece of work to the next.
    """
    # Work may block a thread for as long as it takes; heartbeats must still find one.
    threads = anyio.to_thread.current_default_thread_limiter()
    threads.total_tokens = max(threads.total_tokens, hands + _OTHER_THREADS)
    bench = bench_of(site, many=many, at_the_desk=at_the_desk)
    trouble: Exception | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(bench.keeper.keep)
        try:
            yield bench
        except Exception as error:  # noqa: BLE001 - raised below, outside of the group
            trouble = error
        group.cancel_scope.cancel()
    if trouble is not None:
        raise trouble
