"""A small project, and an agent whose model says what a test tells it to say."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from agent_run.contract.brief import Brief
from agent_run.contract.manifest import Manifest
from agent_run.executors.agent import Agent, AgentLimits
from agent_run.models import BytesMeter, MemoryPurse, ScriptedModel, Terms, Turn
from agent_run.ports.executor import Job, Work
from agent_run.ports.fence import Limits
from agent_run.ports.model import Model
from agent_run.wiring.toolbox import toolbox
from agent_run.workspace.fence import open_fence

WRONG = "def add(a, b):\n    return a - b\n"
RIGHT = "def add(a, b):\n    return a + b\n"
RECORD: dict[str, Any] = {
    "status": "done",
    "files_changed": ["calc.py"],
    "commands_run": [],
    "risks": [],
    "confidence_percent": 90,
    "next_action": "continue",
}


def turn(name: str, **arguments: Any) -> Turn:
    """Return a turn that calls one tool."""
    return Turn.model_validate({"calls": [{"name": name, "arguments": arguments}]})


def final(**changes: Any) -> Turn:
    return turn("final_result", **{**RECORD, **changes})


EDITED = turn("edit", path="calc.py", old="a - b", new="a + b")


@dataclass(slots=True)
class Bench:
    """One project, one purse, and everything that was told."""

    root: Path
    purse: MemoryPurse = field(default_factory=MemoryPurse)
    told: list[str] = field(default_factory=list)
    limits: AgentLimits = field(default_factory=AgentLimits)
    wall_sec: float = 60
    cheaper: tuple[Model, ...] = ()

    @property
    def workspace(self) -> Path:
        return self.root / "workspace"

    def fresh(self) -> None:
        """Lay the project out anew, as for the next attempt."""
        self.workspace.mkdir(parents=True, exist_ok=True)
        for path in sorted(self.workspace.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        (self.workspace / "calc.py").write_text(WRONG)
        (self.workspace / "tests").mkdir()
        (self.workspace / "tests" / "test_calc.py").write_text("import calc\n")

    def job(self, **manifest: Any) -> Job:
        given = {"task_id": "t-1", "objective": "Repair add", "allowed_paths": ["calc.py"]}
        made = Manifest.model_validate({**given, **manifest})
        return Job(
            brief=Brief(task_id="t-1", run_id="r-1", manifest=made),
            workspace=self.workspace,
            folder=self.root / "job",
            fence=open_fence("prefer"),
            limits=Limits(wall_sec=self.wall_sec),
            network=made.network,
            tell=lambda topic, text: self.told.append(f"{topic}: {text}"),
        )

    def agent(self, model: Model) -> Agent:
        tools = toolbox(os.environ, root=self.root)
        return Agent(
            "agent",
            lambda _name: model,
            BytesMeter(),
            lambda _job: self.purse,
            cheaper=self.cheaper,
            limits=self.limits,
            terms=Terms(pause_sec=0),
            env=tools.env,
            readable=tools.readable,
        )

    def work(self, script: Sequence[Turn] | Model, **manifest: Any) -> Work:
        model: Model = ScriptedModel(script) if isinstance(script, Sequence) else script
        return anyio.run(self.agent(model).run, self.job(**manifest))

    def seen(self, *turns: Turn, **manifest: Any) -> list[str]:
        """Return what the tools said to these turns."""
        work = self.work([*turns, final()], **manifest)
        lines = map(json.loads, work.seen.transcript.decode().splitlines())
        return [line["text"] for line in lines if line["kind"] == "tool"]


def bench(root: Path, **fields: Any) -> Bench:
    """Return a bench with a fresh project below `root`."""
    made = Bench(root, **fields)
    made.fresh()
    return made


Script = Callable[..., Turn]
