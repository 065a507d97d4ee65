"""The judge: gates, run where the executor cannot reach, and the verdict they make.

Only what was collected once is judged. When every gate passes, the very tree that was judged
becomes one commit, and only then is the task accepted.
"""

from dataclasses import dataclass, replace
from typing import Any, Final

import anyio
from pydantic import JsonValue

from agent_run.contract.base import RunId, TaskId
from agent_run.contract.verdict import Finding, Verdict
from agent_run.engine.aside import aside, within
from agent_run.engine.basing import checkout_name
from agent_run.engine.bench import Bench, bench_of
from agent_run.engine.folders import held_folder
from agent_run.engine.handing import handing
from agent_run.engine.observing import base_from_json
from agent_run.engine.parting import let_go as let_go  # noqa: PLC0414 - offered here too
from agent_run.engine.purse import DeskPurse
from agent_run.engine.rooms import rooms_at
from agent_run.engine.site import Site
from agent_run.engine.telling import tell_command, tell_verdict
from agent_run.errors import AgentRunError, TransitionError, all_of
from agent_run.ledger.commands import Decide, Judge
from agent_run.ledger.events import TaskAccepted
from agent_run.ledger.rules import decide
from agent_run.ledger.state import RunState, Status, TaskState
from agent_run.ledger.words import named
from agent_run.ports.gate import Case, Gate
from agent_run.ports.workspace import Base, Candidate, Result, Stamp

JUDGE: Final = "judge"
_NO_GATE: Final = Finding(
    gate="judge",
    outcome="inconclusive",
    reason="no_evidence",
    evidence="no gate has a question about this task, so a person has to look",
)


@dataclass(frozen=True, slots=True)
class _Exhibit:
    """What the judge has before it."""

    base: Base | None = None
    candidate: Candidate | None = None

    @property
    def changed(self) -> bool:
        return self.candidate is not None and bool(self.candidate.changes)


_NOTHING: Final = _Exhibit()


async def judge(site: Site, run_id: RunId, task_id: TaskId) -> RunState:
    """Give a verdict on what was submitted for the task, and return the run.

    Raises:
        TransitionError: Nothing waits for a verdict.
    """
    run = await aside(lambda: site.desk.run(run_id))
    return await judge_at(bench_of(site), run_id, task_id, run=run)


async def judge_at(bench: Bench, run_id: RunId, task_id: TaskId, *, run: RunState) -> RunState:
    """Give a verdict on what was submitted for the task in `run`, and return the run then.

    Raises:
        TransitionError: Nothing waits for a verdict.
    """
    site, task = bench.about(task_id), run.tasks.get(task_id)
    if task is None or task.status is not Status.SUBMITTED or task.record is None:
        standing = task.status if task else "unknown"
        msg = f"task {task_id!r} is {standing}, expected it to be submitted"
        raise TransitionError(msg)
    exhibit = await _exhibit(site, run_id, task)
    verdict = await _verdict(bench, run_id, task, exhibit)
    command = Judge(task_id=task_id, actor=JUDGE, verdict=verdict, claim=task.claim)
    if verdict.passed:
        gains = await _gains(bench, run_id, run, command, exhibit)
        command = replace(command, **gains) if gains else command
    state = await bench.desk.handle(run_id, command)
    tell_verdict(site.tell, run_id, state.tasks[task_id], verdict)
    await _part(site, run_id, state.tasks[task_id], task.claim)
    return state


async def approve(
    site: Site, run_id: RunId, task_id: TaskId, *, actor: str, verdict: Verdict
) -> RunState:
    """Accept, as a person, what the gates left to a person; the result becomes a commit."""
    bench, run = bench_of(site), await aside(lambda: site.desk.run(run_id))
    command = Decide(task_id=task_id, actor=actor, verdict=verdict)
    decide(run, command, now=site.clock())  # refuse before anything is promoted
    task = run.tasks[task_id]
    exhibit = await _exhibit(site, run_id, task)
    command = replace(command, **await _gains(bench, run_id, run, command, exhibit))
    state = await bench.desk.handle(run_id, command)
    await _part(site, run_id, state.tasks[task_id], task.claim)
    return state


async def _gains(
    bench: Bench, run_id: RunId, run: RunState, command: Judge | Decide, exhibit: _Exhibit
) -> dict[str, Any]:
    """Return what an acceptance brings: a commit, and what others are handed."""
    task_id = command.task_id
    task, trace_id = run.tasks[task_id], await bench.trace_id(run_id)
    gains: dict[str, Any] = {}
    if exhibit.changed and _would_be_accepted(run, command):
        result = await aside(lambda: _promote(bench.site, task, exhibit, trace_id))
        gains = {"result": _as_json(result), "rollback": rollback_note(run_id, task_id)}
    if task.record is not None and task_id in run.dependents:
        meter = bench.site.meter
        handed = handing(run, task_id, task.record, trace_id=trace_id, meter=meter)
        gains |= {"handoffs": handed.envelopes, "misfits": handed.misfits}
    return gains


