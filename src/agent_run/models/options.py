"""What is said about a model besides its name: key, address, price, patience."""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from agent_run.ports.model import Usage

_MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """What a million tokens cost in US dollars, where the user knows it better than a list."""

    tokens_in: Decimal
    tokens_out: Decimal

    def of(self, usage: Usage) -> Decimal:
        """Return what `usage` costs."""
        paid = self.tokens_in * usage.tokens_in + self.tokens_out * usage.tokens_out
        return paid / _MILLION


FREE: Final = Price(Decimal(0), Decimal(0))


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How to reach a model; keys are values here, read from the environment by others."""

    api_key: str | None = field(default=None, repr=False)
    """`None` is no key, which only models at an own address accept."""
    price: Price | None = None
    """`None` looks the price up in a list; a model that is not in it has no known price."""
    timeout_sec: float = 600.0
    """How long one try may take, where the request does not say."""
