"""Asking a model from a recipe: every call is reserved, settled and remembered by the desk."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from pydantic import JsonValue

from agent_run.contract.base import RunId, TaskId
from agent_run.contract.brief import Brief
from agent_run.contract.budget import Spend
from agent_run.desk import Desk
from agent_run.ledger.commands import Reserve, Settle
from agent_run.models.meter import BytesMeter
from agent_run.models.opening import open_model
from agent_run.models.options import ModelOptions
from agent_run.models.paying import paid
from agent_run.ports.model import Model, Remembered

Asker: TypeAlias = Callable[[Brief], Model]
"""Returns a model whose calls are paid for by the task of this brief."""


@dataclass(frozen=True, slots=True)
class DeskPurse:
    """Pays for the calls of one attempt from the budgets of its task and its run."""

    desk: Desk
    run_id: RunId
    task_id: TaskId
    actor: str
    claim: int

    def recall(self, key: str) -> Remembered | None:
        """Return what the ledger knows of the call `key`."""
        run = self.desk.run(self.run_id)
        named = f"{self.task_id}/{key}"
        if named in run.journal:
            return Remembered(finished=True, result=run.journal[named])
        begun = any(one == key for one, _ in run.tasks[self.task_id].calls)
        return Remembered(finished=False) if begun else None

    def reserve(self, key: str, amount: Spend, *, purpose: str = "") -> None:
        """Set `amount` aside, or raise `OverBudget`."""
        command = Reserve(
            task_id=self.task_id,
            actor=self.actor,
            claim=self.claim,
            key=key,
            amount=amount,
            purpose=purpose,
        )
        self.desk.handle(self.run_id, command)

    def settle(self, key: str, spent: Spend, result: JsonValue = None) -> None:
        """Write down what the call took and gave."""
        command = Settle(
            task_id=self.task_id,
            actor=self.actor,
            claim=self.claim,
            key=key,
            spent=spent,
            result=result,
        )
        self.desk.handle(self.run_id, command)


def asker_for(desk: Desk, owner: str, model: Model) -> Asker:
    """Return who asks `model`, and lets the task that wants to know pay for it."""
    meter = BytesMeter()

    def ask(brief: Brief) -> Model:
        purse = DeskPurse(desk, brief.run_id, brief.task_id, owner, brief.claim)
        return paid(model, purse, meter)

    return ask


def open_asker(desk: Desk, owner: str, name: str, options: ModelOptions | None) -> Asker:
    """Return who asks the model called `name`.

    Raises:
        ContractError: `name` is not a name of a model.
        ModelMissing: The library or the key it needs is not there.
    """
    return asker_for(desk, owner, open_model(name, options))