async def _part(site: Site, run_id: RunId, task: TaskState, claim: int | None) -> None:
    if task.base is not None:
        await aside(lambda: let_go(site, run_id, task, claim))


def rollback_note(run_id: RunId, task_id: TaskId) -> str:
    """Return how the change can be taken back once it was applied."""
    return f"agent-run rollback {named(run_id, task_id)}"


async def _verdict(bench: Bench, run_id: RunId, task: TaskState, exhibit: _Exhibit) -> Verdict:
    site = bench.about(task.manifest.task_id)
    case = Case(
        manifest=task.manifest,
        record=task.record,  # type: ignore[arg-type]  # `judge_at` has looked
        observed=task.observed if isinstance(task.observed, dict) else {},
        candidate=exhibit.candidate,
        rooms=None,
        cache=site.cache,
        purse=DeskPurse(site.desk, run_id, task.manifest.task_id, task.claim or 0, JUDGE),
    )
    if exhibit.candidate is None:
        findings = tuple([one for gate in site.gates for one in await _ask(site, gate, case)])
        return Verdict(findings=findings or (_NO_GATE,))
    folder = site.folder / "rooms" / f"{run_id}-{task.claim}"
    async with bench.outside(), within(held_folder(folder, site.remove)):
        case = replace(case, rooms=rooms_at(site, folder, exhibit.base, exhibit.candidate))
        findings = await _asked_at_once(site, case)
    return Verdict(findings=findings or (_NO_GATE,), tree=exhibit.candidate.tree)


async def _asked_at_once(site: Site, case: Case) -> tuple[Finding, ...]:
    """Ask all gates at once, and return their findings in the order of the gates."""
    answers: dict[str, tuple[Finding, ...]] = {}

    async def ask(gate: Gate) -> None:
        answers[gate.name] = await _ask(site, gate, case)

    async with anyio.create_task_group() as group:
        for gate in site.gates:
            group.start_soon(ask, gate)
    return tuple(finding for gate in site.gates for finding in answers[gate.name])


async def _ask(site: Site, gate: Gate, case: Case) -> tuple[Finding, ...]:
    try:
        found = await gate.check(case)
    except (AgentRunError, OSError, ExceptionGroup) as error:
        # A gate that cannot work says nothing about the work.
        found = (_broken(gate, error),)
    for finding in found:
        tell_command(site.tell, finding)
    return found


def _broken(gate: Gate, error: Exception) -> Finding:
    """Return that the gate itself failed; a fault in its code is not taken for an answer."""
    told = str(error)
    if isinstance(error, ExceptionGroup):
        told = "; ".join(map(str, all_of(error, AgentRunError, OSError)))
    return Finding(gate=gate.name, outcome="inconclusive", reason="no_evidence", evidence=told)


async def _exhibit(site: Site, run_id: RunId, task: TaskState) -> _Exhibit:
    if not isinstance(task.base, dict) or site.workspace is None:
        return _NOTHING
    base, workspace = base_from_json(task.base), site.workspace
    name = checkout_name(run_id, task.manifest.task_id)
    candidate = await aside(lambda: workspace.candidate(name, task.claim or 0))
    tree = task.observed.get("tree") if isinstance(task.observed, dict) else None
    if tree and (candidate is None or candidate.tree != tree):
        named = f"claim {task.claim} on {task.manifest.task_id!r}"
        msg = f"the result of {named} is not on this machine"
        raise TransitionError(msg)
    return _Exhibit(base, candidate)


def _would_be_accepted(run: RunState, command: Judge | Decide) -> bool:
    if run.at is None:
        return False
    events = decide(run, command, now=run.at)
    return any(isinstance(event, TaskAccepted) for event in events)


def _promote(site: Site, task: TaskState, exhibit: _Exhibit, trace_id: str) -> Result:
    if site.workspace is None or exhibit.base is None or exhibit.candidate is None:
        msg = "there are no files to promote"
        raise TransitionError(msg)
    stamp = Stamp(
        task_id=task.manifest.task_id,
        at=site.clock(),
        trace_id=trace_id,
        claim=task.claim or 0,
        attempt=task.attempt,
    )
    return site.workspace.promote(
        exhibit.base, exhibit.candidate, stamp=stamp, message=task.manifest.objective
    )


def _as_json(result: Result) -> dict[str, JsonValue]:
    return {"commit": result.commit, "ref": result.ref, "tree": result.tree}
