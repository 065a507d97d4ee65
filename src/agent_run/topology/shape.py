"""What every topology is: a pure function from the state of a run to the next commands.

It never calls a model and never waits: to plan, to synthesize, to route are tasks like any
other, done by whoever claims them. Asked again on the same state, it gives the same answer,
so a run goes on after a crash by asking again.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

from pydantic import JsonValue

from agent_run.contract.manifest import Manifest
from agent_run.ledger.commands import Command, Post, Skip
from agent_run.ledger.state import SETTLED, RunState, Status, TaskState

Topology: TypeAlias = Callable[[RunState], tuple[Command, ...]]

ACTOR: Final = "topology"
LOST: Final = SETTLED - {Status.ACCEPTED}
"""Settled without a result that others could build on."""


def posts(manifests: Iterable[Manifest], run: RunState) -> tuple[Post, ...]:
    """Return a post for each manifest that is not in the run, needed tasks first."""
    missing = {one.task_id: one for one in manifests if one.task_id not in run.tasks}
    if not missing:
        return ()
    ordered: dict[str, Manifest] = {}
    for manifest in missing.values():
        _with_needs(manifest, missing, ordered)
    return tuple(Post(actor=ACTOR, manifest=manifest) for manifest in ordered.values())


def skips(run: RunState, tasks: Iterable[str]) -> tuple[Skip, ...]:
    """Return a skip for each of `tasks` that waits for something that will never come."""
    found: list[Skip] = []
    for task_id in tasks:
        task = run.tasks.get(task_id)
        if task is None or task.status is not Status.WAITING:
            continue
        lost = [need for need in sorted(task.unmet) if run.tasks[need].status in LOST]
        if lost:
            note = f"needs {lost[0]!r}, which is {run.tasks[lost[0]].status}"
            found.append(Skip(task_id=task_id, actor=ACTOR, note=note))
    return tuple(found)


def settled(run: RunState, tasks: Iterable[str]) -> bool:
    """Say whether all of `tasks` are in the run and will not change any more."""
    return all(task in run.tasks and run.tasks[task].status in SETTLED for task in tasks)


def outcome_of(task_id: str, task: TaskState) -> dict[str, JsonValue]:
    """Return how a task ended, distilled: no transcript, no diff, only what others need."""
    record = task.record if task.status is Status.ACCEPTED else None
    outcome: dict[str, JsonValue] = {
        "task": task_id,
        "objective": task.manifest.objective,
        "status": str(task.status),
    }
    if record is not None:
        outcome["output"] = record.output
        outcome["confidence"] = record.confidence
        outcome["notes"] = record.notes
        outcome["warnings"] = list(record.warnings)
    elif task.note:
        outcome["note"] = task.note
    return outcome


def _with_needs(
    manifest: Manifest, missing: dict[str, Manifest], ordered: dict[str, Manifest]
) -> None:
    """Put `manifest` after everything it needs; plans have no circles, so this ends."""
    stack: list[tuple[Manifest, Iterator[str]]] = [(manifest, iter(manifest.needs))]
    while stack:
        current, needs = stack[-1]
        if current.task_id in ordered:
            stack.pop()
            continue
        following = next((n for n in needs if n in missing and n not in ordered), None)
        if following is None:
            ordered[current.task_id] = current
            stack.pop()
        else:
            stack.append((missing[following], iter(missing[following].needs)))
