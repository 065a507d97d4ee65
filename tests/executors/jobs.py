"""Jobs for executors, and a fence that only writes down what it was asked for."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from agent_run.contract.brief import Brief
from agent_run.contract.manifest import Manifest
from agent_run.ports.executor import Job
from agent_run.ports.fence import FenceReport, Finished, Launch, OnLine
from tests.gates.cases import NO_FENCE, finished


@dataclass(slots=True)
class FakeFence:
    """Answers every launch with the same end, after doing what `record` says."""

    end: Finished = field(default_factory=finished)
    record: str | None = None
    launches: list[Launch] = field(default_factory=list)

    def report(self) -> FenceReport:
        return NO_FENCE

    async def run(self, launch: Launch, *, on_line: OnLine | None = None) -> Finished:
        self.launches.append(launch)
        if self.record is not None:
            await anyio.Path(launch.env["AGENT_RUN_RECORD"]).write_text(self.record)
        return self.end


def job(place: Path, fence: FakeFence | None = None, **more: Any) -> Job:
    workspace, folder = place / "workspace", place / "job"
    for path in (workspace, folder):
        path.mkdir(exist_ok=True)
    fields = {"task_id": "t-1", "objective": "do it", **more.pop("manifest", {})}
    brief = Brief(
        task_id="t-1",
        run_id="run-1",
        attempt=2,
        claim=7,
        manifest=Manifest.model_validate(fields),
        **more.pop("brief", {}),
    )
    plain: dict[str, Any] = {"brief": brief, "workspace": workspace, "folder": folder}
    return Job(fence=fence or FakeFence(), **{**plain, **more})
