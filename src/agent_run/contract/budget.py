"""What a task or a run may spend, and what it has spent.

Spending is reserved before it happens and settled after; see `ledger.rules`.
"""

from decimal import Decimal
from typing import Final, Literal, TypeAlias

from pydantic import Field

from agent_run.contract.base import (
    Contract,
    Whole,
)

OnBudget: TypeAlias = Literal["stop", "degrade", "escalate"]

DEFAULT_ATTEMPTS: Final = 3


class Spend(Contract):
    """What was used, or is reserved; sums are exact."""

    tokens: Whole = Field(default=0, ge=0)
    requests: Whole = Field(default=0, ge=0)
    cost_usd: Decimal = Field(default=Decimal(0), ge=0, allow_inf_nan=False)
    unpriced_requests: Whole = Field(default=0, ge=0)
    """Requests whose price nobody knows. Unknown is counted, never taken for free."""
    elapsed_ms: Whole = Field(default=0, ge=0)

    def __add__(self, other: "Spend") -> "Spend":
        if other is NOTHING:
            return self
        if self is NOTHING:
            return other
        return Spend(
            tokens=self.tokens + other.tokens,
            requests=self.requests + other.requests,
            cost_usd=self.cost_usd + other.cost_usd,
            unpriced_requests=self.unpriced_requests + other.unpriced_requests,
            elapsed_ms=self.elapsed_ms + other.elapsed_ms,
        )

    def __sub__(self, other: "Spend") -> "Spend":
        """Return what is left; no amount goes below zero."""
        if other is NOTHING or self is NOTHING:
            return self
        if self is other:
            return NOTHING
        return Spend(
            tokens=max(0, self.tokens - other.tokens),
            requests=max(0, self.requests - other.requests),
            cost_usd=max(Decimal(0), self.cost_usd - other.cost_usd),
            unpriced_requests=max(0, self.unpriced_requests - other.unpriced_requests),
            elapsed_ms=max(0, self.elapsed_ms - other.elapsed_ms),
        )


NOTHING: Final = Spend()


class Budget(Contract):
    """Limits that fail loudly. `None` means no limit, except for `max_attempts` of a task."""

    max_attempts: Whole | None = Field(default=None, ge=1, le=1_000)
    """How often the work may be claimed. `None` is three for a task, no limit for a run."""
    max_tokens: Whole | None = Field(default=None, ge=1)
    max_requests: Whole | None = Field(default=None, ge=1)
    max_cost_usd: Decimal | None = Field(default=None, gt=0, allow_inf_nan=False)
    time_budget_sec: Whole | None = Field(default=None, ge=1)
    """Wall-clock seconds of one attempt, or of the whole run."""
    on_budget: OnBudget = "escalate"
    """What follows when the budget is used up: `stop` fails the task, `degrade` lets a
    cheaper way be chosen, `escalate` asks a person."""

    @property
    def attempts(self) -> int:
        """How often a task with this budget may be claimed."""
        return DEFAULT_ATTEMPTS if self.max_attempts is None else self.max_attempts

    @property
    def bounds_spending(self) -> bool:
        return any((self.max_tokens, self.max_requests, self.max_cost_usd))

    def whole(self) -> Spend:
        """Return all that this budget allows; a dimension without limit counts as zero."""
        return Spend(
            tokens=self.max_tokens or 0,
            requests=self.max_requests or 0,
            cost_usd=self.max_cost_usd or Decimal(0),
        )

    def exceeded_by(self, spend: Spend) -> list[str]:
        """Name each limit that `spend` breaks, so that the error can say which."""
        broken: list[str] = []
        if self.max_tokens is not None and spend.tokens > self.max_tokens:
            broken.append(f"tokens {spend.tokens} > {self.max_tokens}")
        if self.max_requests is not None and spend.requests > self.max_requests:
            broken.append(f"requests {spend.requests} > {self.max_requests}")
        if self.max_cost_usd is not None and spend.cost_usd > self.max_cost_usd:
            broken.append(f"cost ${spend.cost_usd} > ${self.max_cost_usd}")
        return broken


UNLIMITED: Final = Budget()
