"""The work itself: how it ended, how often at the first try, what gates refused, its cost."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from agent_run.ledger.metrics.facts import UNSTATED, Amount, Task
from agent_run.ledger.metrics.statistics import Proportion, grouped


@dataclass(frozen=True, slots=True)
class Cost:
    """What one model, or one task, took."""

    name: str
    attempts: int
    tokens: int
    requests: int
    cost_usd: Decimal
    unpriced: int
    """Requests whose price nobody knows; their cost is not in the sum."""
    elapsed_ms: int


@dataclass(frozen=True, slots=True)
class Quality:
    """How the work ended."""

    statuses: Mapping[str, int]
    first_pass: Proportion
    """Tasks that the gates accepted at their first verdict, of all that had one."""
    first_pass_by_step: Mapping[str, Proportion]
    rework: Proportion
    """Attempts after the first, of all attempts."""
    returns: int
    rollbacks: int
    deferrals: int
    refusals: Mapping[tuple[str, str, str], int]
    """(gate, outcome, reason) -> how often a gate did not pass."""
    fences: Mapping[str, int]
    """What held the executor -> attempts. Attempts without a process are not counted."""
    lost: int
    """Claims whose owner was not heard of again."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What the work took."""

    by_model: tuple[Cost, ...]
    by_task: tuple[Cost, ...]
    total: Cost


def quality(tasks: Sequence[Task]) -> Quality:
    """Return how the work on these tasks went."""
    steps = grouped((task for task in tasks if task.first_word), lambda task: task.step)
    attempts = sum(len(task.attempts) for task in tasks)
    again = sum(max(0, len(task.attempts) - 1) for task in tasks)
    return Quality(
        statuses=dict(Counter(task.status for task in tasks)),
        first_pass=_first_pass(tasks),
        first_pass_by_step={step: _first_pass(inside) for step, inside in steps.items()},
        rework=Proportion(again, attempts),
        returns=sum(task.returns for task in tasks),
        rollbacks=sum(task.rollbacks for task in tasks),
        deferrals=sum(task.deferrals for task in tasks),
        refusals=dict(
            Counter(
                (one.gate, one.outcome, one.reason) for task in tasks for one in task.failures
            )
        ),
        fences=dict(Counter(one.fence for task in tasks for one in task.attempts if one.fence)),
        lost=sum(one.end == "expired" for task in tasks for one in task.attempts),
    )


def costs(tasks: Sequence[Task]) -> Costs:
    """Return what these tasks took, by the model that was really asked and by step."""
    return Costs(
        by_model=tuple(_by_model(tasks)),
        by_task=tuple(
            _cost(step, [one.spent for task in inside for one in task.attempts])
            for step, inside in grouped(tasks, lambda task: task.step).items()
        ),
        total=_cost("", [one.spent for task in tasks for one in task.attempts]),
    )


def _by_model(tasks: Sequence[Task]) -> Iterator[Cost]:
    attempts = [one for task in tasks for one in task.attempts]
    spending = [one for one in attempts if one.model or one.spent.requests or one.spent.tokens]
    for model, inside in grouped(spending, lambda one: one.model or UNSTATED).items():
        yield _cost(model, [one.spent for one in inside])


def _cost(name: str, amounts: Sequence[Amount]) -> Cost:
    whole = Amount()
    for amount in amounts:
        whole.add(amount)
    return Cost(
        name=name,
        attempts=len(amounts),
        tokens=whole.tokens,
        requests=whole.requests,
        cost_usd=whole.cost_usd,
        unpriced=whole.unpriced,
        elapsed_ms=whole.elapsed_ms,
    )


def _first_pass(tasks: Sequence[Task]) -> Proportion:
    judged = [task for task in tasks if task.first_word]
    return Proportion(sum(task.first_word == "accepted" for task in judged), len(judged))
