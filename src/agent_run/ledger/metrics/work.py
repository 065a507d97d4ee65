"""The work itself: how it ended, how often at the first try, what gates refused, its cost."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import NamedTuple

from agent_run.ledger.metrics.facts import NO_MONEY, STEP, UNSTATED, Amount, Attempt, Task
from agent_run.ledger.metrics.statistics import Proportion, grouped


@dataclass(slots=True)
class Cost:
    """What one model, or one task, took; filled while it is counted, then only read."""

    name: str
    attempts: int = 0
    tokens: int = 0
    requests: int = 0
    cost_usd: Decimal = NO_MONEY
    unpriced: int = 0
    """Requests whose price nobody knows; their cost is not in the sum."""
    elapsed_ms: int = 0

    def add(self, amount: "Amount | Cost") -> None:
        """Add what one attempt, one of its calls, or a part took."""
        self.tokens += amount.tokens
        self.requests += amount.requests
        self.cost_usd += amount.cost_usd
        self.unpriced += amount.unpriced
        self.elapsed_ms += amount.elapsed_ms


class Quality(NamedTuple):
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


class Costs(NamedTuple):
    """What the work took."""

    by_model: tuple[Cost, ...]
    by_task: tuple[Cost, ...]
    total: Cost


def quality(tasks: Sequence[Task]) -> Quality:
    """Return how the work on these tasks went."""
    steps = grouped((task for task in tasks if task.first_word), STEP)
    attempts = [one for task in tasks for one in task.attempts]
    again = len(attempts) - len([task for task in tasks if task.attempts])
    return Quality(
        statuses=dict(Counter([task.status for task in tasks])),
        first_pass=_first_pass(tasks),
        first_pass_by_step={step: _first_pass(inside) for step, inside in steps.items()},
        rework=Proportion(again, len(attempts)),
        returns=sum([task.returns for task in tasks]),
        rollbacks=sum([task.rollbacks for task in tasks]),
        deferrals=sum([task.deferrals for task in tasks]),
        refusals=dict(
            Counter(
                (one.gate, one.outcome, one.reason) for task in tasks for one in task.failures
            )
        ),
        fences=dict(Counter([one.fence for one in attempts if one.fence])),
        lost=len([one for one in attempts if one.end == "expired"]),
    )


def costs(tasks: Sequence[Task]) -> Costs:
    """Return what these tasks took, by the model that was really asked and by step."""
    models: dict[str, Cost] = {}
    steps: dict[str, Cost] = {}
    for task in tasks:
        step = _named(steps, task.step)
        for one in task.attempts:
            step.attempts += 1
            step.add(one.spent)
            _to_models(one, models)
    total = Cost("")
    for step in steps.values():
        total.attempts += step.attempts
        total.add(step)
    return Costs(tuple(models.values()), tuple(steps.values()), total)


def _to_models(attempt: Attempt, models: dict[str, Cost]) -> None:
    """Add what an attempt took to the models that it asked, call by call where it is known."""
    if attempt.calls:
        left, named = _by_call(attempt, models)
    else:
        left, named = attempt.spent, ()
    if left.tokens or left.requests or left.cost_usd or (attempt.model and not named):
        rest = attempt.model or UNSTATED
        _named(models, rest).add(left)
        named = (*named, rest) if rest not in named else named
    for name in named:
        models[name].attempts += 1


def _by_call(attempt: Attempt, models: dict[str, Cost]) -> tuple[Amount, tuple[str, ...]]:
    """Add what each question took; return what is left of the attempt, and who was asked."""
    left = replace(attempt.spent)
    asked = [call for call in attempt.calls if call.operation == "chat"]
    for call in asked:
        left.subtract(call.spent)
        _named(models, call.name).add(call.spent)
    return left, tuple(dict.fromkeys(call.name for call in asked))


def _named(costs: dict[str, Cost], name: str) -> Cost:
    found = costs.get(name)
    if found is None:
        found = costs[name] = Cost(name)
    return found


def _first_pass(tasks: Sequence[Task]) -> Proportion:
    judged = [task for task in tasks if task.first_word]
    accepted = [task for task in judged if task.first_word == "accepted"]
    return Proportion(len(accepted), len(judged))
