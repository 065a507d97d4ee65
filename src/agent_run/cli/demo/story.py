"""The work of `demo`: one task, six executors; what is accepted, what is refused, and why."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import Final

from agent_run.cli.demo.cast import ALL, GOOD, LATE, MISBEHAVING, Part, play, python_places
from agent_run.cli.demo.project import MANIFEST, build
from agent_run.cli.exits import Exit
from agent_run.cli.speech import Json, Speech
from agent_run.cli.work.applying import applied, lines_of
from agent_run.cli.work.door import Door, configured
from agent_run.cli.work.executing import warn_of_fence
from agent_run.cli.work.listening import Transcript, completed, transcript
from agent_run.cli.work.paging import verification
from agent_run.cli.work.recipes import second_act
from agent_run.contract.manifest import Manifest
from agent_run.contract.reading import load, read_document
from agent_run.contract.record import Record
from agent_run.contract.verdict import Verdict
from agent_run.desk.counter import claim_check
from agent_run.engine.bench import bench_of
from agent_run.engine.briefing import brief_for
from agent_run.engine.by_hand import check_out
from agent_run.engine.execute import Ordered, claim, execute
from agent_run.engine.site import Site
from agent_run.engine.telling import Told
from agent_run.errors import StaleClaim, TransitionError
from agent_run.ledger.commands import Post, Submit
from agent_run.ledger.state import Status, TaskState
from agent_run.ports.executor import Job
from agent_run.wiring.opening import open_desk
from agent_run.wiring.settings import Settings
from agent_run.wiring.site import Wanted, open_site

TASK: Final = "repo-142"
_SHORT: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the closing table."""

    attempt: int
    part: Part
    outcome: str
    why: str


def demo(speech: Speech, *, keep: bool) -> int:
    """Play the whole story on a scratch repository of its own."""
    began = monotonic()
    with _scratch(keep=keep) as folder:
        build(folder)
        settings = Settings(root=folder, owner="you", fence=configured(speech).settings.fence)
        desk = open_desk(settings.store_url)
        try:
            rows, door = _played(Door(desk, settings, speech)), Door(desk, settings, speech)
            told = _told(door, rows)
            told["drafts"] = second_act(speech, desk, settings.state)
        finally:
            desk.close()
        if keep:
            speech.tell(f"the repository and its ledger stay in {folder}")
    took = monotonic() - began
    speech.answer(told | {"seconds": round(took, 1)}, [])
    speech.tell(f"{took:.0f} s, without a key and without a network")
    right = rows[-1].outcome == "accepted" and told["verified"] is True
    return Exit.DONE if right else Exit.FAILED


def _played(door: Door) -> list[Row]:
    speech, manifest = door.speech, load(Manifest, read_document(MANIFEST, source="demo"))
    tell = transcript(speech)
    site = _site(door, tell)
    warn_of_fence(speech, site)
    door.desk.handle(TASK, Post(actor="planner", manifest=manifest))
    _say(site, f"{TASK} is posted: {manifest.objective}")
    _say(site, f"may be written: {', '.join(manifest.allowed_paths)}, and nothing else")
    why_late = completed(lambda: _performed(site), speech, tell)
    return _rows(door.desk.run(TASK).tasks[TASK], why_late)


async def _performed(site: Site) -> str:
    """Let all of them work, and return why the late one was refused."""
    for part in MISBEHAVING:
        _say(site, f"{part.owner} {part.does}")
        await execute(site, TASK, TASK, _order(site, part, attempts=1))
    _say(site, f"{LATE.owner} {LATE.does}")
    late = await _work_too_long(site)
    _say(site, f"{GOOD.owner} takes over, {GOOD.does}")
    await execute(site, TASK, TASK, _order(site, GOOD, attempts=1))
    try:
        site.desk.handle(TASK, late)
    except (StaleClaim, TransitionError) as refused:
        site.tell(Told("refused", f"{LATE.owner} comes with its work: {refused}"))
        return str(refused)
    return ""


