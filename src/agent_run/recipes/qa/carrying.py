"""Decisions that outlive their run: nobody is asked again about a draft that is the same.

A run is named after everything that may change its answers, and what web pages say may change
from one day to the next. Then a new run begins; what people decided about steps that are the
very same goes over into it.
"""

from collections.abc import Iterable
from dataclasses import replace

from agent_run.contract.base import RunId
from agent_run.contract.manifest import Manifest
from agent_run.desk import Desk
from agent_run.recipes.qa.checklist import OverallBudget
from agent_run.recipes.qa.deciding import Decision, decisions_of
from agent_run.recipes.qa.planning import Planned, with_assignment
from agent_run.recipes.qa.steps import CHECK, Assignment


def with_decisions(desk: Desk, planned: Planned, earlier: Iterable[RunId]) -> Planned:
    """Return the plan with what people decided in `earlier` runs about the same steps."""
    decided: dict[str, Decision] = {}
    steps = {step.task_id: step for step in planned.plan.steps}
    lasting = {name: step for name, step in steps.items() if not _asks_the_web(step)}
    for run_id in earlier:
        same = is_again(run_id, planned.run_id)  # the very same keys: also of the same day
        alike = steps if same else lasting
        for task_id, decision in _decided_in(desk, run_id, alike).items():
            known = decided.get(task_id)
            if known is None or known.at < decision.at:
                decided[task_id] = decision
    if not decided:
        return planned
    settled = tuple(
        with_assignment(step, settled=decided[name]) if name in decided else step
        for name, step in steps.items()
    )
    return replace(planned, plan=planned.plan.model_copy(update={"steps": settled}))


def is_again(one: RunId, other: RunId) -> bool:
    """Say whether two runs are about the same thing in every respect, one after the other."""
    return one.partition(".")[0] == other.partition(".")[0]


def carried(manifest: Manifest) -> Decision | None:
    """Return the decision that a step took over from an earlier run; None for other tasks."""
    if manifest.executor != CHECK:
        return None
    return Assignment.model_validate(manifest.input).settled


def _decided_in(desk: Desk, run_id: RunId, steps: dict[str, Manifest]) -> dict[str, Decision]:
    run, said = desk.run(run_id), decisions_of(desk.pages(run_id))
    found: dict[str, Decision] = {}
    for task_id, step in steps.items():
        task = run.tasks.get(task_id)
        if task is None or not _is_same(task.manifest, step):
            continue
        decision = said.get(task_id)
        if decision is not None:
            found[task_id] = decision.model_copy(update={"run_id": run_id})
        elif (before := carried(task.manifest)) is not None:
            found[task_id] = before
    return found


def _is_same(one: Manifest, other: Manifest) -> bool:
    return _assignment(one) == _assignment(other) and one.objective == other.objective


def _assignment(manifest: Manifest) -> Assignment:
    known = Assignment.model_validate(manifest.input)
    return known.model_copy(update={"settled": None, "overall": OverallBudget()})


def _asks_the_web(step: Manifest) -> bool:
    known = Assignment.model_validate(step.input)
    return "links" in known.checks and not known.rules.offline
