"""What a durable step costs on agent-run: a chain of function steps on a ledger in a file.

Each step is claimed, done, submitted and judged; each of these is on disk before the next.
"""

import json
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from time import perf_counter, process_time

import anyio

from agent_run.contract.brief import Brief
from agent_run.contract.plan import Plan
from agent_run.contract.record import Record
from agent_run.executors.function import executor
from agent_run.version import __version__
from agent_run.wiring import open_desk
from agent_run.wiring.running import run_plan


@executor("add")
async def add(brief: Brief[int]) -> Record[int]:
    """Add one to what came before."""
    return Record[int](status="done", output=(brief.input or 0) + 1)


def main(steps: int) -> None:
    """Run a chain of `steps` steps, each of which adds one."""
    chain = [
        {
            "task_id": f"n{number}",
            "objective": "add",
            "executor": "add",
            "needs": [f"n{number - 1}"] if number else [],
        }
        for number in range(steps)
    ]
    plan = Plan.model_validate({"steps": chain})
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(open_desk(f"sqlite:///{Path(folder) / 'ledger.db'}")) as desk,
    ):

        async def whole() -> None:
            done = await run_plan(desk, plan, executors=[add], run_id="chain")
            if done.output(f"n{steps - 1}") != steps:
                raise RuntimeError(done.status)

        cpu, wall = process_time(), perf_counter()
        anyio.run(whole)
        cpu, wall = process_time() - cpu, perf_counter() - wall
    row = {"what": f"agent-run {__version__}", "steps": steps}
    cost = {"cpu ms a step": cpu / steps * 1e3, "wall ms a step": wall / steps * 1e3}
    print(json.dumps({**row, **cost}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
