"""From pages to facts: one pass, each page looked at once, most of them hardly at all.

Pages that we wrote ourselves need no second validation. Only the kinds that say something
countable are decoded, and of those only the keys that are counted.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from pydantic_core import from_json

from agent_run.contract.budget import DEFAULT_ATTEMPTS
from agent_run.ledger.metrics.facts import (
    Amount,
    Attempt,
    Decision,
    End,
    Failure,
    FirstWord,
    Limits,
    Run,
    Task,
    Wait,
)
from agent_run.ledger.pages import Page

PERSON_GATE: Final = "review"
"""The gate that a person's own verdict is filed under."""


class Gathering:
    """Takes the pages of one run, in order, and knows at any time what they say so far."""

    def __init__(self) -> None:
        self._run: Run | None = None
        self._last: Page | None = None
        self._calls: dict[str, dict[str, Amount]] = {}
        """Task -> calls of the present attempt that are reserved and not settled."""

    def add(self, page: Page) -> None:
        """Take the next page."""
        self._last = page
        tell = _TOLD.get(page.kind)
        if tell is None and self._run is not None:
            return
        body: dict[str, Any] = from_json(page.body)
        at = datetime.fromisoformat(body["at"])
        if self._run is None:
            self._run = Run(page.run_id, at, at)
        if tell is not None:
            tell(self, self._run, page, body, at)

    def run(self) -> Run | None:
        """Return what is known so far; None before the first page."""
        if self._run is not None and self._last is not None:
            self._run.pages = self._last.seq
            self._run.at = datetime.fromisoformat(from_json(self._last.body)["at"])
        return self._run

    def reserved(self, task_id: str) -> dict[str, Amount]:
        return self._calls.setdefault(task_id, {})

    def end_claim(self, task: Task, at: datetime, end: End) -> None:
        """Note how the present attempt ended; calls nobody settled count as spent."""
        if task.status != "claimed" or not task.attempts:
            return
        attempt = task.attempts[-1]
        attempt.ended_at, attempt.end = at, end
        if self._calls:
            for amount in self._calls.pop(task.task_id, {}).values():
                attempt.spent.add(amount)


def gather(pages: Iterable[Page]) -> Run | None:
    """Return what the pages of one run say; None of no pages."""
    gathering = Gathering()
    for page in pages:
        gathering.add(page)
    return gathering.run()


def _opened(_: Gathering, run: Run, page: Page, body: dict[str, Any], at: datetime) -> None:
    run.intent = body.get("intent", "")
    run.limits = _limits(body.get("budget") or {})


def _cancelled_run(
    _: Gathering, run: Run, page: Page, body: dict[str, Any], at: datetime
) -> None:
    run.cancelled = True


def _posted(_: Gathering, run: Run, page: Page, body: dict[str, Any], at: datetime) -> None:
    manifest = body["manifest"]
    labels = manifest.get("labels") or {}
    limits = _limits(manifest.get("budget") or {})
    if limits.attempts is None:
        limits.attempts = DEFAULT_ATTEMPTS
    task = Task(
        run_id=page.run_id,
        task_id=page.task_id,
        step=labels.get("step") or page.task_id,
        posted_at=at,
        executor=manifest.get("executor") or "",
        model=manifest.get("model"),
        labels=labels,
        limits=limits,
        min_confidence=manifest.get("min_confidence", 0.0),
    )
    if manifest.get("approve_before_claim"):
        task.waits.append(Wait("approval", at))
    run.tasks[page.task_id] = task


def _approved(_: Gathering, run: Run, page: Page, body: dict[str, Any], at: datetime) -> None:
    _answer(run.tasks[page.task_id], at, body["actor"])


def _claimed(
    gathering: Gathering, run: Run, page: Page, body: dict[str, Any], at: datetime
) -> None:
    task = run.tasks[page.task_id]
    task.attempts.append(Attempt(body["attempt"], page.seq, body["owner"], at))
    task.status = "claimed"


def _released(
    gathering: Gathering, run: Run, page: Page, body: dict[str, Any], at: datetime
) -> None:
    task = run.tasks[page.task_id]
    gathering.end_claim(task, at, "given_up" if body.get("counted") else "released")
    task.status = "open"


