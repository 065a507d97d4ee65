"""What people decided about the steps of a draft: who, when, and in which words."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pydantic import JsonValue

from agent_run.contract.verdict import Finding
from agent_run.engine.judge import JUDGE
from agent_run.ledger.events import TaskAccepted, TaskFailed, TaskReturned
from agent_run.ledger.pages import Page

_PERSON: Final = "review"
_KINDS: Final = frozenset({"task_accepted", "task_returned", "task_failed"})


@dataclass(frozen=True, slots=True)
class Decision:
    """A person's word about one step; it counts before what the checks say."""

    by: str
    at: datetime
    approved: bool
    reason: str = ""
    """Empty where an approval came without one."""

    def sentence(self) -> str:
        """Return who decided what, when and why."""
        word = "approved" if self.approved else "rejected"
        said = f": {self.reason}" if self.reason else ""
        return f"{word} by {self.by} on {self.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC{said}"

    def as_json(self) -> dict[str, JsonValue]:
        """Return the decision as data."""
        return {
            "outcome": "approved" if self.approved else "rejected",
            "by": self.by,
            "at": self.at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
            "reason": self.reason,
        }


def decisions_of(pages: Iterable[Page]) -> dict[str, Decision]:
    """Return the newest decision about each task that a person has decided about."""
    found: dict[str, Decision] = {}
    for page in pages:
        if page.kind not in _KINDS:
            continue
        event = page.event()
        decision = _decision(event)  # type: ignore[arg-type]  # the kinds say which it is
        if decision is not None:
            found[page.task_id] = decision
    return found


def _decision(event: TaskAccepted | TaskReturned | TaskFailed) -> Decision | None:
    findings = event.verdict.findings if event.verdict else ()
    said = next((one for one in findings if one.gate == _PERSON), None)
    if said is None or event.actor == JUDGE:  # a model that reviews speaks through the judge
        return None
    approved = said.outcome == "pass"
    reason = _after_approval(said, event.actor) if approved else said.evidence
    return Decision(event.actor, event.at, approved, reason)


def _after_approval(said: Finding, by: str) -> str:
    return said.evidence.removeprefix(f"approved by {by}").removeprefix(":").strip()
