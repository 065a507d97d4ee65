"""What comes next in the check of a draft: its steps, a person's word, and the report again.

A rejection settles a step: the same draft would be found the same, so nothing is tried again.
What a person decided after the report was saved is saved and summed up by a new final region.
"""

from typing import Final

from agent_run.contract.plan import Plan
from agent_run.ledger.commands import Command, Fail
from agent_run.ledger.state import RunState, Status, TaskState
from agent_run.recipes.qa.carrying import carried
from agent_run.recipes.qa.planning import RECIPE, REFLECT
from agent_run.recipes.qa.steps import rejection
from agent_run.recipes.rounds import in_round
from agent_run.topology.plan_execute import plan_execute
from agent_run.topology.shape import Topology

_NOBODY_AT_WORK: Final = frozenset({Status.READY, Status.ESCALATED})
_IN_VAIN: Final = frozenset({"over_budget", "timeout", "crashed"})
_PAID_ONCE: Final = frozenset({REFLECT})
"""A model may be asked to reflect; a decision is no reason to ask it again."""


def checking(plan: Plan) -> Topology:
    """Return the topology of one draft's checks."""

    def next_commands(run: RunState) -> tuple[Command, ...]:
        rejected = tuple(
            _settled(step.task_id, run.tasks[step.task_id])
            for step in plan.steps
            if step.task_id in run.tasks and is_rejected(run.tasks[step.task_id])
        )
        return rejected or plan_execute(in_round(plan, run, once=_PAID_ONCE))(run)

    return next_commands


def is_unseen(task: TaskState) -> bool:
    """Say whether a step went to a person without having been looked at as it should be.

    Another time it may be: then there is more time, budget or network.
    """
    if task.status is not Status.ESCALATED or is_rejected(task):
        return False
    record = task.record
    if record is None or record.observed_only or task.reason in _IN_VAIN:
        return True
    output = record.output if isinstance(record.output, dict) else {}
    return output.get("whole") is False


def is_rejected(task: TaskState) -> bool:
    """Say whether a person rejected the step and nothing has settled it yet."""
    return task.status in _NOBODY_AT_WORK and bool(_said_against(task))


def _said_against(task: TaskState) -> str:
    before = carried(task.manifest)
    if before is not None and not before.approved:
        return before.sentence()
    said = rejection(task.returned)
    return f"a person rejected it: {said}" if said else ""


def _settled(task_id: str, task: TaskState) -> Fail:
    note = _said_against(task)
    return Fail(task_id=task_id, actor=RECIPE, reason="review_rejected", note=note)
