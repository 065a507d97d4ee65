"""Words for people: times, names, and what a verdict holds against a piece of work.

Every sentence that tells a time or a finding uses these, so that all of them read alike.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

from agent_run.contract.base import RunId, TaskId
from agent_run.contract.verdict import Finding, Reason, Verdict

MEANINGS: Final[Mapping[Reason, str]] = {
    "verified": "every gate passed",
    "verification_failed": "a check failed",
    "out_of_scope": "it changed what it may not change",
    "tampered": "it changed what protects the checks",
    "record_mismatch": "the record does not agree with what was seen",
    "no_change": "nothing was changed",
    "no_evidence": "there is too little to judge it by",
    "invalid_record": "the record cannot be used",
    "executor_failed": "the executor failed",
    "crashed": "whoever worked on it was not heard of any more",
    "claim_lost": "the claim was lost",
    "timeout": "it took too long",
    "over_budget": "the budget does not suffice",
    "low_confidence": "the executor is not sure enough",
    "invariant_broken": "what must hold before and after does not hold",
    "review_rejected": "a reviewer rejected it",
}
"""Each reason -> what it means."""
_LONGEST: Final = 200


def moment(at: datetime | None) -> str:
    """Return a time as people read it, in UTC; nothing for none."""
    return "" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"


def stamp(at: datetime | None) -> str | None:
    """Return a time as programs read it."""
    return None if at is None else at.isoformat().replace("+00:00", "Z")


def named(run_id: RunId, task_id: TaskId) -> str:
    """Return how a task is called on a command line."""
    return task_id if run_id == task_id else f"{run_id}/{task_id}"


def widening(paths: Iterable[str]) -> str:
    """Return the options that allow `paths`, safe to be copied whatever the paths are."""
    quoted = ("'" + path.replace("'", "'\"'\"'") + "'" for path in paths)
    return "".join(f" --widen {path}" for path in quoted)


def against(verdict: Verdict) -> str:
    """Return what keeps the verdict from passing, in words; the same is said once."""
    return "; ".join(dict.fromkeys(map(said_by, verdict.failures)))


def said_by(finding: Finding) -> str:
    """Return what one gate found: what it means, what it is about, and the evidence."""
    evidence = first_line(finding.evidence)
    if finding.reason == "low_confidence" and evidence:
        return evidence
    names = (*finding.commands, *finding.paths)
    about = first_line(", ".join(names))
    if about and evidence and not all(name in evidence for name in names):
        evidence = f"{about} ({evidence})"
    return ": ".join(filter(None, (MEANINGS[finding.reason], evidence or about)))


def counted(number: int, noun: str, several: str = "") -> str:
    """Return `1 page`, `2 pages`; `several` is the plural of a noun that has its own."""
    return f"{number} {noun if number == 1 else several or noun + 's'}"


def first_line(text: str) -> str:
    """Return the first line of `text` that says something; a long one is cut, and shows it."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."
