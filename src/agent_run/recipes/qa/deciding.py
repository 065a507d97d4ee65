"""What people decided about the steps of a draft: who, when, and in which words."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from pydantic import JsonValue

from agent_run.contract.base import Contract, RunId
from agent_run.contract.verdict import PERSON_GATE, Finding
from agent_run.engine.judge import JUDGE
from agent_run.ledger.events import TaskAccepted, TaskFailed, TaskReturned
from agent_run.ledger.pages import Page

_KINDS: Final = frozenset({"task_accepted", "task_returned", "task_failed"})


class Decision(Contract):
    """A person's word about one step; it counts before what the checks say."""

    by: str
    at: datetime
    approved: bool
    reason: str = ""
    """Empty where an approval came without one."""
    run_id: RunId | None = None
    """The earlier run of the same checks that it was given in. `None` means this one."""

    def sentence(self) -> str:
        """Return who decided what, when and why."""
        word = "approved" if self.approved else "rejected"
        said = f": {self.reason}" if self.reason else ""
        where = f" in {self.run_id}" if self.run_id else ""
        when = f"{self.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        return f"{word} by {self.by} on {when}{where}{said}"

    def as_json(self) -> dict[str, JsonValue]:
        """Return the decision as data."""
        return {
            "outcome": "approved" if self.approved else "rejected",
            "by": self.by,
            "at": self.at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
            "reason": self.reason,
            "run_id": self.run_id,
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
    said = next((one for one in findings if one.gate == PERSON_GATE), None)
    if said is None or event.actor == JUDGE:  # a model that reviews speaks through the judge
        return None
    approved = said.outcome == "pass"
    reason = _after_approval(said, event.actor) if approved else said.evidence
    return Decision(by=event.actor, at=event.at, approved=approved, reason=reason)


def _after_approval(said: Finding, by: str) -> str:
    return said.evidence.removeprefix(f"approved by {by}").removeprefix(":").strip()
