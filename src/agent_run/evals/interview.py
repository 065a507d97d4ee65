"""A model that is asked for an evaluation: paid for from a purse of its own, never a run's."""

from collections.abc import Callable
from dataclasses import dataclass

from agent_run.models.paying import PaidModel, Terms, paid
from agent_run.models.purse import MemoryPurse
from agent_run.ports.meter import Meter
from agent_run.ports.model import Model, Purse


@dataclass(frozen=True, slots=True)
class Interview:
    """Who is asked, who pays, and how many questions are open at a time."""

    model: Model
    purse: MemoryPurse
    """Remembers the answers: what is in it is not asked again."""
    meter: Meter
    terms: Terms
    guard: Callable[[Purse], Purse] = lambda purse: purse
    """Puts further limits around the purse, such as the budget of the day."""
    at_once: int = 4

    def paying(self, about: str) -> PaidModel:
        """Return the model for questions about one thing."""
        return paid(self.model, self.guard(self.purse.of(about)), self.meter, self.terms)
