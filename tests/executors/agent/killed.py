"""One attempt in a process of its own, which kills itself at a chosen step of its book.

`python -m tests.executors.agent.killed ROOT STORE KILL_AT ON_CRASH`
STORE is `file` or `desk`; KILL_AT is `before:N` or `after:N` the N-th settling, or `never`.
"""

import json
import os
import signal
import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
from pydantic import JsonValue

from agent_run.contract.budget import Spend
from agent_run.contract.manifest import Manifest
from agent_run.desk import Desk
from agent_run.engine.purse import DeskPurse
from agent_run.ledger.commands import Claim, OpenRun, Post, Submit
from agent_run.models import MemoryPurse, ScriptedModel
from agent_run.ports.model import ModelAnswer, ModelRequest, Purse, Remembered
from agent_run.store.sqlite import SqliteStore
from tests.executors.agent.working import EDITED, Bench, final, turn

STAMP = "python3 -c \"import uuid; open('stamp.txt', 'w').write(uuid.uuid4().hex)\""
SCRIPT = (turn("read", path="calc.py"), EDITED, turn("run", command=STAMP), final())
MANIFEST = {"allowed_paths": ["calc.py", "stamp.txt"]}


class LoggedModel(ScriptedModel):
    """Writes down every question in a file that outlives the process."""

    log: Path

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        with self.log.open("a") as file:
            file.write(f"{request.step}\n")
        return await super().ask(request)


@dataclass(slots=True)
class Deadly:
    """A purse that kills the process around one settling."""

    purse: Purse
    when: str
    left: int

    def recall(self, key: str) -> Remembered | None:
        return self.purse.recall(key)

    def reserve(
        self, key: str, amount: Spend, *, purpose: str = "", question: JsonValue = None
    ) -> None:
        self.purse.reserve(key, amount, purpose=purpose, question=question)

    def settle(self, key: str, spent: Spend, result: JsonValue = None) -> None:
        self.left -= 1
        if self.left == 0 and self.when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        self.purse.settle(key, spent, result)
        if self.left == 0 and self.when == "after":
            os.kill(os.getpid(), signal.SIGKILL)


def desk_at(root: Path, now: datetime) -> Desk:
    return Desk(SqliteStore(root / "ledger.db"), clock=lambda: now, new_trace=lambda: "0" * 32)


def claimed(desk: Desk, manifest: Manifest, owner: str) -> DeskPurse:
    """Post the task if it is not there, and claim it."""
    if not desk.runs():
        post = Post(actor="planner", manifest=manifest)
        desk.handle("r-1", OpenRun(actor="planner"), post)
    state = desk.handle("r-1", Claim(task_id="t-1", owner=owner, ttl=timedelta(minutes=5)))
    return DeskPurse(desk, "r-1", "t-1", state.tasks["t-1"].claim or 0, owner)


def main(root: Path, store: str, kill_at: str, on_crash: str) -> int:
    attempt = int((root / "attempts").read_text()) + 1 if (root / "attempts").exists() else 1
    (root / "attempts").write_text(str(attempt))
    bench = Bench(root)
    bench.fresh()
    job = bench.job(**MANIFEST, on_crash=on_crash)
    desk = None
    purse: Purse = MemoryPurse(file=root / "purse") if store == "file" else MemoryPurse()
    if store == "desk":
        now = datetime(2026, 1, 1, attempt, tzinfo=UTC)  # an hour later the claim has lapsed
        desk = desk_at(root, now)
        purse = claimed(desk, job.brief.manifest, f"worker-{attempt}")
    when, _, number = kill_at.partition(":")
    deadly = Deadly(purse, when, int(number or 0))
    model = LoggedModel(SCRIPT)
    model.log = root / "asked"
    agent = replace(bench.agent(model), purse_for=lambda _job: deadly)
    work = anyio.run(agent.run, job)
    if desk is not None and isinstance(purse, DeskPurse) and work.record is not None:
        submit = Submit(task_id="t-1", actor=purse.owner, claim=purse.claim, record=work.record)
        desk.handle("r-1", submit)
        desk.close()
    said = work.record.model_dump(mode="json") if work.record else None
    shown = {"record": said, "told": bench.told, "spent": work.seen.tokens_used}
    sys.stdout.write(json.dumps(shown))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
