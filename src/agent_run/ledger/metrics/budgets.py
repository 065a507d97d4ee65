"""Budgets against plan: what was used of what was granted, and where more was used.

There is a line for every task, so lines are not frozen, as facts are not: that would cost
more than all the counting.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, Literal, NamedTuple, TypeAlias

from agent_run.ledger.metrics.facts import NO_MONEY, Limits, Run, Task, asked_for

Dimension: TypeAlias = Literal["attempts", "tokens", "cost_usd", "seconds"]
_GIVEN_BACK: Final = frozenset({"released", "asked"})


class Use(NamedTuple):
    """One dimension of one budget."""

    used: float
    limit: float | None
    """`None` means no limit."""

    @property
    def over(self) -> bool:
        return self.limit is not None and self.used > self.limit

    @property
    def share(self) -> float | None:
        """What part of the limit is used; `None` without a limit."""
        return self.used / self.limit if self.limit else None


_UNUSED: Final = Use(0, 0)


@dataclass(slots=True)
class BudgetLine:
    """What one task, or one run as a whole, used of its budget."""

    run_id: str
    task_id: str
    """Empty for the run as a whole."""
    attempts: int
    tokens: int
    cost_usd: Decimal
    seconds: float
    """The longest attempt of a task, or the whole time of a run."""
    limits: Limits

    @property
    def uses(self) -> dict[Dimension, Use]:
        limits = self.limits
        most = None if limits.cost_usd is None else float(limits.cost_usd)
        return {
            "attempts": Use(self.attempts, limits.attempts),
            "tokens": Use(self.tokens, limits.tokens),
            "cost_usd": Use(float(self.cost_usd), most),
            "seconds": Use(self.seconds, limits.seconds),
        }

    @property
    def over(self) -> tuple[Dimension, ...]:
        """The dimensions in which more was used than granted."""
        return tuple(name for name, use in self.uses.items() if use.over)

    @property
    def within(self) -> bool:
        """Whether nothing is over; the same as an empty `over`, and much cheaper."""
        limits = self.limits
        return (
            (limits.attempts is None or self.attempts <= limits.attempts)
            and (limits.tokens is None or self.tokens <= limits.tokens)
            and (limits.cost_usd is None or self.cost_usd <= limits.cost_usd)
            and (limits.seconds is None or self.seconds <= limits.seconds)
        )


@dataclass(slots=True)
class StepUse:
    """What all tasks of one step used together."""

    step: str
    tasks: int = 0
    over: int = 0
    """Tasks that used more than was granted, in any dimension."""
    attempts: int = 0
    tokens: int = 0
    cost_usd: Decimal = NO_MONEY
    unpriced: int = 0
    seconds: float = 0.0
    """Time of all attempts together."""
    plan: dict[Dimension, Use] = field(default_factory=dict)
    """What tasks with a limit used of all that they were granted, by what was limited.

    Of attempts, those that count; of seconds, the longest attempt of each task.
    """


class Budgets(NamedTuple):
    """All budgets that were looked at."""

    runs: tuple[BudgetLine, ...]
    tasks: tuple[BudgetLine, ...]
    steps: tuple[StepUse, ...]
    over: tuple[BudgetLine, ...]
    """The runs and tasks that used more than was granted."""


def budgets(runs: Sequence[Run]) -> Budgets:
    """Return what was used of each budget."""
    lines: list[BudgetLine] = []
    of_runs: list[BudgetLine] = []
    steps: dict[str, StepUse] = {}
    for run in runs:
        inside = [_task_line(task, steps) for task in run.tasks.values()]
        of_runs.append(_run_line(run, inside))
        lines += inside
    return Budgets(
        runs=tuple(of_runs),
        tasks=tuple(lines),
        steps=tuple(steps.values()),
        over=tuple(line for line in (*of_runs, *lines) if not line.within),
    )


def _task_line(task: Task, steps: dict[str, StepUse]) -> BudgetLine:
    """Return what a task used, and add it to what its step used."""
    step = steps.get(task.step)
    if step is None:
        step = steps[task.step] = StepUse(task.step)
    spent = task.spent
    longest, attempts = 0.0, 0
    for one in task.attempts:
        seconds = one.seconds or 0.0
        step.seconds += seconds
        longest = max(longest, seconds)
        # An attempt that was given back, or ended in a question, is not used up.
        attempts += one.end not in _GIVEN_BACK
    line = BudgetLine(
        task.run_id, task.task_id, attempts, spent.tokens, spent.cost_usd, longest, task.limits
    )
    step.tasks += 1
    step.over += not line.within
    _against_plan(line, step.plan)
    step.attempts += len(task.attempts)
    step.tokens += spent.tokens
    step.cost_usd += spent.cost_usd
    step.unpriced += spent.unpriced
    return line


def _against_plan(line: BudgetLine, plan: dict[Dimension, Use]) -> None:
    """Add a task to what its step used of what was granted, wherever it had a limit."""
    limits = line.limits
    _add(plan, "attempts", line.attempts, limits.attempts)
    if limits.tokens is not None:
        _add(plan, "tokens", line.tokens, limits.tokens)
    if limits.cost_usd is not None:
        _add(plan, "cost_usd", float(line.cost_usd), float(limits.cost_usd))
    if limits.seconds is not None:
        _add(plan, "seconds", line.seconds, limits.seconds)


def _add(plan: dict[Dimension, Use], what: Dimension, used: float, limit: float | None) -> None:
    if limit is not None:
        before = plan.get(what, _UNUSED)
        plan[what] = Use(before.used + used, (before.limit or 0) + limit)


def _run_line(run: Run, tasks: Sequence[BudgetLine]) -> BudgetLine:
    """Return what a run used; what a recipe does for itself takes no attempt and no time."""
    whole = tuple(run.tasks.values())
    asked = asked_for(whole)
    counted = tasks
    if len(asked) < len(whole):
        names = {task.task_id for task in asked}
        counted = [line for line in tasks if line.task_id in names]
    return BudgetLine(
        run_id=run.run_id,
        task_id="",
        attempts=sum(line.attempts for line in counted),
        tokens=sum(line.tokens for line in tasks),
        cost_usd=sum((line.cost_usd for line in tasks), NO_MONEY),
        seconds=run.seconds if counted is tasks else _worked(run, asked),
        limits=run.limits,
    )


def _worked(run: Run, tasks: Sequence[Task]) -> float:
    """Return how long it took until the last attempt ended; people may decide a day later."""
    ends = [one.ended_at for task in tasks for one in task.attempts if one.ended_at]
    return (max(ends, default=run.opened_at) - run.opened_at).total_seconds()
