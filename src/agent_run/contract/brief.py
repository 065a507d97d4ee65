"""The brief: everything an executor is told about one attempt at one task.

The manifest says what is wanted for good; the brief adds what is known by now: which attempt
this is, what the gates said before, what people answered, what earlier tasks handed over.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final, Generic

from pydantic import Field, JsonValue
from typing_extensions import TypeVar

from agent_run.contract.base import Contract, RunId, TaskId, Whole
from agent_run.contract.budget import Budget
from agent_run.contract.envelope import Envelope
from agent_run.contract.manifest import Manifest
from agent_run.contract.verdict import Verdict

InputT = TypeVar("InputT", default=JsonValue)

_LONGEST_EVIDENCE: Final = 4_000


class Exchange(Contract):
    """A question that was asked before, and what a person answered."""

    question: str
    answer: JsonValue


class Brief(Contract, Generic[InputT]):
    """One attempt, as its executor sees it."""

    task_id: TaskId
    run_id: RunId
    trace_id: str = ""
    attempt: Whole = Field(default=1, ge=1)
    claim: Whole = Field(default=1, ge=1)
    manifest: Manifest
    input: InputT | None = None
    """The typed payload: the manifest's own, or what the needed tasks handed over."""
    envelopes: tuple[Envelope, ...] = ()
    earlier: tuple[Verdict, ...] = ()
    """What was found about the attempts before this one."""
    answers: tuple[Exchange, ...] = ()
    remaining: Budget = Budget()
    """What this attempt may still spend."""

    @property
    def objective(self) -> str:
        return self.manifest.objective

    @property
    def intent(self) -> str:
        return self.manifest.intent

    @property
    def constraints(self) -> tuple[str, ...]:
        return self.manifest.constraints

    def to_markdown(self) -> str:
        """Return the brief as text for a person or a model."""
        return "\n".join(_lines(self)).rstrip() + "\n"


def _lines(brief: Brief[Any]) -> Iterator[str]:
    manifest = brief.manifest
    yield f"# Task {brief.task_id}, attempt {brief.attempt}"
    yield from ("", manifest.objective, "")
    if manifest.intent and manifest.intent != manifest.objective:
        yield from ("## What it is for", "", manifest.intent, "")
    yield from _section("Constraints", manifest.constraints)
    yield from _scope(manifest)
    yield from _section("How it will be judged", _checks(manifest))
    yield from _section("Notes from the planner", manifest.handoff_notes)
    yield from _payload(brief)
    yield from _section("Answers from people", _answers(brief))
    yield from _history(brief)
    yield from _limits(brief)


def _scope(manifest: Manifest) -> Iterator[str]:
    if manifest.allowed_paths:
        yield from _section("Files you may write", map(_code, manifest.allowed_paths))
    else:
        yield from ("## Files you may write", "", "None. Write no file of the project.", "")
    yield from _section("Files you may never change", map(_code, manifest.protected_paths))


def _checks(manifest: Manifest) -> Iterator[str]:
    for check in manifest.verification:
        yield f"{_code(check.run)} must succeed in a clean checkout of your result."
    for check in manifest.invariants:
        yield f"{_code(check.run)} must succeed before and after your work."


def _payload(brief: Brief[Any]) -> Iterator[str]:
    if brief.input is not None:
        shown = json.dumps(_plain(brief.input), indent=2, ensure_ascii=False)
        yield from ("## Input", "", "```json", shown, "```", "")
    for envelope in brief.envelopes:
        shown = json.dumps(envelope.payload, indent=2, ensure_ascii=False)
        yield from (f"## From {envelope.source}", "", "```json", shown, "```", "")
        for warning in envelope.warnings:
            yield from (f"Warning: {warning}", "")


def _plain(value: object) -> object:
    return value.model_dump(mode="json") if isinstance(value, Contract) else value


def _answers(brief: Brief[Any]) -> Iterator[str]:
    for said in brief.answers:
        answer = said.answer if isinstance(said.answer, str) else json.dumps(said.answer)
        yield f"{said.question}: {answer}" if said.question else str(answer)


def _history(brief: Brief[Any]) -> Iterator[str]:
    for number, verdict in enumerate(brief.earlier, start=1):
        yield from (f"## What was wrong with attempt {number}", "")
        for finding in verdict.failures:
            about = ", ".join(map(_code, (*finding.paths, *finding.commands)))
            yield f"- {finding.gate}: {finding.reason}" + (f" ({about})" if about else "")
            yield from _quoted(finding.evidence)
        yield ""


def _quoted(evidence: str) -> Iterator[str]:
    left_out = len(evidence) - _LONGEST_EVIDENCE
    if left_out > 0:
        yield f"  > [the first {left_out} characters are left out here; the ledger has them]"
    for line in evidence[-_LONGEST_EVIDENCE:].splitlines():
        yield f"  > {line}"


def _limits(brief: Brief[Any]) -> Iterator[str]:
    budget = brief.remaining
    limits = [
        f"at most {budget.max_tokens} tokens" if budget.max_tokens else "",
        f"at most ${budget.max_cost_usd}" if budget.max_cost_usd else "",
        f"at most {budget.time_budget_sec} seconds" if budget.time_budget_sec else "",
    ]
    yield from _section("Limits", filter(None, limits))


def _section(title: str, items: Iterable[str]) -> Iterator[str]:
    lines = [f"- {item}" for item in items]
    if lines:
        yield from (f"## {title}", "", *lines, "")


def _code(text: str) -> str:
    return f"`` {text} ``" if "`" in text else f"`{text}`"
