"""Asking a model from a recipe: the task that wants to know pays for it, on the ledger."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic import JsonValue

from agent_run.contract.base import RunId
from agent_run.contract.brief import Brief
from agent_run.contract.budget import Spend
from agent_run.desk import Desk
from agent_run.engine.purse import purse_of
from agent_run.errors import OverBudget
from agent_run.models.paying import paid
from agent_run.models.purse import DayBudget, DayPurse
from agent_run.ports.model import Model, Purse, Remembered
from agent_run.wiring.models import named_model, spent_today, usual_meter
from agent_run.wiring.settings import Settings

Asker: TypeAlias = Callable[[Brief[Any], int | None], Model]
"""Returns a model whose calls are paid for by the task of this brief; the number is how many
tokens all tasks of its run may take together, `None` for no limit."""


@dataclass(frozen=True, slots=True)
class SharedPurse:
    """Another purse, held to what the tasks of one run may take together.

    It is no budget of the run itself: a run whose budget is used up claims nothing any more,
    and what saves and sums up must be claimed.
    """

    purse: Purse
    desk: Desk
    run_id: RunId
    most_tokens: int
    lock: threading.Lock
    """Shared by all who reserve, so that none promises what another one does."""

    def recall(self, key: str) -> Remembered | None:
        """Return what the other purse knows."""
        return self.purse.recall(key)

    def reserve(
        self, key: str, amount: Spend, *, purpose: str = "", question: JsonValue = None
    ) -> None:
        """Set `amount` aside if all tasks together stay within the limit.

        Raises:
            OverBudget: They would not.
        """
        with self.lock:
            tasks = self.desk.run(self.run_id).tasks.values()
            taken = sum(task.spent.tokens + task.reserved.tokens for task in tasks)
            if taken + amount.tokens > self.most_tokens:
                wanted = f"{taken} tokens are spent or set aside, {amount.tokens} more wanted"
                msg = f"the overall budget of {self.most_tokens} does not allow it: {wanted}"
                raise OverBudget(msg)
            self.purse.reserve(key, amount, purpose=purpose, question=question)

    def settle(self, key: str, spent: Spend, result: JsonValue = None) -> None:
        """Write it down in the other purse."""
        self.purse.settle(key, spent, result)


def asker_for(desk: Desk, model: Model, *, day_budget_usd: float | None = None) -> Asker:
    """Return who asks `model`: every call is reserved before it is made, and remembered."""
    meter, lock = usual_meter(), threading.Lock()

    def ask(brief: Brief[Any], most_tokens: int | None) -> Model:
        purse: Purse = purse_of(desk, brief)
        if most_tokens is not None:
            purse = SharedPurse(purse, desk, brief.run_id, most_tokens, lock)
        if day_budget_usd is not None:
            day = DayBudget(max_cost_usd=day_budget_usd)
            purse = DayPurse(purse, day, lambda: spent_today(desk))
        return paid(model, purse, meter)

    return ask


def open_asker(desk: Desk, settings: Settings, name: str) -> Asker:
    """Return who asks the model called `name`; its key comes from the environment.

    Raises:
        ContractError: `name` is not a name of a model.
        ModelMissing: The library or the key it needs is not there.
    """
    return asker_for(desk, named_model(name), day_budget_usd=settings.day_budget_usd)
