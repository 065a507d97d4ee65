"""The judge: gates, run where the executor cannot reach, and the verdict they make.

Only what was collected once is judged. When every gate passes, the very tree that was judged
becomes one commit, and only then is the task accepted.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import anyio
from pydantic import JsonValue

from agent_run.contract.base import RunId, TaskId
from agent_run.contract.verdict import Finding, Verdict
from agent_run.engine.aside import aside, within
from agent_run.engine.basing import checkout_name, recorded_base
from agent_run.engine.folders import held_folder
from agent_run.engine.handing import handing
from agent_run.engine.parting import let_go as let_go  # noqa: PLC0414 - offered here too
from agent_run.engine.rooms import CleanRooms
from agent_run.engine.site import Site
from agent_run.engine.telling import Told
from agent_run.errors import AgentRunError, TransitionError
from agent_run.ledger.commands import Decide, Judge
from agent_run.ledger.events import TaskAccepted
from agent_run.ledger.rules import decide
from agent_run.ledger.state import RunState, Status, TaskState
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

    base: Base | None
    candidate: Candidate | None


async def judge(site: Site, run_id: RunId, task_id: TaskId) -> RunState:
    """Give a verdict on what was submitted for the task, and return the run.

    Raises:
        TransitionError: Nothing waits for a verdict.
    """
    run = await aside(lambda: site.desk.run(run_id))
    task = run.tasks.get(task_id)
    if task is None or task.status is not Status.SUBMITTED or task.record is None:
        standing = task.status if task else "unknown"
        msg = f"task {task_id!r} is {standing}, expected it to be submitted"
        raise TransitionError(msg)
    exhibit = await aside(lambda: _exhibit(site, run_id, task))
    verdict = await _verdict(site, run_id, task, exhibit)
    command = Judge(task_id=task_id, actor=JUDGE, verdict=verdict, claim=task.claim)
    if _would_be_accepted(run, command):
        command = replace(
            command, **await aside(lambda: _gains(site, run_id, run, task_id, exhibit))
        )
    state = await aside(lambda: site.desk.handle(run_id, command))
    _tell_verdict(site, state.tasks[task_id], verdict)
    await aside(lambda: let_go(site, run_id, state.tasks[task_id], task.claim))
    return state


async def approve(
    site: Site, run_id: RunId, task_id: TaskId, *, actor: str, verdict: Verdict
) -> RunState:
    """Accept, as a person, what the gates left to a person; the result becomes a commit."""
    run = await aside(lambda: site.desk.run(run_id))
    command = Decide(task_id=task_id, actor=actor, verdict=verdict)
    decide(run, command, now=site.clock())  # refuse before anything is promoted
    task = run.tasks[task_id]
    exhibit = await aside(lambda: _exhibit(site, run_id, task))
    command = replace(
        command, **await aside(lambda: _gains(site, run_id, run, task_id, exhibit))
    )
    state = await aside(lambda: site.desk.handle(run_id, command))
    await aside(lambda: let_go(site, run_id, state.tasks[task_id], task.claim))
    return state


def _gains(
    site: Site, run_id: RunId, run: RunState, task_id: TaskId, exhibit: _Exhibit
) -> dict[str, Any]:
    """Return what an acceptance brings: a commit, and what others are handed."""
    task = run.tasks[task_id]
    gains: dict[str, Any] = {}
    if exhibit.base and exhibit.candidate and exhibit.candidate.changes:
        gains["result"] = _as_json(_promote(site, run_id, task, exhibit))
        gains["rollback"] = rollback_note(task_id)
    if task.record is not None:
        handed = handing(
            run, task_id, task.record, trace_id=site.desk.trace_id(run_id), meter=site.meter
        )
        gains["handoffs"], gains["misfits"] = handed.envelopes, handed.misfits
    return gains


def rollback_note(task_id: TaskId) -> str:
    """Return how the change can be taken back once it was applied."""
    return f"agent-run rollback {task_id}"


async def _verdict(site: Site, run_id: RunId, task: TaskState, exhibit: _Exhibit) -> Verdict:
    observed = task.observed if isinstance(task.observed, dict) else {}
    case = Case(
        manifest=task.manifest,
        record=task.record,  # type: ignore[arg-type]  # `judge` has looked
        observed=observed,
        candidate=exhibit.candidate,
        rooms=None,
        cache=site.cache,
    )
    folder = site.folder / "rooms" / f"{run_id}-{task.claim}"
    async with within(held_folder(folder, site.remove)):
        rooms = _rooms(site, folder, exhibit)
        findings = await _asked(site, replace(case, rooms=rooms))
    tree = exhibit.candidate.tree if exhibit.candidate else None
    return Verdict(findings=findings or (_NO_GATE,), tree=tree)


def _rooms(site: Site, folder: Path, exhibit: _Exhibit) -> CleanRooms | None:
    if exhibit.base is None or exhibit.candidate is None or site.workspace is None:
        return None
    return CleanRooms(
        workspace=site.workspace,
        fence=site.fence,
        base=exhibit.base,
        candidate=exhibit.candidate,
        folder=folder,
        remove=site.remove,
        env=site.env,
        readable=site.readable,
        limits=site.limits,
        imports=site.imports,
        environment=site.environment,
    )


async def _asked(site: Site, case: Case) -> tuple[Finding, ...]:
    """Ask all gates at once, and return their findings in the order of the gates."""
    answers: dict[str, tuple[Finding, ...]] = {}

    async def ask(gate: Gate) -> None:
        try:
            answers[gate.name] = await gate.check(case)
        except (AgentRunError, OSError, ExceptionGroup) as error:
            # A gate that cannot work says nothing about the work.
            answers[gate.name] = (_broken(gate, error),)
        for finding in answers[gate.name]:
            _tell_command(site, finding)

    async with anyio.create_task_group() as group:
        for gate in site.gates:
            group.start_soon(ask, gate)
    return tuple(finding for gate in site.gates for finding in answers[gate.name])


def _broken(gate: Gate, error: Exception) -> Finding:
    """Return that the gate itself failed; a fault in its code is not taken for an answer."""
    if isinstance(error, ExceptionGroup):
        ours, others = error.split((AgentRunError, OSError))
        if ours is None or others is not None:
            raise error
        told = "; ".join(map(str, _leaves(ours)))
    else:
        told = str(error)
    return Finding(gate=gate.name, outcome="inconclusive", reason="no_evidence", evidence=told)


def _leaves(group: ExceptionGroup[Exception]) -> Iterator[Exception]:
    for error in group.exceptions:
        if isinstance(error, ExceptionGroup):
            yield from _leaves(error)
        else:
            yield error


def _exhibit(site: Site, run_id: RunId, task: TaskState) -> _Exhibit:
    base = recorded_base(site, run_id, task.manifest.task_id)
    if base is None or site.workspace is None:
        return _Exhibit(None, None)
    name = checkout_name(run_id, task.manifest.task_id)
    candidate = site.workspace.candidate(name, task.claim or 0)
    tree = _tree_of(task.observed)
    if tree and (candidate is None or candidate.tree != tree):
        named = f"claim {task.claim} on {task.manifest.task_id!r}"
        msg = f"the result of {named} is not on this machine"
        raise TransitionError(msg)
    return _Exhibit(base, candidate)


def _tree_of(observed: JsonValue) -> JsonValue:
    return observed.get("tree") if isinstance(observed, dict) else None


def _would_be_accepted(run: RunState, command: Judge) -> bool:
    if run.at is None or not command.verdict.passed:
        return False
    events = decide(run, command, now=run.at)
    return any(isinstance(event, TaskAccepted) for event in events)


def _promote(site: Site, run_id: RunId, task: TaskState, exhibit: _Exhibit) -> Result:
    if site.workspace is None or exhibit.base is None or exhibit.candidate is None:
        msg = "there are no files to promote"
        raise TransitionError(msg)
    stamp = Stamp(
        task_id=task.manifest.task_id,
        at=site.clock(),
        trace_id=site.desk.trace_id(run_id),
        claim=task.claim or 0,
        attempt=task.attempt,
    )
    return site.workspace.promote(
        exhibit.base, exhibit.candidate, stamp=stamp, message=task.manifest.objective
    )


def _as_json(result: Result) -> dict[str, JsonValue]:
    return {"commit": result.commit, "ref": result.ref, "tree": result.tree}


def _tell_command(site: Site, finding: Finding) -> None:
    word = {"pass": "PASS", "fail": "FAIL", "inconclusive": "UNDECIDED"}[finding.outcome]
    for command in finding.commands:
        took = "cached" if finding.cached else f"{finding.elapsed_ms / 1_000:.1f}s"
        site.tell(Told("test", f"{command} ........ {word} {took}"))


def _tell_verdict(site: Site, task: TaskState, verdict: Verdict) -> None:
    words: dict[str, str] = {}
    order: dict[str, Any] = {"pass": 0, "inconclusive": 1, "fail": 2}
    for finding in verdict.findings:
        worst = words.get(finding.gate, "pass")
        words[finding.gate] = max(worst, finding.outcome, key=lambda how: order[how])
    shown = {"pass": "PASS", "inconclusive": "UNDECIDED", "fail": "FAIL"}
    gates = "  ".join(f"{gate} {shown[how]}" for gate, how in words.items())
    site.tell(Told("verify", f"{gates}  -> {_outcome(task)}"))


def _outcome(task: TaskState) -> str:
    match task.status:
        case Status.READY:
            return "returned"
        case Status.ACCEPTED if task.result:
            return f"accepted  agent-run apply {task.manifest.task_id}"
        case Status.SUBMITTED:
            return "undecided"
        case status:
            return str(status)
