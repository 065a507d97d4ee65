"""Processes that drive a run and may be killed at any moment."""

from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import anyio

from agent_run.contract.brief import Brief
from agent_run.contract.plan import Plan
from agent_run.contract.record import Record
from agent_run.desk import Desk
from agent_run.engine.runs import crew_of, resume
from agent_run.engine.site import Site
from agent_run.executors.function import FunctionExecutor, executor
from agent_run.ledger.commands import OpenRun
from agent_run.store.sqlite import SqliteStore
from agent_run.wiring.opening import new_trace, wall_clock
from benchmarks.peers.experiments import note
from tests.races.actors import FORKED
from tests.support.sites import file_less_site

FORKED.set_forkserver_preload(["tests.races.actors", __name__])

RUN: Final = "r"
LIFE: Final = timedelta(hours=1)
"""How much later each life is than the one before: claims of the dead have run out by then."""


@dataclass(frozen=True, slots=True)
class Life:
    """One process's turn at driving the run."""

    folder: Path
    number: int
    at_once: int
    broken: tuple[str, ...] = ()
    """Tasks that fail in this life."""

    def now(self) -> datetime:
        return wall_clock() + self.number * LIFE


def open_run(life: Life, plan: Plan) -> None:
    """Open the run for `plan`, and leave it to the lives that follow."""
    document: Any = plan.model_dump(mode="json", exclude_defaults=True)
    with closing(site_of(life).desk) as desk:
        desk.handle(RUN, OpenRun(actor="eve", plan={"plan": document, "replanning": None}))


def site_of(life: Life) -> Site:
    """Return a site whose ledger is shared by all lives, on the clock of this one."""
    site = file_less_site(life.folder)
    site.desk.close()
    store = SqliteStore(life.folder / "ledger.db")
    desk = Desk(store, clock=life.now, new_trace=new_trace)
    return replace(site, desk=desk, clock=life.now)


def live(pipe: Connection, life: Life) -> None:
    """Drive the run to its end, and say how it ended; noting whatever is begun."""
    site = site_of(life)
    crew = crew_of([_noting(life)], owner="driver", at_once=life.at_once)
    with closing(site.desk):
        outcome = anyio.run(resume, site, RUN, crew)
    pipe.send(outcome.status)


def _noting(life: Life) -> FunctionExecutor[Any]:
    @executor("work")
    async def work(brief: Brief) -> Record:
        note(life.folder / f"begun-{life.number}", brief.task_id)
        await anyio.sleep(0.002)
        if brief.task_id in life.broken:
            return Record(status="failed", error="the network is down")
        return Record(status="done", output=brief.task_id)

    return work