async def _work_too_long(site: Site) -> Submit:
    """Work under a claim that runs out on the way, and return what comes too late."""
    order = _order(site, LATE, ttl=_SHORT)
    check = claim_check(TASK, await claim(bench_of(site), TASK, TASK, order), TASK)
    folder = site.folder / "late"
    folder.mkdir(parents=True)
    place = check_out(site, check)
    brief = brief_for(TASK, site.desk.run(TASK), TASK, trace_id=site.desk.trace_id(TASK))
    work = await order.executor.run(Job(brief, place, folder, site.fence, tree=place))
    site.tell(Told("note", f"nothing was heard of {LATE.owner} for longer than its claim"))
    record = work.record or Record(task_id=TASK)
    return Submit(task_id=TASK, actor=LATE.owner, claim=check.claim or 0, record=record)


def _order(
    site: Site, part: Part, *, attempts: int | None = None, ttl: timedelta | None = None
) -> Ordered:
    executor = play(part, site.env, site.readable)
    return Ordered(executor, part.owner, ttl=ttl, attempts=attempts)


def _site(door: Door, tell: Transcript) -> Site:
    """Return the site of the scratch repository, whose `python3` is this very Python."""
    site = open_site(door.desk, door.settings, Wanted(tell=tell))
    path = os.pathsep.join((str(Path(sys.executable).parent), site.env["PATH"]))
    return replace(
        site, env={**site.env, "PATH": path}, readable=(*site.readable, *python_places())
    )


def _say(site: Site, text: str) -> None:
    site.tell(Told("demo", text))


def _rows(task: TaskState, why_late: str) -> list[Row]:
    verdicts = (*task.returned, *((task.verdict,) if task.verdict else ()))
    judged = dict(zip((*MISBEHAVING, GOOD), verdicts, strict=False))
    rows = []
    for attempt, part in enumerate(ALL, start=1):
        verdict = judged.get(part)
        if part is LATE:
            outcome, why = ("refused", why_late) if why_late else ("accepted", "")
        elif verdict is None:
            outcome, why = "nothing", "it did not come to a verdict"
        else:
            outcome, why = _outcome(task, part, verdict), _why(verdict)
        rows.append(Row(attempt, part, outcome, why))
    return rows


def _outcome(task: TaskState, part: Part, verdict: Verdict) -> str:
    if part is GOOD and task.status is Status.ACCEPTED:
        return "accepted"
    return "refused" if not verdict.passed else "accepted"


def _why(verdict: Verdict) -> str:
    if verdict.passed:
        return "every gate passed"
    said: dict[str, list[str]] = {}
    for finding in verdict.failures:
        said.setdefault(f"{finding.gate} {finding.reason}", []).extend(finding.paths)
    return "; ".join(
        f"{what}: {', '.join(paths)}" if paths else what for what, paths in said.items()
    )


def _told(door: Door, rows: list[Row]) -> dict[str, object]:
    """Show the table, apply the accepted change, verify the ledger; return it all."""
    speech, desk = door.speech, door.desk
    if not speech.as_json:
        speech.show("")
        speech.table(
            ("ATTEMPT", "EXECUTOR", "WHAT IT DOES", "OUTCOME", "WHY"),
            [(str(r.attempt), r.part.owner, r.part.does, r.outcome, r.why) for r in rows],
        )
        speech.show("", f"$ agent-run apply {TASK}")
    change = applied(door, TASK)
    broken = list(desk.verify())
    if not speech.as_json:
        speech.show(*lines_of(change))
        speech.show("", "$ agent-run ledger verify")
        speech.show(verification(len(desk.runs()), len(broken)))
    return {
        "task_id": TASK,
        "attempts": [_row_json(row) for row in rows],
        "applied": change.applied.commit,
        "pages": len(desk.pages(TASK)),
        "verified": not broken,
    }


def _row_json(row: Row) -> Json:
    return {
        "attempt": row.attempt,
        "executor": row.part.owner,
        "does": row.part.does,
        "outcome": row.outcome,
        "why": row.why,
    }


@contextmanager
def _scratch(*, keep: bool) -> Iterator[Path]:
    if keep:
        yield Path(tempfile.mkdtemp(prefix="agent-run-demo-"))
        return
    with tempfile.TemporaryDirectory(prefix="agent-run-demo-") as folder:
        yield Path(folder)
