"""Several things done at the same time, in the order in which they were given."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import anyio

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


async def each_of(
    items: Sequence[ItemT],
    work: Callable[[ItemT], Awaitable[ResultT]],
    *,
    at_once: int,
    progress: Callable[[int, int, ResultT], None] = lambda _done, _of, _last: None,
) -> list[ResultT]:
    """Return what `work` makes of each item, at most `at_once` of them at a time.

    `progress` is told how many are done, of how many, and what came of the last.
    """
    results: dict[int, ResultT] = {}
    limiter = anyio.CapacityLimiter(at_once)

    async def one(place: int, item: ItemT) -> None:
        async with limiter:
            results[place] = await work(item)
        progress(len(results), len(items), results[place])

    async with anyio.create_task_group() as group:
        for place, item in enumerate(items):
            group.start_soon(one, place, item)
    return [results[place] for place in range(len(items))]
