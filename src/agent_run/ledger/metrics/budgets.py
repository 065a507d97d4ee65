"""Budgets against plan: what was used of what was granted, and where more was used."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, TypeAlias

from agent_run.ledger.metrics.facts import Limits, Run, Task, tasks_of
from agent_run.ledger.metrics.statistics import grouped

Dimension: TypeAlias = Literal["attempts", "tokens", "cost_usd", "seconds"]


@dataclass(frozen=True, slots=True)
class Use:
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


@dataclass(frozen=True, slots=True)
class BudgetLine:
    """What one task, or one run as a whole, used of its budget."""

    run_id: str
    task_id: str
    """Empty for the run as a whole."""
    uses: dict[Dimension, Use]
    """`seconds` is the longest attempt of a task, and the whole time of a run."""

    @property
    def over(self) -> tuple[Dimension, ...]:
        return tuple(name for name, use in self.uses.items() if use.over)


@dataclass(frozen=True, slots=True)
class StepUse:
    """What all tasks of one step used together."""

    step: str
    tasks: int
    over: int
    """Tasks that used more than was granted, in any dimension."""
    attempts: int
    tokens: int
    cost_usd: Decimal
    unpriced: int
    seconds: float
    """Time of all attempts together."""


@dataclass(frozen=True, slots=True)
class Budgets:
    """All budgets that were looked at."""

    runs: tuple[BudgetLine, ...]
    tasks: tuple[BudgetLine, ...]
    steps: tuple[StepUse, ...]

    @property
    def over(self) -> tuple[BudgetLine, ...]:
        """The runs and tasks that used more than was granted."""
        return tuple(line for line in (*self.runs, *self.tasks) if line.over)


def budgets(runs: Sequence[Run]) -> Budgets:
    """Return what was used of each budget."""
    lines: list[BudgetLine] = []
    of_runs: list[BudgetLine] = []
    for run in runs:
        inside = [_task_line(task) for task in run.tasks.values()]
        of_runs.append(_run_line(run, inside))
        lines += inside
    tasks = tasks_of(runs)
    over = {(line.run_id, line.task_id) for line in lines if line.over}
    return Budgets(tuple(of_runs), tuple(lines), tuple(_steps(tasks, over)))


def _task_line(task: Task) -> BudgetLine:
    spent, limits = task.spent, task.limits
    longest = max((one.seconds or 0.0 for one in task.attempts), default=0.0)
    # An attempt that was given back, or ended in a question, is not used up.
    attempts = sum(1 for one in task.attempts if one.end not in {"released", "asked"})
    uses = _uses(attempts, spent.tokens, float(spent.cost_usd), longest, limits)
    return BudgetLine(task.run_id, task.task_id, uses)


def _run_line(run: Run, tasks: Sequence[BudgetLine]) -> BudgetLine:
    attempts = sum(len(task.attempts) for task in run.tasks.values())
    tokens = sum(int(line.uses["tokens"].used) for line in tasks)
    cost = sum((task.spent.cost_usd for task in run.tasks.values()), Decimal(0))
    uses = _uses(attempts, tokens, float(cost), run.seconds, run.limits)
    return BudgetLine(run.run_id, "", uses)


def _uses(
    attempts: int, tokens: int, cost: float, seconds: float, limits: Limits
) -> dict[Dimension, Use]:
    most = None if limits.cost_usd is None else float(limits.cost_usd)
    return {
        "attempts": Use(attempts, limits.attempts),
        "tokens": Use(tokens, limits.tokens),
        "cost_usd": Use(cost, most),
        "seconds": Use(seconds, limits.seconds),
    }


def _steps(tasks: Sequence[Task], over: set[tuple[str, str]]) -> Iterator[StepUse]:
    for step, inside in grouped(tasks, lambda task: task.step).items():
        spent = [task.spent for task in inside]
        yield StepUse(
            step=step,
            tasks=len(inside),
            over=sum((task.run_id, task.task_id) in over for task in inside),
            attempts=sum(len(task.attempts) for task in inside),
            tokens=sum(one.tokens for one in spent),
            cost_usd=sum((one.cost_usd for one in spent), Decimal(0)),
            unpriced=sum(one.unpriced for one in spent),
            seconds=sum(one.seconds or 0.0 for task in inside for one in task.attempts),
        )
