"""The first run: one task from post to accepted, with a claim that is lost on the way.

The clock is our own, so that twenty minutes pass at once and every run reads the same.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from agent_run.cli.exits import Exit
from agent_run.cli.speech import Speech
from agent_run.cli.work.paging import as_json, in_words
from agent_run.contract.manifest import Check, Manifest
from agent_run.contract.record import Record
from agent_run.contract.verdict import Finding, Verdict
from agent_run.desk import Desk
from agent_run.desk.counter import claim_check
from agent_run.errors import StaleClaim
from agent_run.ledger.commands import Claim, Judge, Post, Submit
from agent_run.store.sqlite import SqliteStore

RUN: Final = "demo"
NOON: Final = datetime(2026, 11, 16, 12, tzinfo=UTC)
MANIFEST: Final = Manifest(
    task_id="repo-142",
    objective="Add rate-limit backoff to the GitHub sync worker",
    allowed_paths=("src/github_sync.py", "tests/test_github_sync.py"),
    constraints=("Do not change API response schemas", "Keep max retry delay under 30 seconds"),
    verification=(Check(run="pytest tests/test_github_sync.py -q"),),
    handoff_notes=("Existing failures come from 429 handling",),
)
RECORD: Final = Record(
    task_id="repo-142",
    files_changed=("src/github_sync.py", "tests/test_github_sync.py"),
    commands_run=("pytest tests/test_github_sync.py -q",),
    risks=("Backoff constants tuned for current API rate window",),
    next_step="Review retry cap before merging",
)
VERDICT: Final = Verdict(
    findings=(
        Finding(gate="scope", outcome="pass", reason="verified", paths=RECORD.files_changed),
        Finding(
            gate="commands", outcome="pass", reason="verified", commands=RECORD.commands_run
        ),
    )
)


@dataclass(slots=True)
class _Clock:
    """Time that passes when the story says so."""

    now: datetime = NOON

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now

    def pass_by(self, time: timedelta) -> None:
        self.now += time


def demo(speech: Speech) -> int:
    """Tell the story, and show the ledger it left."""
    with _desk() as (desk, clock):
        for line in _story(desk, clock):
            if not speech.as_json:
                speech.show(line)
        pages = desk.pages(RUN)
        broken = list(desk.verify(RUN))
        status = desk.run(RUN).tasks[MANIFEST.task_id].status
    verified = f"{len(pages)} pages, each sealed with the one before it: " + (
        "broken" if broken else "verified"
    )
    speech.answer(
        {
            "task_id": MANIFEST.task_id,
            "run_id": RUN,
            "status": status.value,
            "pages": [as_json(page) for page in pages],
            "verified": not broken,
        },
        ["", "The ledger, as it was written:", *map(in_words, pages), "", verified],
    )
    return Exit.FAILED if broken else Exit.DONE


def _story(desk: Desk, clock: _Clock) -> Iterator[str]:
    task = MANIFEST.task_id
    desk.handle(RUN, Post(actor="planner", manifest=MANIFEST))
    yield f"[post]    task={task} {MANIFEST.objective}"
    yield f"[post]    may write {', '.join(MANIFEST.allowed_paths)}, nothing else"
    late = _claimed(desk, "executor-1")
    yield f"[claim]   task={task} owner=executor-1 ttl=20m attempt=1 claim={late}"
    clock.pass_by(timedelta(minutes=21))
    yield "[lost]    executor-1 is not heard of for 21 minutes"
    claim = _claimed(desk, "executor-2")
    yield f"[claim]   task={task} owner=executor-2 ttl=20m attempt=2 claim={claim}"
    try:
        desk.handle(RUN, Submit(task_id=task, actor="executor-1", claim=late, record=RECORD))
    except StaleClaim as refused:
        yield f"[refused] executor-1 comes back with its work: {refused}"
    desk.handle(RUN, Submit(task_id=task, actor="executor-2", claim=claim, record=RECORD))
    files, risks = len(RECORD.files_changed), len(RECORD.risks)
    yield f"[summary] status={RECORD.status} files={files} risks={risks}"
    now = desk.handle(RUN, Judge(task_id=task, actor="judge", verdict=VERDICT, claim=claim))
    gates = "  ".join(f"{finding.gate} PASS" for finding in VERDICT.findings)
    yield f"[verify]  {gates}  -> {now.tasks[task].status}"


def _claimed(desk: Desk, owner: str) -> int:
    command = Claim(task_id=MANIFEST.task_id, owner=owner)
    check = claim_check(RUN, desk.handle(RUN, command), MANIFEST.task_id)
    return check.claim or 0


@contextmanager
def _desk() -> Iterator[tuple[Desk, _Clock]]:
    clock = _Clock()
    with tempfile.TemporaryDirectory(prefix="agent-run-demo-") as folder:
        store = SqliteStore(Path(folder) / "ledger.db")
        desk = Desk(store, clock=clock, new_trace=lambda: "0" * 31 + "1")
        try:
            yield desk, clock
        finally:
            desk.close()
