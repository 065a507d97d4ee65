"""What a checker says about a draft: remarks with places, one check, one record.

A check is a value: the same draft, rules and version give the same `cache_key`, so a kept
result can stand in for a new one.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from agent_run.contract.record import NextAction, Record
from agent_run.ledger.words import counted

Severity: TypeAlias = Literal["error", "warning", "suggestion"]
Status: TypeAlias = Literal["passed", "failed", "blocked"]

MOST_EVIDENCE: Final = 200
"""A record carries so many remarks, the gravest; its last evidence counts the others."""
_GRAVITY: Final[dict[Severity, int]] = {"error": 0, "warning": 1, "suggestion": 2}
_LONGEST_QUOTE: Final = 200
_NEXT: Final[dict[Status, NextAction]] = {
    "passed": "continue",
    "failed": "revise",
    "blocked": "escalate",
}


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing a reader of the draft should look at."""

    rule: str
    severity: Severity
    line: int
    column: int
    """Counted from 1, in characters of the decoded draft."""
    quote: str
    """The words the remark is about. Empty means the draft as a whole."""
    message: str
    suggestion: str | None = None
    """What to write instead. `None` means that there is no one answer."""

    def __str__(self) -> str:
        advice = f" ({self.suggestion})" if self.suggestion else ""
        return f"{self.line}:{self.column} {self.severity} {self.rule}: {self.message}{advice}"


@dataclass(frozen=True, slots=True)
class Check:
    """What one checker found in one draft, and how sure it is of its status."""

    status: Status
    confidence: float
    notes: str
    remarks: tuple[Remark, ...]
    cache_key: str
    """Digest of the draft, the rules and the version of the checker."""
    whole: bool = True
    """Everything was looked at. If not, another time may tell more, and it is not kept."""


def quoted(text: str) -> str:
    """Return `text` as a remark quotes it: on one line, and told when it is cut."""
    line = " ".join(text[: _LONGEST_QUOTE * 2].split())
    if len(text) <= _LONGEST_QUOTE:
        return line
    return f"{line[:_LONGEST_QUOTE]}... ({len(text)} characters)"


def digest_of(*parts: object) -> str:
    """Return one digest of `parts`, which no other split into parts shares."""
    text = json.dumps(parts, ensure_ascii=False, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def blocked(rule: str, reason: str, *, whole: bool = True) -> Check:
    """Return the check of a draft that could not be looked at, with the one reason why.

    It is not `whole` if another time may tell more about the very same draft.
    """
    remark = Remark(rule, "error", 1, 1, "", reason)
    return Check("blocked", 0.0, reason, (remark,), "", whole=whole)


def status_of(remarks: Iterable[Remark]) -> Status:
    """Return `failed` when a remark is an error; warnings and suggestions do not fail."""
    return "failed" if any(one.severity == "error" for one in remarks) else "passed"


def in_order(remarks: Iterable[Remark]) -> tuple[Remark, ...]:
    """Return `remarks` in the order of the text."""
    return tuple(sorted(remarks, key=lambda one: (one.line, one.column, one.rule, one.quote)))


def tally(remarks: Sequence[Remark]) -> str:
    """Return one sentence that counts `remarks` by severity."""
    counts = Counter(one.severity for one in remarks)
    order: tuple[Severity, ...] = ("error", "warning", "suggestion")
    said = [counted(counts[name], name) for name in order if counts[name]]
    return ", ".join(said) if said else "nothing to remark"


def gravest(remarks: Sequence[Remark]) -> tuple[Remark, ...]:
    """Return as many remarks as a record carries, in the order in which they came."""
    if len(remarks) <= MOST_EVIDENCE:
        return tuple(remarks)
    by_gravity = sorted(range(len(remarks)), key=lambda at: _GRAVITY[remarks[at].severity])
    return tuple(remarks[at] for at in sorted(by_gravity[:MOST_EVIDENCE]))


def to_execution(step_id: str, check: Check, elapsed_ms: int) -> dict[str, Any]:
    """Return `check` as the execution result of a checking step, key for key.

    Of what nobody could look at nobody is sure: the confidence of what is blocked is 0.
    """
    return {
        "step_id": step_id,
        "status": check.status,
        "confidence": 0.0 if check.status == "blocked" else check.confidence,
        "notes": check.notes,
        "evidence": _evidence(check.remarks),
        "tokens_used": 0,
        "elapsed_ms": elapsed_ms,
        "next_action": _NEXT[check.status],
    }


def to_record(step_id: str, check: Check, elapsed_ms: int) -> Record:
    """Return `check` as the record of the step `step_id`; what is blocked has no confidence."""
    said = to_execution(step_id, check, elapsed_ms)
    if check.status == "blocked":
        del said["confidence"]
    return Record.model_validate(said)


def _evidence(remarks: Sequence[Remark]) -> list[dict[str, str]]:
    evidence = [
        {
            "type": "link" if one.rule.startswith("links.") else "quote",
            "content": _content(one),
        }
        for one in gravest(remarks)
    ]
    left = len(remarks) - len(evidence)
    if left > 0:
        told = f"{counted(left, 'more remark')}, {len(remarks)} in all; these are the gravest"
        evidence.append({"type": "note", "content": told})
    return evidence


def _content(remark: Remark) -> str:
    if not remark.quote or repr(remark.quote) in remark.message:
        return str(remark)
    return f"{remark} - {remark.quote!r}"
