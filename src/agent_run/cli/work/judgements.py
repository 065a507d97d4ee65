"""What was judged about a task, in the order in which it was said: every verdict, none twice.

The state of a task keeps what its next attempt must know; a reader wants to see which
attempt each verdict was about, and who gave it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from agent_run.cli.work.wording import dumped
from agent_run.contract.base import RunId, TaskId
from agent_run.contract.verdict import Verdict
from agent_run.desk import Desk
from agent_run.ledger.events import (
    AnyEvent,
    TaskAccepted,
    TaskClaimed,
    TaskEscalated,
    TaskFailed,
    TaskReturned,
    VerdictDeferred,
)
from agent_run.ledger.words import moment, stamp

_LED_TO: Final[Mapping[str, str]] = {
    "verdict_deferred": "asked again",
    "task_accepted": "accepted",
    "task_returned": "returned",
    "task_escalated": "to a person",
    "task_failed": "failed",
}
_KINDS: Final = frozenset({*_LED_TO, "task_claimed"})


@dataclass(frozen=True, slots=True)
class Judgement:
    """One verdict, which attempt it was about, and what followed."""

    attempt: int
    verdict: Verdict
    event: AnyEvent

    def sentence(self) -> str:
        """Return in a few words who said what about which attempt."""
        event = self.event
        led = f"{_LED_TO[event.kind]} by {event.actor}, {moment(event.at)}"
        return f"{self.verdict.outcome} on attempt {self.attempt}, {led}"


def judgements(desk: Desk, run_id: RunId, task_id: TaskId) -> list[Judgement]:
    """Return every verdict about a task, the first one first."""
    attempt, found = 0, list[Judgement]()
    for page in desk.pages(run_id):
        if page.task_id != task_id or page.kind not in _KINDS:
            continue
        match page.event():
            case TaskClaimed(attempt=number):
                attempt = number
            case (
                VerdictDeferred(verdict=verdict)
                | TaskAccepted(verdict=verdict)
                | TaskReturned(verdict=verdict)
                | TaskEscalated(verdict=verdict)
                | TaskFailed(verdict=verdict)
            ) as event if verdict is not None:
                found.append(Judgement(attempt, verdict, event))
            case _:
                continue  # a person was asked without a verdict
    return found


def judged_json(judged: Sequence[Judgement]) -> dict[str, JsonValue]:
    """Return every verdict as data, under the key `verdicts`."""
    return {
        "verdicts": [
            {
                "attempt": one.attempt,
                "event": one.event.kind,
                "by": one.event.actor,
                "at": stamp(one.event.at),
                "verdict": dumped(one.verdict),
            }
            for one in judged
        ]
    }
