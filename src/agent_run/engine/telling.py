"""What is told to people while work goes on: one line each, as it happens."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal, TypeAlias

from agent_run.contract.base import RunId, format_duration
from agent_run.contract.claim import ClaimCheck
from agent_run.contract.verdict import Finding, Outcome, Verdict
from agent_run.ledger.state import Status, TaskState
from agent_run.ledger.words import named

_WORDS: Final[Mapping[Outcome, str]] = {
    "pass": "PASS",
    "inconclusive": "UNDECIDED",
    "fail": "FAIL",
}
_ORDER: Final = tuple(_WORDS)
"""The better word first: of all that one gate found, the worst is told."""

Topic: TypeAlias = Literal[
    "claim",
    "fence",
    "base",
    "edit",
    "refused",
    "test",
    "summary",
    "verify",
    "wait",
    "note",
    "demo",
]


@dataclass(frozen=True, slots=True)
class Told:
    """One thing that happened, for a person who watches."""

    topic: Topic
    text: str


Listener: TypeAlias = Callable[[Told], None]


def to_nobody(_told: Told) -> None:
    """Listen to nothing."""


def tell_claim(tell: Listener, check: ClaimCheck, ttl: timedelta) -> None:
    """Tell who took which claim."""
    said = f"task={check.task_id} owner={check.owner} ttl={format_duration(ttl)}"
    tell(Told("claim", f"{said} attempt={check.attempt} claim={check.claim}"))


def tell_command(tell: Listener, finding: Finding) -> None:
    """Tell what came of the commands that a gate ran."""
    for command in finding.commands:
        took = "cached" if finding.cached else f"{finding.elapsed_ms / 1_000:.1f}s"
        tell(Told("test", f"{command} ........ {_WORDS[finding.outcome]} {took}"))


def tell_verdict(tell: Listener, run_id: RunId, task: TaskState, verdict: Verdict) -> None:
    """Tell what each gate said, and what followed."""
    worst: dict[str, Outcome] = {}
    for finding in verdict.findings:
        so_far = worst.get(finding.gate, "pass")
        worst[finding.gate] = max(so_far, finding.outcome, key=_ORDER.index)
    gates = "  ".join(f"{gate} {_WORDS[how]}" for gate, how in worst.items())
    tell(Told("verify", f"{gates}  -> {_outcome(run_id, task)}"))


def _outcome(run_id: RunId, task: TaskState) -> str:
    match task.status:
        case Status.READY:
            return "returned"
        case Status.ACCEPTED if task.result:
            return f"accepted  agent-run apply {named(run_id, task.manifest.task_id)}"
        case Status.SUBMITTED:
            return "undecided"
        case status:
            return str(status)