def _expired(
    gathering: Gathering, run: Run, page: Page, body: dict[str, Any], at: datetime
) -> None:
    task = run.tasks[page.task_id]
    gathering.end_claim(task, at, "expired")
    task.status = "open"


def _reserved(
    gathering: Gathering, run: Run, page: Page, body: dict[str, Any], at: datetime
) -> None:
    gathering.reserved(page.task_id)[body["key"]] = _amount(body["amount"])


def _settled(
    gathering: Gathering, run: Run, page: Page, body: dict[str, Any], at: datetime
) -> None:
    gathering.reserved(page.task_id).pop(body["key"], None)
    task = run.tasks[page.task_id]
    if task.attempts:
        task.attempts[-1].spent.add(_amount(body["spent"]))
        task.attempts[-1].calls += 1


def _submitted(
    gathering: Gathering, run: Run, page: Page, body: dict[str, Any], at: datetime
) -> None:
    task = run.tasks[page.task_id]
    record = body["record"]
    attempt = task.attempts[-1]
    attempt.said = record.get("status", "needs_review")
    attempt.next_action = record.get("next_action", "continue")
    attempt.confidence = record.get("confidence")
    observed = body.get("observed")
    if isinstance(observed, dict):
        attempt.model = observed.get("model") or task.model
        fence = observed.get("fence")
        attempt.fence = fence.get("kind") if isinstance(fence, dict) else None
    reported = _reported(record)
    if attempt.calls:
        # Calls settled under this claim are part of what the record reports.
        reported.raise_to(attempt.spent)
    attempt.spent = reported
    gathering.end_claim(task, at, "submitted")
    task.status = "submitted"


def _deferred(_: Gathering, run: Run, page: Page, body: dict[str, Any], at: datetime) -> None:
    task = run.tasks[page.task_id]
    task.deferrals += 1
    task.failures += _failures(body)


def _accepted(_: Gathering, run: Run, page: Page, body: dict[str, Any], at: datetime) -> None:
    task = run.tasks[page.task_id]
    _judged(task, body, at, "accepted", passed=True)
    _settle(task, "accepted", at)


def _returned(_: Gathering, run: Run, page: Page, body: dict[str, Any], at: datetime) -> None:
    task = run.tasks[page.task_id]
    task.returns += 1
    _judged(task, body, at, "returned", passed=False)
    task.status = "open"


def _escalated(
    gathering: Gathering, run: Run, page: Page, body: dict[str, Any], at: datetime
) -> None:
    task = run.tasks[page.task_id]
    gathering.end_claim(task, at, "escalated")
    if task.status == "submitted":
        _first(task, "escalated")
    if body.get("verdict"):
        _held_against(task, body, at)
    task.escalations += 1
    task.reason = body["reason"]
    if not _still_waits(task):
        task.waits.append(Wait("decision", at))
    task.status = "escalated"


def _asked(
    gathering: Gathering, run: Run, page: Page, body: dict[str, Any], at: datetime
) -> None:
    task = run.tasks[page.task_id]
    gathering.end_claim(task, at, "asked")
    if task.status == "submitted":  # the question came with a record
        task.attempts[-1].end = "asked"
    task.waits.append(Wait("question", at))
    task.status = "asked"


def _answered(_: Gathering, run: Run, page: Page, body: dict[str, Any], at: datetime) -> None:
    task = run.tasks[page.task_id]
    _answer(task, at, body["actor"])
    task.status, task.reason = "open", None


def _failed(
    gathering: Gathering, run: Run, page: Page, body: dict[str, Any], at: datetime
) -> None:
    task = run.tasks[page.task_id]
    gathering.end_claim(task, at, "failed")
    if body.get("verdict"):
        _judged(task, body, at, "failed", passed=False)
    elif task.status == "submitted":
        _first(task, "failed")
    task.reason = body["reason"]
    _settle(task, "failed", at)


def _ended(word: str) -> "_Told":
    def told(
        gathering: Gathering, run: Run, page: Page, body: dict[str, Any], at: datetime
    ) -> None:
        task = run.tasks[page.task_id]
        gathering.end_claim(task, at, "cancelled")
        _settle(task, word, at)

    return told


