"""The overall budget of one draft: what is left of it for a step, and what is over.

It is asked before each step, from the ledger. The final region never asks: the report comes
out however little is left.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from agent_run.contract.brief import Brief
from agent_run.desk import Desk
from agent_run.ledger.events import ClaimReleased
from agent_run.ledger.pages import Page
from agent_run.ledger.state import RunState
from agent_run.recipes.qa.checklist import OverallBudget


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
        attempts=overall.max_attempts - _tried_before(run, desk.pages(brief.run_id), brief),
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


def attempts_of(pages: Iterable[Page]) -> Counter[str]:
    """Return how often each task was really tried.

    What was given back, or lost with the process that had it, is no attempt.
    """
    tried: Counter[str] = Counter()
    for page in pages:
        match page.kind:
            case "task_claimed":
                tried[page.task_id] += 1
            case "claim_expired":
                tried[page.task_id] -= 1
            case "claim_released":
                event = page.event()
                counted = isinstance(event, ClaimReleased) and event.counted
                tried[page.task_id] -= not counted
            case _:
                continue
    return tried


def _tried_before(run: RunState, pages: Iterable[Page], brief: Brief) -> int:
    """Return how often steps of this run were tried before the claim of `brief`.

    A count of all attempts would punish steps that began together for one another; what the
    final region does is paid by nobody.
    """
    tried = attempts_of(page for page in pages if page.seq < brief.claim)
    ours = brief.manifest.executor
    return sum(count for name, count in tried.items() if _is_by(run, name, ours))


def _is_by(run: RunState, task_id: str, executor: str | None) -> bool:
    return task_id in run.tasks and run.tasks[task_id].manifest.executor == executor
