"""Purses: what pays for calls where no ledger does, and what a day may cost at most.

A purse may be shared by many at once. What is set aside counts like what is spent, so nobody
can promise the same dollar twice.
"""

import json
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from pydantic import JsonValue

from agent_run.contract.budget import NOTHING, UNLIMITED, Budget, Spend
from agent_run.contract.payload import canonical
from agent_run.errors import ContractError, OverBudget, TransitionError
from agent_run.ports.model import Purse, Remembered


@dataclass(slots=True)
class _Account:
    """What all purses of one budget share."""

    budget: Budget
    file: Path | None
    lock: threading.Lock = field(default_factory=threading.Lock)
    spent: Spend = NOTHING
    open: dict[str, Spend] = field(default_factory=dict)
    results: dict[str, JsonValue] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    """Calls that an earlier process began and never settled."""


class MemoryPurse:
    """A budget kept in this process, and in a file if one is given.

    The file gets a line for each step before the step counts, so that the next process knows
    what was finished and what was only begun.
    """

    def __init__(self, budget: Budget = UNLIMITED, *, file: Path | None = None) -> None:
        self._prefix = ""
        self._account = _Account(budget, file)
        if file is not None and file.exists():
            _read_back(self._account, file)

    def of(self, task_id: str) -> Self:
        """Return a purse for another task that pays from the same budget."""
        other = object.__new__(type(self))
        other._prefix = f"{task_id}/"
        other._account = self._account
        return other

    @property
    def spent(self) -> Spend:
        """What was settled so far, by all who share this budget."""
        return self._account.spent

    @property
    def reserved(self) -> Spend:
        """What is set aside for calls that are not settled."""
        return sum(self._account.open.values(), NOTHING)

    def recall(self, key: str) -> Remembered | None:
        """Return what is known of the call `key`; `None` if it was never begun."""
        full = self._prefix + key
        with self._account.lock:
            if full in self._account.results:
                return Remembered(finished=True, result=self._account.results[full])
            return Remembered(finished=False) if full in self._account.lost else None

    def reserve(
        self, key: str, amount: Spend, *, purpose: str = "", question: JsonValue = None
    ) -> None:
        """Set `amount` aside, or raise `OverBudget`."""
        full, account = self._prefix + key, self._account
        with account.lock:
            if full in account.open or full in account.results:
                msg = f"call {full!r} is already reserved or settled"
                raise TransitionError(msg)
            wanted = account.spent + self.reserved + amount
            broken = account.budget.exceeded_by(wanted)
            if broken:
                msg = "the budget does not allow it: " + "; ".join(broken)
                raise OverBudget(msg)
            _write(account, {"reserve": full, "amount": amount.model_dump(mode="json")})
            account.open[full] = amount

    def settle(self, key: str, spent: Spend, result: JsonValue = None) -> None:
        """Write down what the call took and gave."""
        full, account = self._prefix + key, self._account
        with account.lock:
            if full not in account.open:
                msg = f"call {full!r} was never reserved"
                raise TransitionError(msg)
            taken = spent.model_dump(mode="json")
            _write(account, {"settle": full, "spent": taken, "result": result})
            del account.open[full]
            account.lost.discard(full)
            account.spent += spent
            account.results[full] = result


@dataclass(frozen=True, slots=True)
class DayBudget:
    """What all runs together may spend on one day. `None` means no limit."""

    max_cost_usd: float | None = None
    max_tokens: int | None = None

    def check(self, today: Spend, amount: Spend) -> None:
        """Refuse `amount` if it would go beyond what the day allows.

        Raises:
            OverBudget: It would, or nobody knows whether it would, since the price is unknown.
        """
        if self.max_cost_usd is not None and amount.unpriced_requests:
            msg = (
                f"the day has a limit of ${self.max_cost_usd:g}, and nobody knows the price of "
                "this model; configure a price, or limit tokens instead"
            )
            raise OverBudget(msg)
        wanted = today + amount
        broken = self._budget().exceeded_by(wanted)
        if broken:
            msg = "the budget of the day does not allow it: " + "; ".join(broken)
            raise OverBudget(msg)

    def _budget(self) -> Budget:
        limits: dict[str, object] = {"max_tokens": self.max_tokens}
        if self.max_cost_usd is not None:
            limits["max_cost_usd"] = str(self.max_cost_usd)
        return Budget.model_validate(limits)


@dataclass(frozen=True, slots=True)
class DayPurse:
    """Another purse, held to the budget of the day as well."""

    purse: Purse
    day: DayBudget
    today: Callable[[], Spend]
    """What was spent or set aside today, by everybody."""

    def recall(self, key: str) -> Remembered | None:
        """Return what the other purse knows."""
        return self.purse.recall(key)

    def reserve(
        self, key: str, amount: Spend, *, purpose: str = "", question: JsonValue = None
    ) -> None:
        """Set `amount` aside if day and purse both allow it."""
        self.day.check(self.today(), amount)
        self.purse.reserve(key, amount, purpose=purpose, question=question)

    def settle(self, key: str, spent: Spend, result: JsonValue = None) -> None:
        """Write it down in the other purse."""
        self.purse.settle(key, spent, result)


def _write(account: _Account, line: dict[str, JsonValue]) -> None:
    if account.file is None:
        return
    with account.file.open("a", encoding="utf-8") as file:
        file.write(canonical(line) + "\n")
        file.flush()
        os.fsync(file.fileno())


def _read_back(account: _Account, file: Path) -> None:
    """Take up what earlier processes wrote; a last line without its end does not count."""
    text = file.read_text(encoding="utf-8")
    complete, _, torn = text.rpartition("\n")
    for number, line in enumerate(complete.splitlines(), start=1):
        try:
            _take_up(account, json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            msg = f"{file.name}: line {number} is not a page of a purse: {error}"
            raise ContractError(msg) from error
    if torn:
        file.write_text(complete + "\n" if complete else "", encoding="utf-8")
    # Nobody can say whether these were paid for, so they count as spent.
    account.lost = set(account.open)
    account.spent = sum(account.open.values(), account.spent)
    account.open.clear()


def _take_up(account: _Account, line: dict[str, JsonValue]) -> None:
    if "reserve" in line:
        account.open[str(line["reserve"])] = Spend.model_validate(line["amount"])
        return
    key = str(line["settle"])
    account.open.pop(key, None)
    account.spent += Spend.model_validate(line["spent"])
    account.results[key] = line.get("result")
