"""A site without files: a real ledger and real gates, for tasks that functions do."""

from pathlib import Path

from agent_run.engine.site import Site
from agent_run.gates.cache import NoCache
from agent_run.gates.record import ConfidenceGate, RecordGate
from agent_run.ports.fence import Fence, FenceReport, Finished, Launch, OnLine
from agent_run.wiring import open_desk
from agent_run.wiring.opening import wall_clock
from agent_run.workspace.removal import remove_tree


class NoFence:
    """A fence that is never asked to run anything."""

    def report(self) -> FenceReport:
        return FenceReport(kind="none", abi=None, holds=(), lacks=("everything",))

    async def run(self, launch: Launch, *, on_line: OnLine | None = None) -> Finished:
        raise AssertionError(launch)


class WordMeter:
    """Counts words, so that a test can say how many tokens a payload has."""

    name = "words"

    def count(self, text: str) -> int:
        return len(text.strip('"').split())


def file_less_site(folder: Path, url: str | None = None) -> Site:
    fence: Fence = NoFence()
    return Site(
        desk=open_desk(url or f"sqlite:///{folder / 'ledger.db'}"),
        workspace=None,
        fence=fence,
        gates=(RecordGate(), ConfidenceGate()),
        cache=NoCache(),
        clock=wall_clock,
        folder=folder / "work",
        remove=remove_tree,
        meter=WordMeter(),
    )
