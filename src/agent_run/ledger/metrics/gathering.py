"""From pages to facts: one pass, each page looked at once, most of them hardly at all.

Only the kinds that say something countable are decoded, and not even those if they say no
more than that all is well.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias

from pydantic_core import from_json

from agent_run.ledger.calls import called, fault_of, usage_of
from agent_run.ledger.metrics.decoding import (
    amount,
    failures,
    is_persons,
    limits,
    limits_of_task,
    passed_plainly,
    reported,
)
from agent_run.ledger.metrics.facts import (
    Attempt,
    Call,
    Decision,
    End,
    FirstWord,
    Run,
    Task,
    Wait,
)
from agent_run.ledger.pages import Page

_Body: TypeAlias = dict[str, Any]


class Gathering:
    """Takes the pages of one run, in order, and knows at any time what they say so far."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._run: Run | None = None
        self._seq = 0
        self._last = ""
        """The body of the newest page."""
        self._calls: dict[str, dict[str, Call]] = {}
        """Task -> calls of the present attempt that are reserved and not settled."""

    def add(self, seq: int, task_id: str, kind: str, body: str) -> None:
        """Take the next page."""
        self._seq, self._last = seq, body
        run = self._run or self._begun(body)
        tell = _OF_TASKS.get(kind)
        if tell is None:
            self._add_other(run, kind, body)
            return
        task = run.tasks[task_id]
        if tell is _accepted and _plainly(task, body):
            return
        said = from_json(body)
        tell(self, task, said, datetime.fromisoformat(said["at"]))

    def run(self) -> Run | None:
        """Return what is known so far; None before the first page."""
        if self._run is not None:
            self._run.pages = self._seq
            self._run.at = _time(from_json(self._last))
        return self._run

    def claim(self, task: Task, body: _Body, at: datetime) -> None:
        """Begin an attempt; the number of the page is its claim."""
        task.attempts.append(Attempt(body["attempt"], self._seq, body["owner"], at))
        task.status = "claimed"

    def begin_call(self, task: Task, body: _Body, at: datetime) -> None:
        """Note that a call was begun."""
        operation, name = called(body["key"], body.get("purpose", ""))
        call = Call(operation, name, at, amount(body["amount"]))
        self._calls.setdefault(task.task_id, {})[body["key"]] = call

    def settle_call(self, task: Task, body: _Body, at: datetime) -> None:
        """Note what a call took and what came of it."""
        call = self._calls.get(task.task_id, {}).pop(body["key"], None)
        if call is None or not task.attempts:
            return
        result = body.get("result")
        call.until, call.spent = at, amount(body["spent"])
        call.error, call.usage = fault_of(result), usage_of(result)
        task.attempts[-1].spent.add(call.spent)
        task.attempts[-1].calls.append(call)

    def end_claim(self, task: Task, at: datetime, end: End) -> None:
        """Note how the present attempt ended; calls nobody settled count as spent."""
        if task.status != "claimed" or not task.attempts:
            return
        attempt = task.attempts[-1]
        attempt.ended_at, attempt.end = at, end
        if self._calls:
            for call in self._calls.pop(task.task_id, {}).values():
                call.until, call.error = at, "unknown"
                attempt.spent.add(call.spent)
                attempt.calls.append(call)

    def _begun(self, body: str) -> Run:
        at = _time(from_json(body))
        self._run = Run(self._run_id, at, at)
        return self._run

    def _add_other(self, run: Run, kind: str, body: str) -> None:
        if kind == "task_posted":
            task = _posted(self._run_id, from_json(body))
            run.tasks[task.task_id] = task
        elif kind == "run_opened":
            said = from_json(body)
            run.intent = said.get("intent", "")
            run.limits = limits(said.get("budget"))
        elif kind == "run_cancelled":
            run.cancelled = True


def gather(pages: Iterable[Page]) -> Run | None:
    """Return what the pages of one run say; None of no pages."""
    gathering: Gathering | None = None
    for page in pages:
        gathering = gathering or Gathering(page.run_id)
        gathering.add(page.seq, page.task_id, page.kind, page.body)
    return None if gathering is None else gathering.run()


def _time(body: _Body) -> datetime:
    return datetime.fromisoformat(body["at"])


def _posted(run_id: str, body: _Body) -> Task:
    manifest = body["manifest"]
    task_id, labels, at = body["task_id"], manifest.get("labels") or {}, _time(body)
    task = Task(
        run_id,
        task_id,
        labels.get("step") or task_id,
        at,
        manifest.get("executor") or "",
        manifest.get("model"),
        labels,
        limits_of_task(manifest.get("budget")),
        manifest.get("min_confidence", 0.0),
    )
    if manifest.get("approve_before_claim"):
        task.waits.append(Wait("approval", at))
    return task


