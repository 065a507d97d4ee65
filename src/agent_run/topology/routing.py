"""Routing between specialists: one is active at a time, and hands over by a record.

Triage and specialists are tasks whose output either answers or names who is next. The
original intent travels along unchanged, every transfer is a page, and going in circles ends
with a person instead of a bill.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from pydantic import JsonValue

from agent_run.contract.envelope import Envelope
from agent_run.contract.manifest import Manifest
from agent_run.contract.shapes import Routing
from agent_run.ledger.commands import Command, Escalate, HandOver, Post
from agent_run.ledger.state import RunState, Status, TaskState
from agent_run.topology.shape import ACTOR, Topology

NEXT: Final = "handoff_to"
"""The field of an output that names the next specialist; without it, the output answers."""
_STUCK: Final = "unrouted"


@dataclass(frozen=True, slots=True)
class Hop:
    """One specialist's turn."""

    number: int
    name: str
    task_id: str


def routing(spec: Routing) -> Topology:
    """Return the topology in which specialists hand over to each other."""

    def next_commands(run: RunState) -> tuple[Command, ...]:
        hops = hops_of(spec, run)
        if not hops:
            return (Post(actor=ACTOR, manifest=_turn(spec, spec.start, 1)),)
        last = hops[-1]
        task = run.tasks[last.task_id]
        wanted = _handed_to(task)
        if task.status is not Status.ACCEPTED or wanted is None or _STUCK in run.tasks:
            return ()
        problem = _problem(spec, hops, wanted)
        return _ask_person(spec, problem) if problem else _transfer(spec, last, task, wanted)

    return next_commands


def hops_of(spec: Routing, run: RunState) -> list[Hop]:
    """Return the turns so far, in order."""
    names = {
        f"{name}-{number}": (number, name)
        for name in spec.specialists
        for number in range(1, spec.most_hops + 2)
    }
    found = [Hop(*names[task], task) for task in run.tasks if task in names]
    return sorted(found, key=lambda hop: hop.number)


def answer_of(spec: Routing, run: RunState) -> JsonValue:
    """Return the answer of the last specialist, or None while there is none."""
    hops = hops_of(spec, run)
    task = run.tasks[hops[-1].task_id] if hops else None
    if task is None or task.status is not Status.ACCEPTED or _handed_to(task) is not None:
        return None
    return task.record.output if task.record else None


def _handed_to(task: TaskState) -> str | None:
    output = task.record.output if task.record else None
    wanted = output.get(NEXT) if isinstance(output, dict) else None
    return wanted if isinstance(wanted, str) and wanted else None


def _problem(spec: Routing, hops: list[Hop], wanted: str) -> str:
    here = hops[-1].name
    if wanted not in spec.specialists:
        known = ", ".join(sorted(spec.specialists))
        return f"{here!r} hands over to {wanted!r}, expected one of {known}"
    if wanted == here:
        return f"{here!r} hands over to itself"
    if len(hops) >= spec.most_hops:
        return f"{len(hops)} turns were taken, and at most {spec.most_hops} are allowed"
    transfers = [(one.name, other.name) for one, other in pairwise(hops)]
    if transfers.count((here, wanted)) >= 1 and (wanted, here) in transfers:
        return f"{here!r} and {wanted!r} hand over to each other in a circle"
    return ""


def _transfer(spec: Routing, last: Hop, task: TaskState, wanted: str) -> tuple[Command, ...]:
    manifest = _turn(spec, wanted, last.number + 1)
    record = task.record
    envelope: Envelope[Any] = Envelope(
        source=last.task_id,
        target=manifest.task_id,
        payload=record.output if record else None,
        intent=spec.intent,
        trace_id=spec.trace_id,
        confidence=record.confidence if record else None,
        warnings=record.warnings if record else (),
    )
    return (
        Post(actor=ACTOR, manifest=manifest),
        HandOver(task_id=manifest.task_id, actor=ACTOR, envelope=envelope),
    )


def _turn(spec: Routing, name: str, number: int) -> Manifest:
    update = {"task_id": f"{name}-{number}", "intent": spec.intent, "needs": ()}
    return spec.specialists[name].model_copy(update=update)


def _ask_person(spec: Routing, problem: str) -> tuple[Command, ...]:
    stuck = Manifest(
        task_id=_STUCK, objective=f"Decide who goes on: {problem}", intent=spec.intent
    )
    return (
        Post(actor=ACTOR, manifest=stuck),
        Escalate(task_id=_STUCK, actor=ACTOR, reason="no_evidence", note=problem),
    )
