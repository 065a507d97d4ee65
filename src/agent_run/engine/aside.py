"""Work that blocks, done in a thread and always to its end: half a commit is no commit."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from typing import TypeVar

import anyio

ResultT = TypeVar("ResultT")


async def aside(work: Callable[[], ResultT]) -> ResultT:
    """Return what `work` gives, without holding up anything else meanwhile."""
    return await anyio.to_thread.run_sync(work)


@asynccontextmanager
async def within(place: AbstractContextManager[ResultT]) -> AsyncIterator[ResultT]:
    """Enter and leave a blocking context; it is left even when the work is cancelled."""
    with anyio.CancelScope(shield=True):
        entered = await aside(place.__enter__)
    try:
        yield entered
    finally:
        with anyio.CancelScope(shield=True):
            await aside(lambda: place.__exit__(None, None, None))
