"""The purse of one claim: calls of who works and who judges, paid for and remembered."""

from dataclasses import dataclass

from pydantic import JsonValue

from agent_run.contract.base import RunId
from agent_run.contract.brief import Brief
from agent_run.contract.budget import Spend
from agent_run.desk import Desk
from agent_run.ledger.commands import Reserve, Settle
from agent_run.ports.model import Remembered


@dataclass(frozen=True, slots=True)
class DeskPurse:
    """Reserves before each call and settles after it, under a claim held or judged."""

    desk: Desk
    run_id: RunId
    task_id: str
    claim: int
    owner: str
    """Who spends: the owner of the claim, or the judge of what was submitted under it."""

    def recall(self, key: str) -> Remembered | None:
        """Return what is known of the call `key`; `None` if it was never begun."""
        run = self.desk.run(self.run_id)
        name = f"{self.task_id}/{key}"
        if name in run.journal:
            return Remembered(finished=True, result=run.journal[name])
        task = run.tasks[self.task_id]
        if key in task.unknown or any(begun == key for begun, _ in task.calls):
            return Remembered(finished=False)
        return None

    def reserve(
        self, key: str, amount: Spend, *, purpose: str = "", question: JsonValue = None
    ) -> None:
        """Set `amount` aside for the call `key`, before it is made.

        Raises:
            OverBudget: It cannot be afforded; the call must not be made.
            StaleClaim: The task belongs to somebody else by now.
        """
        self.desk.handle(
            self.run_id,
            Reserve(
                task_id=self.task_id,
                actor=self.owner,
                claim=self.claim,
                key=key,
                amount=amount,
                purpose=purpose,
                question=question,
            ),
        )

    def settle(self, key: str, spent: Spend, result: JsonValue = None) -> None:
        """Write down what the call `key` took and gave, in one step."""
        self.desk.handle(
            self.run_id,
            Settle(
                task_id=self.task_id,
                actor=self.owner,
                claim=self.claim,
                key=key,
                spent=spent,
                result=result,
            ),
        )


def purse_of(desk: Desk, brief: Brief) -> DeskPurse:
    """Return the purse of the attempt that `brief` is about."""
    run = desk.run(brief.run_id)
    owner = run.tasks[brief.task_id].owner or "executor"
    return DeskPurse(desk, brief.run_id, brief.task_id, brief.claim, owner)
