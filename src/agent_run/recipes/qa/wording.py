"""The words in which every form of the report says how things stand."""

from collections.abc import Mapping
from typing import Final

from agent_run.recipes.qa.reporting import Report, StepReport

VERDICTS: Final[Mapping[str, str]] = {
    "pass": "pass",
    "fail": "FAIL",
    "person": "needs a person",
}
_OUTCOMES: Final[Mapping[str, str]] = {
    "passed": "passed",
    "failed": "FAILED",
    "person": "needs a person",
}
_COUNTED: Final = {"pass": "pass", "fail": "fail", "person": "for a person"}


def counts(report: Report) -> str:
    """Return in one sentence how the drafts stand."""
    found = [draft.status for draft in report.drafts]
    told = ", ".join(
        f"{found.count(one)} {word}" for one, word in _COUNTED.items() if one in found
    )
    plural = "" if len(found) == 1 else "s"
    said = f"{len(found)} draft{plural}: {told}"
    if report.cache_hits:
        said += f"; {report.cache_hits} of {len(report.steps)} checks reused from earlier"
    return said


def standing(step: StepReport) -> str:
    """Return what became of a step; what a person decided is not what a check found."""
    if step.decision is None:
        return _OUTCOMES[step.outcome]
    return f"{'approved' if step.decision.approved else 'rejected'} by {step.decision.by}"


def how(step: StepReport) -> str:
    """Return how sure the answer is, who gave it, and what it took."""
    result = step.result
    sure = f"Confidence {result['confidence']:.3g} of {step.step.min_confidence:g} wanted"
    by = f", decided by {step.decided_by}" if step.decided_by else ", not decided"
    took = "reused from earlier" if step.cached else f"{result['elapsed_ms']} ms"
    tokens = f", {result['tokens_used']} tokens" if result["tokens_used"] else ""
    return f"{sure}{by}; {step.attempts} of {step.step.max_attempts} attempts, {took}{tokens}."


def evidence(step: StepReport) -> tuple[str, ...]:
    """Return what the check rests on, a line each."""
    told = step.result["evidence"]
    listed = told if isinstance(told, list) else []
    return tuple(str(one["content"]) for one in listed if isinstance(one, dict))
