"""Parts of pages as values that can be counted; only the keys that are counted are looked at.

Pages that we wrote ourselves need no second validation.
"""

from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from agent_run.contract.budget import DEFAULT_ATTEMPTS
from agent_run.contract.verdict import PERSON_GATE
from agent_run.ledger.metrics.facts import NO_LIMITS, NO_MONEY, Amount, Failure, Limits

_BY_A_PERSON: Final = f'"gate":"{PERSON_GATE}"'
_USUAL: Final = Limits(attempts=DEFAULT_ATTEMPTS)


def passed_plainly(task_id: str, body: str) -> datetime | None:
    """Return the time of an acceptance that says no more than that all gates passed.

    Most are like that, and need no decoding: quotes inside of a text are escaped in JSON, so
    what is looked for can only be a key. `None` means that the page has to be decoded.
    """
    passes = body.count('"outcome":"pass"')
    if not passes or passes != body.count('"outcome":') or _BY_A_PERSON in body:
        return None
    start = f'{{"task_id":"{task_id}","at":"'
    if not body.startswith(start):
        return None
    return datetime.fromisoformat(body[len(start) : body.index('"', len(start))])


def is_persons(verdict: dict[str, Any]) -> bool:
    """Say whether a person gave the verdict."""
    return any(finding["gate"] == PERSON_GATE for finding in verdict["findings"])


def failures(verdict: dict[str, Any]) -> list[Failure]:
    """Return what did not pass."""
    return [
        Failure(finding["gate"], finding["outcome"], finding["reason"])
        for finding in verdict["findings"]
        if finding["outcome"] != "pass"
    ]


def limits(budget: dict[str, Any] | None) -> Limits:
    """Return what a run was granted."""
    if not budget:
        return NO_LIMITS
    cost = budget.get("max_cost_usd")
    return Limits(
        attempts=budget.get("max_attempts"),
        tokens=budget.get("max_tokens"),
        cost_usd=None if cost is None else Decimal(cost),
        seconds=budget.get("time_budget_sec"),
    )


def limits_of_task(budget: dict[str, Any] | None) -> Limits:
    """Return what a task was granted; without a word, a few attempts."""
    if not budget:
        return _USUAL
    found = limits(budget)
    if found.attempts is not None:
        return found
    return Limits(DEFAULT_ATTEMPTS, found.tokens, found.cost_usd, found.seconds)


def amount(spend: dict[str, Any]) -> Amount:
    """Return what a call took."""
    return Amount(
        spend.get("tokens", 0),
        spend.get("requests", 0),
        Decimal(spend.get("cost_usd", 0)),
        spend.get("unpriced_requests", 0),
        spend.get("elapsed_ms", 0),
    )


def reported(record: dict[str, Any]) -> Amount:
    """Return what a record says the whole attempt took."""
    cost, requests = record.get("cost_usd"), record.get("requests_made", 0)
    return Amount(
        record.get("tokens_used", 0),
        requests,
        NO_MONEY if cost is None else Decimal(cost),
        requests if cost is None else 0,
        record.get("elapsed_ms", 0),
    )
