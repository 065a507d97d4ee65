"""A wide fan-out: how close to the lower bound it ends, and what a step costs over asyncio.

Workers are functions that wait as long as a model would. The lower bound is the number of
rounds that the limit forces, times the wait. The cost is CPU time of the whole process.

Usage: fan_out [--quick] [--workers N] [--limit N] [--seconds S] [--profile]
"""

import argparse
import asyncio
import cProfile
import pstats
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from math import ceil
from pathlib import Path
from time import perf_counter, process_time
from typing import TypeAlias

import anyio

from agent_run.contract.brief import Brief
from agent_run.contract.plan import Plan
from agent_run.contract.record import Record
from agent_run.executors.function import executor
from agent_run.wiring import open_desk
from agent_run.wiring.running import run_plan
from benchmarks.telling import tell

Cost: TypeAlias = tuple[float, float]
Work: TypeAlias = Callable[[], Awaitable[None]]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="fan_out", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="wait 0.1 s instead of 1 s")
    parser.add_argument("--workers", type=int, default=1_000)
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--seconds", type=float)
    parser.add_argument(
        "--profile", action="store_true", help="say where the event loop's time goes"
    )
    wanted = parser.parse_args(arguments)
    wait = wanted.seconds if wanted.seconds is not None else (0.1 if wanted.quick else 1.0)
    if wanted.profile:
        return _profiled(wanted.workers, wanted.limit, wait)
    fanned_out(1, 1, 0)  # what is imported at first use is no cost of a step
    bare = measured(bare_asyncio(wanted.workers, wanted.limit, wait))
    ours = fanned_out(wanted.workers, wanted.limit, wait)
    bound = ceil(wanted.workers / wanted.limit) * wait
    rows = [
        _row(what, cost, bare=bare, bound=bound, workers=wanted.workers)
        for what, cost in (("bare asyncio", bare), ("agent-run, durable ledger", ours))
    ]
    tell(rows)
    return 0


def bare_asyncio(workers: int, limit: int, wait: float) -> Work:
    """Return the same with nothing written down: a semaphore and a sleep."""

    async def work(gate: asyncio.Semaphore) -> None:
        async with gate:
            await asyncio.sleep(wait)

    async def whole() -> None:
        gate = asyncio.Semaphore(limit)
        await asyncio.gather(*(work(gate) for _ in range(workers)))

    return whole


def fanned_out(workers: int, limit: int, wait: float) -> Cost:
    """Post, claim, do, submit and judge each step; every one of these is a page on disk."""

    @executor("wait")
    async def waiting(brief: Brief) -> Record:
        await anyio.sleep(wait)
        return Record(status="done", output=brief.task_id, confidence=1.0)

    steps = [
        {"task_id": f"w{n}", "objective": "wait", "executor": "wait"} for n in range(workers)
    ]
    plan = Plan.model_validate({"objective": "fan out", "steps": steps})
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(open_desk(f"sqlite:///{Path(folder) / 'ledger.db'}")) as desk,
    ):

        async def whole() -> None:
            done = await run_plan(desk, plan, executors=[waiting], run_id="fan", at_once=limit)
            if done.status != "accepted":
                msg = f"the run ended {done.status!r}, expected 'accepted'"
                raise RuntimeError(msg)

        return measured(whole)


def measured(work: Work) -> Cost:
    """Return CPU and wall seconds of the whole."""
    cpu, wall = process_time(), perf_counter()
    anyio.run(work)
    return process_time() - cpu, perf_counter() - wall


def _row(what: str, cost: Cost, *, bare: Cost, bound: float, workers: int) -> dict[str, object]:
    return {
        "what": what,
        "workers": workers,
        "wall s": round(cost[1], 3),
        "lower bound s": round(bound, 3),
        "wall / bound": round(cost[1] / bound, 3) if bound else "",
        "cpu ms a step": round(cost[0] / workers * 1e3, 3),
        "over asyncio, cpu ms a step": round((cost[0] - bare[0]) / workers * 1e3, 3),
    }


def _profiled(workers: int, limit: int, wait: float) -> int:
    profile = cProfile.Profile()
    profile.runcall(fanned_out, workers, limit, wait)
    pstats.Stats(profile).sort_stats("tottime").print_stats(25)
    return 0
