"""The four experiments on agent-run: function executors on a real ledger in a file."""

import sys
import tempfile
from collections.abc import Iterable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from agent_run.contract.brief import Brief
from agent_run.contract.budget import Budget, Spend
from agent_run.contract.plan import Plan
from agent_run.contract.record import Record
from agent_run.desk import Desk
from agent_run.engine.runs import Outcome, crew_of, resume
from agent_run.engine.site import Site
from agent_run.executors.function import FunctionExecutor, executor
from agent_run.gates.cache import NoCache
from agent_run.gates.record import RecordGate
from agent_run.ledger.commands import Answer, OpenRun, Reserve, Settle
from agent_run.ledger.events import RecordSubmitted
from agent_run.version import __version__
from agent_run.wiring import open_desk
from agent_run.wiring.opening import wall_clock
from agent_run.wiring.running import run_plan
from agent_run.workspace.fence import open_fence
from agent_run.workspace.removal import remove_tree
from benchmarks.peers import experiments as same

PEER = f"agent-run {__version__}"
SCHEMA = {"type": "object", "properties": {"count": {"type": "integer"}}}


def plan_of(names: Iterable[str], **more: object) -> Plan:
    """Return a plan of steps that do not need each other."""
    steps = [
        {"task_id": name, "objective": "work", "executor": "work", **more} for name in names
    ]
    return Plan.model_validate({"objective": "experiment", "steps": steps})


async def one_fails(folder: Path, when: str) -> object:
    """E1: run, let one fail, answer for it, resume, and count who ran again."""
    broken = {f"w{same.BROKEN}"}

    @executor("work")
    async def work(brief: Brief) -> Record:
        same.note(folder / "ran", brief.task_id)
        if brief.task_id in broken:
            await anyio.sleep(same.EARLY if when == "early" else same.LATE)
            return Record(status="failed", error="the network is down")
        await anyio.sleep(same.WORK)
        return Record(status="done", output=brief.task_id)

    with closing(open_desk(f"sqlite:///{folder / 'ledger.db'}")) as desk:
        names = [f"w{n}" for n in range(same.WORKERS)]
        plan = plan_of(names, budget={"max_attempts": 1})
        await run_plan(desk, plan, executors=[work], run_id="fan", at_once=same.WORKERS)
        before = same.noted(folder / "ran")
        (failed,) = broken
        broken.clear()
        desk.handle("fan", Answer(task_id=failed, actor="eve", answer="try again"))
        await _resumed(desk, folder, work)
    return same.siblings_row(PEER, when, before, same.noted(folder / "ran"))


def two_at_once(folder: Path) -> object:
    """E2: two processes drive the same runs, each begun at the same instant."""
    names = [f"r{number}" for number in range(same.ROUNDS)]
    with closing(open_desk(f"sqlite:///{folder / 'ledger.db'}")) as desk:
        for name in names:
            _open(desk, name)
    same.two_processes(__file__, folder)
    return same.doubles_row(PEER, same.noted(folder / "ran"))


def both(folder: Path, number: int) -> None:
    """Be one of the two processes; both call themselves the same, to make it harder."""

    @executor("work")
    async def work(brief: Brief) -> Record:
        same.note(folder / "ran", brief.run_id)
        await anyio.sleep(0.02)
        return Record(status="done")

    with closing(open_desk(f"sqlite:///{folder / 'ledger.db'}")) as desk:
        for round_number in range(same.ROUNDS):
            name = f"r{round_number}"
            same.at_one_instant(folder, number, name)
            anyio.run(_resumed, desk, folder, work, name)


async def one_budget(folder: Path) -> list[object]:
    """E3: eight agents reserve before they ask and settle after it."""
    paid: list[str] = []
    with closing(open_desk(f"sqlite:///{folder / 'ledger.db'}")) as desk:

        @executor("work")
        async def agent(brief: Brief) -> Record:
            answer = await _asked(desk, brief, paid)
            return Record(status="done", output=answer)

        plan = plan_of((f"a{n}" for n in range(same.AGENTS)), budget={"max_attempts": 1})
        plan = plan.model_copy(update={"budget": Budget(max_tokens=same.LIMIT)})
        done = await run_plan(desk, plan, executors=[agent], run_id="b", at_once=same.AGENTS)
    used = sum(done.output(name) is not None for name in done.run.tasks)
    spent = same.ANSWER * len(paid)
    if done.run.spent.tokens != spent:
        msg = f"the ledger says {done.run.spent.tokens} tokens, {spent} were spent"
        raise RuntimeError(msg)
    return same.budget_rows(PEER, spent=spent, paid=len(paid), used=used)


async def breaks_its_schema(folder: Path) -> object:
    """E4: count the pages that hold what the step should not have given."""

    @executor("work")
    async def work(brief: Brief) -> Record:
        return Record(status="done", output={"count": "many"})

    with closing(open_desk(f"sqlite:///{folder / 'ledger.db'}")) as desk:
        plan = plan_of(["a"], output_schema=SCHEMA, budget={"max_attempts": 1})
        await run_plan(desk, plan, executors=[work], run_id="broken")
        events = [page.event() for page in desk.pages("broken")]
    records = [one.record for one in events if isinstance(one, RecordSubmitted)]
    return same.invalid_row(PEER, stored=sum(one.output is not None for one in records))


def results() -> Iterable[object]:
    """Yield the rows of all four."""
    for when in ("early", "late"):
        with tempfile.TemporaryDirectory() as folder:
            yield anyio.run(one_fails, Path(folder), when)
    with tempfile.TemporaryDirectory() as folder:
        yield two_at_once(Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        yield from anyio.run(one_budget, Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        yield anyio.run(breaks_its_schema, Path(folder))


def _open(desk: Desk, run_id: str) -> None:
    """Open a run for a plan of one step, and leave it to others."""
    plan = plan_of(["t"]).model_dump(mode="json", exclude_defaults=True)
    desk.handle(run_id, OpenRun(actor="eve", plan={"plan": plan, "replanning": None}))


async def _resumed(
    desk: Desk, folder: Path, work: FunctionExecutor[Any], run_id: str = "fan"
) -> Outcome:
    site = Site(
        desk=desk,
        workspace=None,
        fence=open_fence("off"),
        gates=(RecordGate(),),
        cache=NoCache(),
        clock=wall_clock,
        folder=folder / "work",
        remove=remove_tree,
    )
    crew = crew_of([work], owner="driver", at_once=same.WORKERS)
    return await resume(site, run_id, crew)


async def _asked(desk: Desk, brief: Brief, paid: list[str]) -> str:
    """Ask a model that takes a moment and 400 tokens, if it can be paid for.

    Raises:
        OverBudget: It cannot; nothing was asked.
    """
    named: dict[str, Any] = {
        "task_id": brief.task_id,
        "actor": "driver",
        "claim": brief.claim,
        "key": "ask",
    }
    amount = Spend(tokens=same.ANSWER)
    reserve = partial(desk.handle, brief.run_id, Reserve(**named, amount=amount))
    await anyio.to_thread.run_sync(reserve)
    await anyio.sleep(0.05)
    paid.append(brief.task_id)
    settle = partial(desk.handle, brief.run_id, Settle(**named, spent=amount, result="yes"))
    await anyio.to_thread.run_sync(settle)
    return "yes"


if __name__ == "__main__":
    sys.exit(same.main(__file__, results, both))
