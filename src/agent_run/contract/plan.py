"""The plan: all tasks of a run, written down and checked before the first one starts.

Five ways of writing a plan are read and become this one: our own, a decomposition into
subtasks, a list of tool calls, a plan context log of nodes, and a checklist of steps.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final, Literal, TypeAlias

from pydantic import Field, model_validator

from agent_run.contract.base import (
    Contract,
    RunId,
    Share,
    TaskId,
    Text,
    Whole,
    is_name,
)
from agent_run.contract.budget import Budget
from agent_run.contract.faults import Broken
from agent_run.contract.manifest import Manifest

Order: TypeAlias = Literal["sequence", "graph"]

MOST_STEPS: Final = 10_000


class Plan(Contract):
    """Ordered or interdependent tasks, and those that run at the end whatever happened."""

    OTHER_NAMES = {  # noqa: RUF012 - a ClassVar of the base
        "steps": ("subtasks", "plan"),
        "budget": ("overall_budget",),
    }

    plan_id: str | None = Field(default=None, min_length=1, max_length=200)
    objective: str = Field(default="", max_length=4_000)
    """What the plan is for; becomes the intent of every task."""
    order: Order = "graph"
    """`sequence` lets each step wait for the one before it; `graph` obeys `needs` only."""
    steps: tuple[Manifest, ...] = Field(min_length=1, max_length=MOST_STEPS)
    final: tuple[Manifest, ...] = Field(default=(), max_length=MOST_STEPS)
    """Steps that always run, one after the other, when all others are settled."""
    budget: Budget = Budget()
    """What the run as a whole may spend."""
    max_parallel: Whole | None = Field(default=None, ge=1)
    """How many tasks may be worked on at once. `None` means no limit."""
    reasoning: Text = ""
    confidence: Share | None = None

    @model_validator(mode="before")
    @classmethod
    def _read_other_shapes(cls, value: Any) -> Any:
        return canonical_plan(value) if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _fit_together(self) -> "Plan":
        faults = plan_faults(self.steps, self.final)
        if faults:
            raise Broken(faults)
        return self

    @property
    def run_name(self) -> RunId:
        """What its run is called when nobody says it: as the plan, or as its first task.

        A plan from elsewhere may have an id that cannot name a run.
        """
        named = self.plan_id is not None and is_name(self.plan_id)
        return self.plan_id if named and self.plan_id else self.steps[0].task_id

    def manifests(self) -> tuple[Manifest, ...]:
        """Return the steps as they are to be posted: needs and intent filled in."""
        ready: list[Manifest] = []
        for index, step in enumerate(self.steps):
            changes: dict[str, object] = {}
            if self.order == "sequence" and index and not step.needs:
                changes["needs"] = (self.steps[index - 1].task_id,)
            if self.objective and not step.intent:
                changes["intent"] = self.objective
            ready.append(step.model_copy(update=changes) if changes else step)
        return tuple(ready)


def plan_faults(steps: Sequence[Manifest], final: Sequence[Manifest]) -> list[tuple[str, str]]:
    """Name every place where these steps do not make one plan, and what is wrong there."""
    places = [(f"steps[{index}]", step) for index, step in enumerate(steps)]
    places += [(f"final[{index}]", step) for index, step in enumerate(final)]
    known = {step.task_id for step in steps}
    faults: list[tuple[str, str]] = []
    seen: dict[TaskId, str] = {}
    for key, step in places:
        if step.task_id in seen:
            message = f"is {step.task_id!r} again, which {seen[step.task_id]} is already"
            faults.append((f"{key}.task_id", message))
        seen.setdefault(step.task_id, key)
        for index, need in enumerate(step.needs):
            if need not in known:
                message = f"is {need!r}, expected the task_id of a step of this plan"
                faults.append((f"{key}.needs[{index}]", message))
    needs: dict[TaskId, list[TaskId]] = {}
    for step in steps:
        needs.setdefault(step.task_id, []).extend(step.needs)
    cycle = first_cycle(needs)
    if cycle:
        faults.append(("steps", "wait for each other in a circle: " + " -> ".join(cycle)))
    return faults


def first_cycle(needs: Mapping[TaskId, Iterable[TaskId]]) -> tuple[TaskId, ...]:
    """Return the names along one circle of needs, or nothing."""
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        return tuple(error.args[1])
    return ()


def canonical_plan(value: dict[str, Any]) -> dict[str, Any]:
    """Return `value` with the names of this contract, whichever known shape it has."""
    plan = dict(value)
    if "overall_budget" in plan and "budget" not in plan:
        plan["budget"] = plan.pop("overall_budget")
    for key, read_step, order in _OTHER_LISTS:
        if key in plan and "steps" not in plan:
            plan["steps"] = _each(plan.pop(key), read_step)
            plan.setdefault("order", order)
    steps = plan.get("steps")
    if isinstance(steps, list | tuple) and any(_is_other_step(step) for step in steps):
        plan["steps"] = _each(steps, _step)
        plan.setdefault("order", "sequence")
    return plan


def _each(steps: Any, read_step: Callable[[int, Any], Any]) -> Any:
    if not isinstance(steps, list | tuple):
        return steps
    return [read_step(number, step) for number, step in enumerate(steps, start=1)]


def _is_other_step(step: Any) -> bool:
    return (
        isinstance(step, dict) and "task_id" not in step and not {"id", "tool"}.isdisjoint(step)
    )


def _step(number: int, step: Any) -> Any:
    if not isinstance(step, dict) or "task_id" in step:
        return step
    return _tool_step(number, step) if "tool" in step else _check_step(number, step)


def _tool_step(number: int, step: Any) -> Any:
    """`{tool, arg}`: one call of a named tool."""
    manifest = dict(step)
    tool, argument = manifest.pop("tool"), manifest.pop("arg", None)
    manifest.setdefault("task_id", manifest.pop("id", f"step-{number}"))
    manifest.setdefault("objective", f"{tool}: {argument}" if argument else f"{tool}")
    manifest.setdefault("executor", tool)
    manifest.setdefault("input", {"arg": argument})
    return manifest


def _check_step(number: int, step: Any) -> Any:
    """`{id, goal, context, max_attempts, min_confidence, time_budget_sec}`: one check."""
    manifest = dict(step)
    manifest["task_id"] = manifest.pop("id")
    for name, ours in (("goal", "objective"), ("context", "handoff_notes")):
        if name in manifest:
            manifest.setdefault(ours, manifest.pop(name))
    limits = {
        name: manifest.pop(name)
        for name in ("max_attempts", "max_tokens", "time_budget_sec")
        if name in manifest
    }
    if limits:
        manifest.setdefault("budget", limits)
    return manifest


def _subtask(number: int, step: Any) -> Any:
    """`{id, description, priority}`: one piece of a decomposition."""
    if not isinstance(step, dict):
        return step
    manifest = dict(step)
    for name, ours in (("id", "task_id"), ("description", "objective")):
        if name in manifest:
            manifest.setdefault(ours, manifest.pop(name))
    return manifest


def _node(number: int, step: Any) -> Any:
    """`{node, message}`: one stop of a plan context log."""
    if not isinstance(step, dict):
        return step
    manifest = dict(step)
    if "node" in manifest:
        manifest.setdefault("executor", manifest["node"])
        manifest.setdefault("task_id", manifest.pop("node"))
    if "message" in manifest:
        manifest.setdefault("objective", manifest.pop("message"))
    return manifest


_OTHER_LISTS: Final[tuple[tuple[str, Callable[[int, Any], Any], Order], ...]] = (
    ("subtasks", _subtask, "graph"),
    ("plan", _node, "sequence"),
)
