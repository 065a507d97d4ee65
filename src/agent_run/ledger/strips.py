"""Stretches of time that the pages tell of: a run, its tasks, attempts, calls, gates, waits.

The waterfall draws them and telemetry sends them. What people wrote, objectives, answers,
results, is kept apart in `content`, so that an exporter has to ask for it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal, TypeAlias

from pydantic import JsonValue
from pydantic_core import from_json

from agent_run.ledger.calls import answered_by, called, fault_of, usage_of
from agent_run.ledger.pages import Page

Kind: TypeAlias = Literal["run", "plan", "task", "handoff", "attempt", "call", "gate", "wait"]
_SETTLES: Final = {
    "task_accepted": "accepted",
    "task_failed": "failed",
    "task_cancelled": "cancelled",
    "task_skipped": "skipped",
}
_FRESH: Final = "open"


@dataclass(frozen=True, slots=True)
class Strip:
    """Something that began, lasted and ended; all of it read from pages."""

    key: str
    """Always the same for the same pages, so that a second export says nothing new."""
    parent: str | None
    kind: Kind
    name: str
    start: datetime
    end: datetime | None = None
    """`None` while it goes on."""
    closed_on: int | None = None
    """The page that ended it."""
    outcome: str = _FRESH
    """One word: how it ended."""
    task_id: str = ""
    details: Mapping[str, JsonValue] = field(default_factory=dict)
    """Names and numbers."""
    content: Mapping[str, JsonValue] = field(default_factory=dict)
    """What people and agents wrote."""


def strips(pages: Iterable[Page]) -> list[Strip]:
    """Return the strips of one run, parents before children, in the order they began."""
    story = _Story()
    for page in pages:
        story.add(page)
    return story.told()


class _Story:
    """The strips so far, the open ones by what they are about."""

    def __init__(self) -> None:
        self._strips: dict[str, Strip] = {}
        self._last: tuple[datetime, int] | None = None
        self._unsettled: set[str] = set()
        self._planning = False
        self._attempts: dict[str, str] = {}
        """Task -> key of the attempt that goes on."""
        self._waits: dict[str, str] = {}
        """Task -> key of the wait that goes on."""
        self._calls: dict[str, dict[str, str]] = {}
        """Task -> name of each call that is not settled -> its key."""
        self._submitted: dict[str, datetime] = {}

    def add(self, page: Page) -> None:
        """Take the next page of the run."""
        body: dict[str, Any] = from_json(page.body)
        at = datetime.fromisoformat(body["at"])
        self._last = at, page.seq
        if "run" not in self._strips:
            shown = {"run_id": page.run_id, "trace_id": page.trace_id}
            self._begin(Strip("run", None, "run", page.run_id, at, details=shown))
        tell = _TOLD.get(page.kind)
        if tell is not None:
            tell(self, page, body, at)

    def told(self) -> list[Strip]:
        """Return what was told; a run ends when its last task is settled."""
        run = self._strips.get("run")
        if run and self._last and not self._unsettled and run.end is None:
            self._end("run", *self._last, _worst(self._strips.values()))
        return list(self._strips.values())

    def _begin(self, strip: Strip) -> None:
        self._strips[strip.key] = strip

    def _end(self, key: str, at: datetime, page: int, outcome: str, **more: Any) -> None:
        strip = self._strips.get(key)
        if strip is not None and strip.end is None:
            details = {**strip.details, **more} if more else strip.details
            self._strips[key] = replace(
                strip, end=at, closed_on=page, outcome=outcome, details=details
            )

    def open_run(self, page: Page, body: dict[str, Any], at: datetime) -> None:
        run = self._strips["run"]
        self._strips["run"] = replace(run, content={"intent": body.get("intent", "")})
        if body.get("plan") is not None:
            self._planning = True
            self._begin(Strip("plan", "run", "plan", page.run_id, at))

    def post(self, page: Page, body: dict[str, Any], at: datetime) -> None:
        manifest = body["manifest"]
        if self._planning:
            steps = int(str(self._strips["plan"].details.get("steps", 0))) + 1
            plan = replace(self._strips["plan"], details={"steps": steps})
            self._strips["plan"] = replace(plan, end=at, closed_on=page.seq, outcome="planned")
        self._unsettled.add(page.task_id)
        details: dict[str, JsonValue] = {
            "executor": manifest.get("executor"),
            "model": manifest.get("model"),
            "needs": manifest.get("needs", []),
        }
        self._begin(
            Strip(
                key=f"task/{page.task_id}",
                parent="run",
                kind="task",
                name=page.task_id,
                start=at,
                task_id=page.task_id,
                details=details,
                content={"objective": manifest["objective"]},
            )
        )
        if manifest.get("approve_before_claim"):
            self.wait_for(page, at, "approval")

    def hand_over(self, page: Page, body: dict[str, Any], at: datetime) -> None:
        envelope = body["envelope"]
        names = ("source", "target", "tokens", "counter", "schema_id", "confidence")
        self._begin(
            Strip(
                key=f"handoff/{page.seq}",
                parent=f"task/{page.task_id}",
                kind="handoff",
                name=f"{envelope['source']} to {envelope['target']}",
                start=at,
                end=at,
                closed_on=page.seq,
                outcome="handed over",
                task_id=page.task_id,
                details={name: envelope.get(name) for name in names},
                content={"payload": envelope.get("payload")},
            )
        )

    def claim(self, page: Page, body: dict[str, Any], at: datetime) -> None:
        self._planning = False
        self._attempts[page.task_id] = f"attempt/{page.seq}"
        task = self._strips[f"task/{page.task_id}"]
        details: dict[str, JsonValue] = {
            "owner": body["owner"],
            "attempt": body["attempt"],
            "claim": page.seq,
            "executor": task.details.get("executor"),
            "model": task.details.get("model"),
        }
        self._begin(
            Strip(
                key=f"attempt/{page.seq}",
                parent=f"task/{page.task_id}",
                kind="attempt",
                name=f"{body['attempt']} by {body['owner']}",
                start=at,
                task_id=page.task_id,
                details=details,
            )
        )

    def let_go(self, page: Page, at: datetime, outcome: str, **more: Any) -> None:
        """End the attempt that goes on, if there is one."""
        key = self._attempts.pop(page.task_id, None)
        if key is None:
            return
        self._end(key, at, page.seq, outcome, **more)
        for call in self._calls.pop(page.task_id, {}).values():
            # Nobody knows what became of a call that was never settled.
            self._end(call, at, page.seq, "unknown")

    def submit(self, page: Page, body: dict[str, Any], at: datetime) -> None:
        record, observed = body["record"], body.get("observed")
        seen = observed if isinstance(observed, dict) else {}
        fence = seen.get("fence")
        found = {
            "confidence": record.get("confidence"),
            "tokens": record.get("tokens_used", 0),
            "requests": record.get("requests_made", 0),
            "cost_usd": record.get("cost_usd"),
            "fence": fence.get("kind") if isinstance(fence, dict) else None,
        }
        if seen.get("model"):
            found["model"] = seen["model"]
        self.let_go(page, at, record.get("status", "needs_review"), **found)
        self._submitted[page.task_id] = at

    def judge(self, page: Page, body: dict[str, Any], at: datetime) -> None:
        start = self._submitted.get(page.task_id, at)
        for number, finding in enumerate((body.get("verdict") or {}).get("findings", ())):
            took = timedelta(milliseconds=finding.get("elapsed_ms", 0))
            self._begin(
                Strip(
                    key=f"gate/{page.seq}/{number}",
                    parent=f"task/{page.task_id}",
                    kind="gate",
                    name=finding["gate"],
                    start=start,
                    end=min(at, start + took),
                    closed_on=page.seq,
                    outcome=finding["outcome"],
                    task_id=page.task_id,
                    details={
                        "reason": finding["reason"],
                        "cached": finding.get("cached", False),
                        "by": body["actor"],
                    },
                    content={"evidence": finding.get("evidence", "")},
                )
            )

    def wait_for(self, page: Page, at: datetime, what: str) -> None:
        """Begin to wait for a person, unless the task waits already."""
        if page.task_id in self._waits:
            return
        key, parent = f"wait/{page.seq}", f"task/{page.task_id}"
        self._waits[page.task_id] = key
        self._begin(Strip(key, parent, "wait", what, at, task_id=page.task_id))

    def answered(self, page: Page, at: datetime, by: str, how: str = "answered") -> None:
        """End the wait that goes on, if there is one."""
        key = self._waits.pop(page.task_id, None)
        if key is not None:
            self._end(key, at, page.seq, how, by=by)

    def reserve(self, page: Page, body: dict[str, Any], at: datetime) -> None:
        self._calls.setdefault(page.task_id, {})[body["key"]] = f"call/{page.seq}"
        operation, name = called(body["key"], body.get("purpose", ""))
        details: dict[str, JsonValue] = {
            "key": body["key"],
            "operation": operation,
            "reserved": body.get("amount", {}),
        }
        self._begin(
            Strip(
                key=f"call/{page.seq}",
                # A judge calls after the attempt.
                parent=self._attempts.get(page.task_id, f"task/{page.task_id}"),
                kind="call",
                name=name,
                start=at,
                task_id=page.task_id,
                details=details,
            )
        )

    def settle_call(self, page: Page, body: dict[str, Any], at: datetime) -> None:
        key = self._calls.get(page.task_id, {}).pop(body["key"], None)
        if key is None:
            return
        result = body.get("result")
        usage, model = usage_of(result), answered_by(result)
        more: dict[str, JsonValue] = {"answered_by": model} if model else {}
        if usage is not None:
            more |= {"tokens_in": usage.tokens_in, "tokens_out": usage.tokens_out}
        spent = body.get("spent", {})
        self._end(key, at, page.seq, fault_of(result) or "settled", spent=spent, **more)

    def settle(self, page: Page, body: dict[str, Any], at: datetime, word: str) -> None:
        self._unsettled.discard(page.task_id)
        more = {"reason": body["reason"]} if body.get("reason") else {}
        self._end(f"task/{page.task_id}", at, page.seq, word, **more)


def _worst(found: Iterable[Strip]) -> str:
    outcomes = {strip.outcome for strip in found if strip.kind == "task"}
    for word in ("failed", "cancelled", "skipped", "accepted"):
        if word in outcomes:
            return word
    return _FRESH


def _let_go(outcome: str) -> "_Told":
    return lambda story, page, _, at: story.let_go(page, at, outcome)


def _to_a_person(what: str) -> "_Told":
    def told(story: _Story, page: Page, body: dict[str, Any], at: datetime) -> None:
        story.let_go(page, at, what)
        story.judge(page, body, at)
        story.wait_for(page, at, what)

    return told


def _answer(story: _Story, page: Page, body: dict[str, Any], at: datetime) -> None:
    story.answered(page, at, body["actor"])


def _verdict(story: _Story, page: Page, body: dict[str, Any], at: datetime) -> None:
    story.let_go(page, at, page.kind.removeprefix("task_"))
    story.judge(page, body, at)
    # Without a verdict nobody decided: the wait ran out, or was called off.
    how = "answered" if body.get("verdict") else "ended"
    story.answered(page, at, body["actor"], how)
    word = _SETTLES.get(page.kind)
    if word:
        story.settle(page, body, at, word)


_Told = Callable[[_Story, Page, dict[str, Any], datetime], None]
_TOLD: Final[Mapping[str, _Told]] = {
    "run_opened": _Story.open_run,
    "task_posted": _Story.post,
    "task_approved": _answer,
    "handoff_made": _Story.hand_over,
    "task_claimed": _Story.claim,
    "claim_released": _let_go("released"),
    "claim_expired": _let_go("expired"),
    "spend_reserved": _Story.reserve,
    "spend_settled": _Story.settle_call,
    "record_submitted": _Story.submit,
    "verdict_deferred": _Story.judge,
    "task_returned": _verdict,
    "task_escalated": _to_a_person("decision"),
    "question_asked": _to_a_person("question"),
    "question_answered": _answer,
    "scope_widened": _answer,
    "task_accepted": _verdict,
    "task_failed": _verdict,
    "task_cancelled": _verdict,
    "task_skipped": _verdict,
}
"""Kind of page -> what it begins or ends."""
