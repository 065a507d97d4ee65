"""A model for an evaluation, with a purse of its own and a file for its answers."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agent_run.contract.budget import Budget
from agent_run.desk import Desk
from agent_run.evals.interview import Interview
from agent_run.models import DayBudget, DayPurse, MemoryPurse, Terms
from agent_run.ports.model import Purse
from agent_run.wiring.holding import held_alone
from agent_run.wiring.models import named_model, spent_today, usual_meter
from agent_run.wiring.settings import Settings


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which model is asked, within which budget, and where its answers are kept."""

    model: str
    budget: Budget
    keep: Path
    at_once: int


def limited_to(max_tokens: int | None, max_cost_usd: float | None) -> Budget:
    """Return a budget for all questions together. `None` means no limit."""
    # A float that was typed means its digits, not the nearest binary fraction.
    cost = None if max_cost_usd is None else str(max_cost_usd)
    return Budget.model_validate({"max_tokens": max_tokens, "max_cost_usd": cost})


@contextmanager
def interview(desk: Desk, settings: Settings, wanted: Wanted) -> Iterator[Interview]:
    """Open the model, and its answers from earlier for this process alone.

    Raises:
        ContractError: No such model, or the file is in use or cannot be written.
        ModelMissing: The library or the key it needs is not there.
    """
    model = named_model(wanted.model)
    day = settings.day_budget_usd
    # Two processes would not see each other's answers, and pay for the same ones.
    busy = f"another process is keeping answers in {str(wanted.keep)!r}"
    with held_alone(wanted.keep, otherwise=busy):
        purse = MemoryPurse(wanted.budget, file=wanted.keep)

        def guard(inner: Purse) -> Purse:
            if day is None:
                return inner
            budget = DayBudget(max_cost_usd=day)
            return DayPurse(inner, budget, lambda: spent_today(desk) + purse.spent)

        limited = day is not None or wanted.budget.max_cost_usd is not None
        yield Interview(
            model=model,
            purse=purse,
            meter=usual_meter(),
            terms=Terms(needs_price=limited),
            guard=guard,
            at_once=wanted.at_once,
        )
