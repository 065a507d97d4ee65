"""The final region again: what a person decided after the end is saved and summed up, too.

The steps of the region are posted once more under new names, `save.2` after `save`: ordinary
tasks of the run, so that any process can go on with them.
"""

from collections.abc import Collection, Sequence

from agent_run.contract.manifest import Manifest
from agent_run.contract.plan import Plan
from agent_run.ledger.state import SETTLED, RunState


def in_round(plan: Plan, run: RunState, *, once: Collection[str] = ()) -> Plan:
    """Return the plan with its final region under new names, if there is news for it.

    Steps named in `once` stand in the first round only.
    """
    names = [step.task_id for step in plan.steps if step.task_id in run.tasks]
    number, final = 1, plan.final
    while _closed(final, run, names):
        number += 1
        final = tuple(_again(step, number) for step in plan.final if step.task_id not in once)
    return plan if number == 1 else plan.model_copy(update={"final": final})


def _again(step: Manifest, number: int) -> Manifest:
    return step.model_copy(update={"task_id": f"{step.task_id}.{number}"})


def _closed(final: Sequence[Manifest], run: RunState, names: Sequence[str]) -> bool:
    """Say whether this final region ran to its end and something came after it began."""
    ended = [run.tasks.get(step.task_id) for step in final]
    if not ended or any(task is None or task.status not in SETTLED for task in ended):
        return False
    began = min(task.posted for task in ended if task is not None)
    return any(run.tasks[name].changed > began for name in names)
