"""Asking a model from a recipe: the task that wants to know pays for it, on the ledger."""

from collections.abc import Callable
from typing import Any, TypeAlias

from agent_run.contract.brief import Brief
from agent_run.desk import Desk
from agent_run.engine.purse import purse_of
from agent_run.models.paying import paid
from agent_run.models.purse import DayBudget, DayPurse
from agent_run.ports.model import Model, Purse
from agent_run.wiring.models import named_model, spent_today, usual_meter
from agent_run.wiring.settings import Settings

Asker: TypeAlias = Callable[[Brief[Any]], Model]
"""Returns a model whose calls are paid for by the task of this brief."""


def asker_for(desk: Desk, model: Model, *, day_budget_usd: float | None = None) -> Asker:
    """Return who asks `model`: every call is reserved before it is made, and remembered."""
    meter = usual_meter()

    def ask(brief: Brief[Any]) -> Model:
        purse: Purse = purse_of(desk, brief)
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