def _approved(_: Gathering, task: Task, body: _Body, at: datetime) -> None:
    _answer(task, at, body["actor"])


def _released(gathering: Gathering, task: Task, body: _Body, at: datetime) -> None:
    gathering.end_claim(task, at, "given_up" if body.get("counted") else "released")
    task.status = "open"


def _expired(gathering: Gathering, task: Task, body: _Body, at: datetime) -> None:
    gathering.end_claim(task, at, "expired")
    task.status = "open"


def _submitted(gathering: Gathering, task: Task, body: _Body, at: datetime) -> None:
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
    spent = reported(record)
    if attempt.calls:
        # Calls settled under this claim are part of what the record reports.
        spent.raise_to(attempt.spent)
    attempt.spent = spent
    gathering.end_claim(task, at, "submitted")
    task.status = "submitted"


def _deferred(_: Gathering, task: Task, body: _Body, at: datetime) -> None:
    task.deferrals += 1
    task.failures += failures(body["verdict"])


def _plainly(task: Task, body: str) -> bool:
    """Take an acceptance without decoding it, if all it says is that the gates passed."""
    at = None if task.status == "escalated" else passed_plainly(task.task_id, body)
    if at is None:
        return False
    _first(task, "accepted")
    if task.attempts:
        attempt = task.attempts[-1]
        attempt.failures, attempt.judged_at = (), at
    _settle(task, "accepted", at)
    return True


def _accepted(_: Gathering, task: Task, body: _Body, at: datetime) -> None:
    _judged(task, body, at, "accepted", passed=True)
    _settle(task, "accepted", at)


def _returned(_: Gathering, task: Task, body: _Body, at: datetime) -> None:
    task.returns += 1
    _judged(task, body, at, "returned", passed=False)
    task.status = "open"


def _escalated(gathering: Gathering, task: Task, body: _Body, at: datetime) -> None:
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


def _asked(gathering: Gathering, task: Task, body: _Body, at: datetime) -> None:
    gathering.end_claim(task, at, "asked")
    if task.status == "submitted":  # the question came with a record
        task.attempts[-1].end = "asked"
    task.waits.append(Wait("question", at))
    task.status = "asked"


def _answered(_: Gathering, task: Task, body: _Body, at: datetime) -> None:
    _answer(task, at, body["actor"])
    task.status, task.reason = "open", None


def _failed(gathering: Gathering, task: Task, body: _Body, at: datetime) -> None:
    gathering.end_claim(task, at, "failed")
    if body.get("verdict"):
        _judged(task, body, at, "failed", passed=False)
    elif task.status == "submitted":
        _first(task, "failed")
    task.reason = body["reason"]
    _settle(task, "failed", at)


def _cancelled(gathering: Gathering, task: Task, body: _Body, at: datetime) -> None:
    gathering.end_claim(task, at, "cancelled")
    _settle(task, "cancelled", at)


def _skipped(gathering: Gathering, task: Task, body: _Body, at: datetime) -> None:
    gathering.end_claim(task, at, "cancelled")
    _settle(task, "skipped", at)


def _rolled_back(_: Gathering, task: Task, body: _Body, at: datetime) -> None:
    task.rollbacks += 1


_OF_TASKS: Final[Mapping[str, Callable[[Gathering, Task, _Body, datetime], None]]] = {
    "task_approved": _approved,
    "task_claimed": Gathering.claim,
    "claim_released": _released,
    "claim_expired": _expired,
    "spend_reserved": Gathering.begin_call,
    "spend_settled": Gathering.settle_call,
    "record_submitted": _submitted,
    "verdict_deferred": _deferred,
    "task_accepted": _accepted,
    "task_returned": _returned,
    "task_escalated": _escalated,
    "question_asked": _asked,
    "question_answered": _answered,
    "scope_widened": _answered,
    "task_failed": _failed,
    "task_cancelled": _cancelled,
    "task_skipped": _skipped,
    "result_rolled_back": _rolled_back,
}
"""Kind of page -> what it adds to its task; pages of most other kinds are not even decoded."""


def _judged(task: Task, body: _Body, at: datetime, word: FirstWord, *, passed: bool) -> None:
    """Note a verdict, and whether it was a person's."""
    if task.status == "escalated" or is_persons(body["verdict"]):
        machine = task.attempts[-1].machine_accepts if task.attempts else None
        task.decisions.append(Decision(at, body["actor"], passed, machine))
        _answer(task, at, body["actor"])
        _first(task, "escalated")  # without a word of the gates, a person had to look
        task.failures += failures(body["verdict"])
        return
    _first(task, word)
    _held_against(task, body, at)


def _held_against(task: Task, body: _Body, at: datetime) -> None:
    found = failures(body["verdict"])
    task.failures += found
    if task.attempts:
        task.attempts[-1].failures = tuple(found)
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