def _rolled_back(
    _: Gathering, run: Run, page: Page, body: dict[str, Any], at: datetime
) -> None:
    run.tasks[page.task_id].rollbacks += 1


_Told = Callable[[Gathering, Run, Page, dict[str, Any], datetime], None]
_TOLD: Final[Mapping[str, _Told]] = {
    "run_opened": _opened,
    "run_cancelled": _cancelled_run,
    "task_posted": _posted,
    "task_approved": _approved,
    "task_claimed": _claimed,
    "claim_released": _released,
    "claim_expired": _expired,
    "spend_reserved": _reserved,
    "spend_settled": _settled,
    "record_submitted": _submitted,
    "verdict_deferred": _deferred,
    "task_accepted": _accepted,
    "task_returned": _returned,
    "task_escalated": _escalated,
    "question_asked": _asked,
    "question_answered": _answered,
    "scope_widened": _answered,
    "task_failed": _failed,
    "task_cancelled": _ended("cancelled"),
    "task_skipped": _ended("skipped"),
    "result_rolled_back": _rolled_back,
}
"""Kind of page -> what it adds; pages of other kinds are not even decoded."""


def _judged(
    task: Task, body: dict[str, Any], at: datetime, word: FirstWord, *, passed: bool
) -> None:
    """Note a verdict, and whether it was a person's."""
    if task.status == "escalated" or _is_persons(body):
        machine = task.attempts[-1].machine_accepts if task.attempts else None
        task.decisions.append(Decision(at, body["actor"], passed, machine))
        _answer(task, at, body["actor"])
        _first(task, "escalated")  # without a word of the gates, a person had to look
        task.failures += _failures(body)
        return
    _first(task, word)
    _held_against(task, body, at)


def _held_against(task: Task, body: dict[str, Any], at: datetime) -> None:
    failures = _failures(body)
    task.failures += failures
    if task.attempts:
        task.attempts[-1].failures = tuple(failures)
        task.attempts[-1].judged_at = at


def _first(task: Task, word: FirstWord) -> None:
    if task.first_word is None:
        task.first_word = word


def _settle(task: Task, word: str, at: datetime) -> None:
    task.status, task.settled_at = word, at
    if _still_waits(task):  # nobody wants an answer any more
        task.waits[-1].until = at


def _answer(task: Task, at: datetime, by: str) -> None:
    if _still_waits(task):
        task.waits[-1].until, task.waits[-1].by = at, by


def _still_waits(task: Task) -> bool:
    return bool(task.waits) and task.waits[-1].until is None


def _is_persons(body: dict[str, Any]) -> bool:
    return any(finding["gate"] == PERSON_GATE for finding in body["verdict"]["findings"])


def _failures(body: dict[str, Any]) -> list[Failure]:
    return [
        Failure(finding["gate"], finding["outcome"], finding["reason"])
        for finding in body["verdict"]["findings"]
        if finding["outcome"] != "pass"
    ]


def _limits(budget: dict[str, Any]) -> Limits:
    cost = budget.get("max_cost_usd")
    return Limits(
        attempts=budget.get("max_attempts"),
        tokens=budget.get("max_tokens"),
        cost_usd=None if cost is None else Decimal(cost),
        seconds=budget.get("time_budget_sec"),
    )


def _amount(spend: dict[str, Any]) -> Amount:
    return Amount(
        tokens=spend.get("tokens", 0),
        requests=spend.get("requests", 0),
        cost_usd=Decimal(spend.get("cost_usd", 0)),
        unpriced=spend.get("unpriced_requests", 0),
        elapsed_ms=spend.get("elapsed_ms", 0),
    )


def _reported(record: dict[str, Any]) -> Amount:
    cost, requests = record.get("cost_usd"), record.get("requests_made", 0)
    return Amount(
        tokens=record.get("tokens_used", 0),
        requests=requests,
        cost_usd=Decimal(0) if cost is None else Decimal(cost),
        unpriced=requests if cost is None else 0,
        elapsed_ms=record.get("elapsed_ms", 0),
    )
