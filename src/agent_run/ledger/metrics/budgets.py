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
    over: tuple[BudgetLine, ...]
    """The runs and tasks that used more than was granted."""


def budgets(runs: Sequence[Run]) -> Budgets:
    """Return what was used of each budget."""
    lines: list[BudgetLine] = []
    of_runs: list[BudgetLine] = []
    for run in runs:
        inside = [_task_line(task) for task in run.tasks.values()]
        of_runs.append(_run_line(run, inside))
        lines += inside
    over = tuple(line for line in (*of_runs, *lines) if not line.within)
    named = {(line.run_id, line.task_id) for line in over}
    return Budgets(
        runs=tuple(of_runs),
        tasks=tuple(lines),
        steps=tuple(_steps(tasks_of(runs), named)),
        over=over,
    )


def _task_line(task: Task) -> BudgetLine:
    spent = task.spent
    longest, attempts = 0.0, 0
    for one in task.attempts:
        longest = max(longest, one.seconds or 0.0)
        # An attempt that was given back, or ended in a question, is not used up.
        attempts += one.end not in {"released", "asked"}
    return BudgetLine(
        run_id=task.run_id,
        task_id=task.task_id,
        attempts=attempts,
        tokens=spent.tokens,
        cost_usd=spent.cost_usd,
        seconds=longest,
        limits=task.limits,
    )


def _run_line(run: Run, tasks: Sequence[BudgetLine]) -> BudgetLine:
    return BudgetLine(
        run_id=run.run_id,
        task_id="",
        attempts=sum(len(task.attempts) for task in run.tasks.values()),
        tokens=sum(line.tokens for line in tasks),
        cost_usd=sum((line.cost_usd for line in tasks), Decimal(0)),
        seconds=run.seconds,
        limits=run.limits,
    )


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
