"""Running a plan from Python: a desk, a plan, some executors, and nothing else to set up."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from agent_run.contract.base import RunId
from agent_run.desk import Desk
from agent_run.engine.runs import Outcome, crew_of
from agent_run.engine.runs import run_plan as driven
from agent_run.engine.shapes import Shape
from agent_run.engine.site import Site
from agent_run.gates.cache import NoCache
from agent_run.gates.record import ConfidenceGate, RecordGate
from agent_run.ports.executor import Executor
from agent_run.wiring.opening import new_trace, wall_clock
from agent_run.wiring.settings import configure
from agent_run.wiring.site import open_site
from agent_run.workspace.fence import open_fence
from agent_run.workspace.removal import remove_tree


async def run_plan(
    desk: Desk,
    plan: Shape,
    *,
    executors: Sequence[Executor],
    run_id: RunId | None = None,
    owner: str = "driver",
    at_once: int = 8,
) -> Outcome:
    """Carry `plan` out with these executors, as far as it goes by itself.

    `plan` may also be an `Orchestration` of workers or a `Routing` between specialists.
    Executors that work on files get copies of the project around the current folder.

    Raises:
        InvalidDocument: Steps and executors do not fit; nothing was started.
    """
    name = run_id or (plan.run_name if plan.plan_id else f"run-{new_trace()[:12]}")
    crew = crew_of(executors, owner=owner, at_once=at_once)
    if any(executor.wants_workspace for executor in executors):
        site = open_site(desk, configure().settings)
        return await driven(site, plan, crew, run_id=name)
    with TemporaryDirectory(prefix="agent-run-") as folder:
        return await driven(_without_files(desk, Path(folder)), plan, crew, run_id=name)


def _without_files(desk: Desk, folder: Path) -> Site:
    return Site(
        desk=desk,
        workspace=None,
        fence=open_fence("off"),
        gates=(RecordGate(), ConfidenceGate()),
        cache=NoCache(),
        clock=wall_clock,
        folder=folder,
        remove=remove_tree,
    )
