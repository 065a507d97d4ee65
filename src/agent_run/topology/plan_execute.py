"""Plan and execute: follow a plan, plan again when it fails, and always end cleanly.

The dispatcher makes no decision of its own. Steps run as their needs allow; what can never
run is skipped; a failed step may lead to a new plan, a bounded number of times; and when
all is settled, the final region runs, whatever happened before.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue, ValidationError

from agent_run.contract.manifest import Manifest
from agent_run.contract.plan import Plan
from agent_run.ledger.commands import Command, Post
from agent_run.ledger.state import SETTLED, RunState, Status
from agent_run.topology.shape import (
    ACTOR,
    LOST,
    Topology,
    outcome_of,
    posts,
    skips,
)

_REPLAN: Final = "re-plan"
_AT_REST: Final = SETTLED | {Status.ESCALATED}


@dataclass(frozen=True, slots=True)
class Replanning:
    """Who plans again when steps fail, and how often at most."""

    planner: Manifest
    """A task whose output is a plan. Its input is replaced by what was learned."""
    most: int = 1


def plan_execute(plan: Plan, *, replanning: Replanning | None = None) -> Topology:
    """Return the topology that follows `plan`."""
    planned = plan.manifests()

    def next_commands(run: RunState) -> tuple[Command, ...]:
        rounds = _rounds(planned, run)
        steps = [manifest for one in rounds for manifest in one]
        missing = posts(steps, run)
        if missing:
            return missing
        names = sorted(
            (step.task_id for step in steps), key=lambda name: run.tasks[name].posted
        )
        again = _plan_again(plan, run, names, replanning) if replanning else ()
        return again or skips(run, names) or _final_region(plan, run, names)

    return next_commands


def _rounds(planned: tuple[Manifest, ...], run: RunState) -> list[tuple[Manifest, ...]]:
    """Return the steps of the plan, and of each plan that replaced what failed of it."""
    rounds = [planned]
    for number in range(1, 1_000):
        task = run.tasks.get(f"{_REPLAN}-{number}")
        if task is None or task.status is not Status.ACCEPTED or task.record is None:
            break
        newer = _read_plan(task.record.output)
        if newer is not None:
            rounds.append(_renamed(newer.manifests(), number, run))
    return rounds


def _read_plan(output: JsonValue) -> Plan | None:
    try:
        return Plan.model_validate(output)
    except ValidationError:
        return None  # there is nothing to follow: what failed stays failed


def _renamed(steps: Sequence[Manifest], number: int, run: RunState) -> tuple[Manifest, ...]:
    """Return new steps under names of their own; needs may point at tasks already done."""
    names = {step.task_id: f"{step.task_id}.{number + 1}" for step in steps}
    return tuple(
        step.model_copy(
            update={
                "task_id": names[step.task_id],
                "needs": tuple(names.get(need, need) for need in step.needs),
            }
        )
        for step in steps
        if all(need in names or need in run.tasks for need in step.needs)
    )


def _plan_again(
    plan: Plan, run: RunState, names: Sequence[str], replanning: Replanning
) -> tuple[Command, ...]:
    failed = [name for name in names if run.tasks[name].status is Status.FAILED]
    handled = sum(1 for name in run.tasks if name.startswith(f"{_REPLAN}-"))
    last = run.tasks.get(f"{_REPLAN}-{handled}")
    new = [name for name in failed if last is None or run.tasks[name].changed > last.posted]
    busy = any(run.tasks[name].status not in SETTLED | {Status.WAITING} for name in names)
    if not new or busy or handled >= replanning.most:
        return ()
    learned: list[JsonValue] = [outcome_of(name, run.tasks[name]) for name in names]
    planner = replanning.planner.model_copy(
        update={
            "task_id": f"{_REPLAN}-{handled + 1}",
            "intent": plan.objective,
            "input": {"objective": plan.objective, "failed": list(new), "learned": learned},
        }
    )
    return (Post(actor=ACTOR, manifest=planner),)


def _final_region(plan: Plan, run: RunState, names: Sequence[str]) -> tuple[Command, ...]:
    """Post the final steps one after the other, once everything before them is settled."""
    replans = [name for name in run.tasks if name.startswith(f"{_REPLAN}-")]
    if not _at_rest(run, (*names, *replans)):
        return ()
    for index, step in enumerate(plan.final):
        task = run.tasks.get(step.task_id)
        if task is None:
            before = (*names, *(one.task_id for one in plan.final[:index]))
            return (Post(actor=ACTOR, manifest=_informed(plan, step, run, before)),)
        if task.status not in SETTLED:
            return ()
    return ()


def _at_rest(run: RunState, names: Sequence[str]) -> bool:
    """Say whether nothing of `names` can go on by itself.

    Work that failed and waits for a person's decision is at rest; a question is not, for
    its answer belongs to the plan.
    """
    stuck: set[str] = set()
    for name in names:  # needed tasks stand before those that need them
        task = run.tasks[name]
        waits_in_vain = task.status is Status.WAITING and any(
            need in stuck and run.tasks[need].status is not Status.ACCEPTED
            for need in task.unmet
        )
        if not waits_in_vain and task.status not in _AT_REST:
            return False
        stuck.add(name)
    return True


def _informed(plan: Plan, step: Manifest, run: RunState, before: Sequence[str]) -> Manifest:
    """Return a final step that knows how everything before it ended; it waits for nothing."""
    outcomes: list[JsonValue] = [outcome_of(name, run.tasks[name]) for name in before]
    failed = sum(run.tasks[name].status in LOST for name in before)
    intent = step.intent or plan.objective
    update: dict[str, object] = {"needs": (), "intent": intent, "always": True}
    if step.input is None:
        update["input"] = {"outcomes": outcomes, "lost": failed}
    return step.model_copy(update=update)
