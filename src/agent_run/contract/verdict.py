"""The verdict: what the gates found. Given by someone other than the executor."""

from typing import Any, Final, Literal, TypeAlias

from pydantic import Field, ModelWrapValidatorHandler, computed_field, model_validator

from agent_run.contract.base import (
    Contract,
    Flag,
    Text,
    Whole,
)

Outcome: TypeAlias = Literal["pass", "fail", "inconclusive"]
Reason: TypeAlias = Literal[
    "verified",
    "verification_failed",
    "out_of_scope",
    "tampered",
    "record_mismatch",
    "no_change",
    "no_evidence",
    "invalid_record",
    "executor_failed",
    "crashed",
    "claim_lost",
    "timeout",
    "over_budget",
    "low_confidence",
    "invariant_broken",
    "review_rejected",
]


PERSON_GATE: Final = "review"
"""The gate that a person's own verdict is filed under; no other gate may have this name."""


class Finding(Contract):
    """One gate's answer, with the evidence that lets a reader check it."""

    gate: str = Field(min_length=1, max_length=100)
    outcome: Outcome
    reason: Reason
    evidence: Text = ""
    paths: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    elapsed_ms: Whole = Field(default=0, ge=0)
    cached: Flag = False
    """Whether the answer was reused because the very same thing was judged before."""


class Verdict(Contract):
    """All findings on one record. Without a finding there is no verdict."""

    findings: tuple[Finding, ...] = Field(min_length=1)
    tree: str | None = Field(default=None, max_length=64)
    """The git tree that was judged. `None` means that no files were judged."""

    @property
    def by_a_person(self) -> bool:
        """Whether a person gave it."""
        return any(finding.gate == PERSON_GATE for finding in self.findings)

    @model_validator(mode="wrap")
    @classmethod
    def _agree_with_itself(
        cls, value: Any, handler: ModelWrapValidatorHandler["Verdict"]
    ) -> "Verdict":
        """Read `passed` back as written, and refuse one that the findings do not bear out."""
        if not isinstance(value, dict) or "passed" not in value:
            return handler(value)
        said = value["passed"]
        verdict = handler({key: item for key, item in value.items() if key != "passed"})
        if verdict.passed is not said:
            msg = f"passed is {said!r}, but the findings say {verdict.passed}"
            raise ValueError(msg)
        return verdict

    @computed_field  # type: ignore[prop-decorator]  # pydantic wants it on the property
    @property
    def passed(self) -> bool:
        return self.outcome == "pass"

    @property
    def outcome(self) -> Outcome:
        outcomes = {finding.outcome for finding in self.findings}
        if "fail" in outcomes:
            return "fail"
        return "inconclusive" if "inconclusive" in outcomes else "pass"

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The findings that keep this verdict from passing."""
        return tuple(finding for finding in self.findings if finding.outcome != "pass")
