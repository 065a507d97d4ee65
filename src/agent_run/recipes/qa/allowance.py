"""The overall budget of one draft: what is left of it for a step, and what is over.

It is asked before each step, from the ledger. The final region never asks: the report comes
out however little is left.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from agent_run.contract.base import RunId
from agent_run.contract.brief import Brief
from agent_run.desk import Desk
from agent_run.recipes.qa.checklist import OverallBudget

_CLAIMED: Final = "task_claimed"


@dataclass(frozen=True, slots=True)
class Left:
    """What the draft's overall budget still allows when a step begins."""

    attempts: int
    """This one counted. Zero or less means that the step should not have begun."""
    tokens: int
    seconds: float

    @property
    def over(self) -> tuple[str, ...]:
        """Each limit that does not allow the step, in words."""
        limits = (
            ("attempts", self.attempts > 0),
            ("tokens", self.tokens > 0),
            ("time", self.seconds > 0),
        )
        return tuple(name for name, holds in limits if not holds)


def left_for(desk: Desk, brief: Brief, overall: OverallBudget, now: datetime) -> Left:
    """Return what is left for the attempt that `brief` is about."""
    run = desk.run(brief.run_id)
    opened = run.opened_at or now
    return Left(
        attempts=overall.max_attempts - _claims_before(desk, brief.run_id, brief.claim),
        tokens=overall.max_tokens - run.spent.tokens,
        seconds=overall.time_budget_sec - (now - opened).total_seconds(),
    )


def within(brief: Brief, left: Left) -> Brief:
    """Return the brief with no more left than the overall budget allows."""
    own = brief.remaining
    update: dict[str, object] = {
        "max_attempts": max(1, min(own.max_attempts or left.attempts, left.attempts)),
        "max_tokens": max(1, min(own.max_tokens or left.tokens, left.tokens)),
        "time_budget_sec": max(1, int(min(own.time_budget_sec or left.seconds, left.seconds))),
    }
    return brief.model_copy(update={"remaining": own.model_copy(update=update)})


def _claims_before(desk: Desk, run_id: RunId, claim: int) -> int:
    """Return how often work of this run was claimed before the page `claim`.

    A count of all claims would punish steps that began together for one another.
    """
    return sum(page.kind == _CLAIMED and page.seq < claim for page in desk.pages(run_id))
