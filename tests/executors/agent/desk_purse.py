"""A purse that pays from the ledger, as the engine has one."""

from dataclasses import dataclass

from pydantic import JsonValue

from agent_run.contract.budget import Spend
from agent_run.desk import Desk
from agent_run.desk.counter import events_of
from agent_run.ledger.commands import Reserve, Settle
from agent_run.ledger.events import SpendReserved
from agent_run.ports.model import Remembered


@dataclass(frozen=True, slots=True)
class DeskPurse:
    """Pays for the calls made under one claim."""

    desk: Desk
    run_id: str
    task_id: str
    owner: str
    claim: int

    def recall(self, key: str) -> Remembered | None:
        journal = self.desk.run(self.run_id).journal
        name = f"{self.task_id}/{key}"
        if name in journal:
            return Remembered(finished=True, result=journal[name])
        begun = any(
            isinstance(event, SpendReserved)
            and (event.task_id, event.key) == (self.task_id, key)
            and event.claim != self.claim
            for _, event in events_of(self.desk.pages(self.run_id))
        )
        return Remembered(finished=False) if begun else None

    def reserve(self, key: str, amount: Spend, *, purpose: str = "") -> None:
        command = Reserve(
            task_id=self.task_id,
            actor=self.owner,
            claim=self.claim,
            key=key,
            amount=amount,
            purpose=purpose,
        )
        self.desk.handle(self.run_id, command)

    def settle(self, key: str, spent: Spend, result: JsonValue = None) -> None:
        command = Settle(
            task_id=self.task_id,
            actor=self.owner,
            claim=self.claim,
            key=key,
            spent=spent,
            result=result,
        )
        self.desk.handle(self.run_id, command)
