"""The report: how every draft stands, folded from the ledger and nothing else.

A draft fails when a check failed and is sure of it; it needs a person when something is not
decided; it passes otherwise. What a person decided wins over what the checks said.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from pydantic import JsonValue

from agent_run.contract.base import RunId
from agent_run.contract.record import Record
from agent_run.desk import Desk
from agent_run.ledger.state import RunState, Status, TaskState
from agent_run.recipes.qa.checklist import QaPlan, Step
from agent_run.recipes.qa.planning import REFLECT, SUMMARIZE, Dossier, dossier_of

Outcome: TypeAlias = Literal["passed", "failed", "person"]
Verdict: TypeAlias = Literal["pass", "fail", "person"]

_OVER: Final = frozenset({"over_budget", "timeout"})
_SEED_STATUSES: Final = frozenset({"passed", "failed", "blocked"})


@dataclass(frozen=True, slots=True)
class StepReport:
    """What became of one step."""

    step: Step
    outcome: Outcome
    """`person` means that it is not decided yet."""
    decided_by: str
    """`checks`, or the name of a person; empty while it is not decided."""
    why: str
    cached: bool
    attempts: int
    over: tuple[str, ...]
    """What of the budget did not suffice."""
    warnings: tuple[str, ...]
    remarks: tuple[dict[str, Any], ...]
    result: dict[str, JsonValue]
    """The execution result: status, confidence, notes, evidence, and what it took."""


@dataclass(frozen=True, slots=True)
class DraftReport:
    """What became of one draft."""

    name: str
    run_id: RunId
    trace_id: str
    plan: QaPlan
    steps: tuple[StepReport, ...]
    proposals: tuple[str, ...] = ()
    """What the reflection on the results proposes."""
    summary: str = ""

    @property
    def status(self) -> Verdict:
        outcomes = {step.outcome for step in self.steps}
        if "failed" in outcomes:
            return "fail"
        return "person" if "person" in outcomes else "pass"

    @property
    def over(self) -> tuple[str, ...]:
        """Everything that is over budget, in words."""
        steps = (f"{one.step.id}: {over}" for one in self.steps for over in one.over)
        return (*steps, *_overall(self.plan, self.steps))


@dataclass(frozen=True, slots=True)
class Report:
    """What became of all drafts."""

    drafts: tuple[DraftReport, ...]

    @property
    def status(self) -> Verdict:
        statuses = {draft.status for draft in self.drafts}
        if "fail" in statuses:
            return "fail"
        return "person" if "person" in statuses else "pass"

    @property
    def steps(self) -> tuple[StepReport, ...]:
        return tuple(step for draft in self.drafts for step in draft.steps)

    @property
    def cache_hits(self) -> int:
        return sum(step.cached for step in self.steps)


def draft_report(
    desk: Desk, run_id: RunId, *, reused: frozenset[str] = frozenset()
) -> DraftReport:
    """Return how the draft of `run_id` stands; `reused` are steps that were done before."""
    run = desk.run(run_id)
    dossier = dossier_of(run, run_id)
    return DraftReport(
        name=dossier.name,
        run_id=run_id,
        trace_id=desk.trace_id(run_id),
        plan=dossier.plan,
        steps=tuple(_steps(run, dossier, reused)),
        proposals=_proposals(run),
        summary=_text(run, SUMMARIZE),
    )


def report_json(report: Report) -> dict[str, JsonValue]:
    """Return the whole report as data; plans and results are in the words of their schemas."""
    steps = report.steps
    return {
        "status": report.status,
        "drafts": [draft_json(draft) for draft in report.drafts],
        "totals": {
            "drafts": len(report.drafts),
            "steps": len(steps),
            "passed": sum(step.outcome == "passed" for step in steps),
            "failed": sum(step.outcome == "failed" for step in steps),
            "for_a_person": sum(step.outcome == "person" for step in steps),
            "cache_hits": report.cache_hits,
        },
    }


def draft_json(draft: DraftReport) -> dict[str, JsonValue]:
    """Return one draft's part of the report."""
    return {
        "draft": draft.name,
        "run_id": draft.run_id,
        "trace_id": draft.trace_id,
        "status": draft.status,
        "plan": plan_json(draft.plan),
        "results": [step.result for step in draft.steps],
        "steps": [_step_json(step) for step in draft.steps],
        "over_budget": list(draft.over),
        "proposals": list(draft.proposals),
        "summary": draft.summary,
    }


def plan_json(plan: QaPlan) -> dict[str, JsonValue]:
    """Return a plan in the words of its schema."""
    steps: list[JsonValue] = [
        {key: value for key, value in step.model_dump(mode="json").items() if value != ""}
        for step in plan.steps
    ]
    overall = plan.overall_budget.model_dump(mode="json")
    return {"plan_id": plan.plan_id, "steps": steps, "overall_budget": overall}


def _steps(run: RunState, dossier: Dossier, reused: frozenset[str]) -> Iterable[StepReport]:
    for step in dossier.plan.steps:
        task = run.tasks.get(step.id)
        if task is None:
            yield _not_begun(step)
            continue
        record = task.record
        output = record.output if record and isinstance(record.output, dict) else {}
        outcome, decided_by = _decision(step, task)
        remarks: Any = output.get("remarks", [])
        yield StepReport(
            step=step,
            outcome=outcome,
            decided_by=decided_by,
            why=_why(task, outcome),
            cached=bool(output.get("cached")) or step.id in reused,
            attempts=task.attempt,
            over=_over(task, output.get("over", [])),
            warnings=record.warnings if record else (),
            remarks=tuple(remarks),
            result=_result(step, record or Record(status="blocked", notes=task.note)),
        )


def _decision(step: Step, task: TaskState) -> tuple[Outcome, str]:
    person = _person(task)
    if task.status is Status.ACCEPTED:
        return "passed", person or "checks"
    if task.status is Status.FAILED and task.reason == "review_rejected":
        return "failed", person or "a person"
    record = task.record
    if task.status is Status.ESCALATED and record is not None and record.status == "failed":
        sure = not record.observed_only and (record.confidence or 0) >= step.min_confidence
        return ("failed", "checks") if sure else ("person", "")
    return "person", ""


def _person(task: TaskState) -> str:
    findings = task.verdict.findings if task.verdict else ()
    said = next((one.evidence for one in findings if one.gate == "review"), "")
    return said.removeprefix("approved by ").partition(" in spite of")[0]


def _why(task: TaskState, outcome: Outcome) -> str:
    said = task.record.notes if task.record else ""
    if outcome != "person" or (said and said in task.note):
        return said or task.note
    return "; ".join(filter(None, (task.note, said)))


def _over(task: TaskState, overall: JsonValue) -> tuple[str, ...]:
    said = list(map(str, overall)) if isinstance(overall, list) else []
    if task.reason in _OVER:
        said.append(task.note)
    said.extend(
        f"attempt {number} took too long: {finding.evidence}"
        for number, verdict in enumerate(task.returned, start=1)
        for finding in verdict.failures
        if finding.reason == "timeout"
    )
    return tuple(said)


def _overall(plan: QaPlan, steps: Sequence[StepReport]) -> tuple[str, ...]:
    budget = plan.overall_budget
    used = (
        ("attempts", sum(step.attempts for step in steps), budget.max_attempts),
        ("tokens", sum(_number(step, "tokens_used") for step in steps), budget.max_tokens),
    )
    return tuple(
        f"overall {name}: {amount} > {most}" for name, amount, most in used if amount > most
    )


def _number(step: StepReport, key: str) -> int:
    value = step.result[key]
    return value if isinstance(value, int) else 0


def _result(step: Step, record: Record) -> dict[str, JsonValue]:
    status = record.status if record.status in _SEED_STATUSES else "blocked"
    if record.observed_only:
        status = "blocked"
    return {
        "step_id": step.id,
        "status": status,
        "confidence": record.confidence if record.confidence is not None else 0.0,
        "notes": record.notes or record.error,
        "evidence": [one.model_dump(mode="json") for one in record.evidence],
        "tokens_used": record.tokens_used,
        "elapsed_ms": record.elapsed_ms,
        "next_action": "escalate" if status != "passed" else record.next_action,
    }


def _not_begun(step: Step) -> StepReport:
    why = "it was not begun"
    return StepReport(
        step=step,
        outcome="person",
        decided_by="",
        why=why,
        cached=False,
        attempts=0,
        over=(),
        warnings=(),
        remarks=(),
        result=_result(step, Record(status="blocked", notes=why)),
    )


def _step_json(step: StepReport) -> dict[str, JsonValue]:
    planned = step.step
    return {
        "step_id": planned.id,
        "outcome": step.outcome,
        "decided_by": step.decided_by,
        "why": step.why,
        "cached": step.cached,
        "budget": {
            "attempts": {"planned": planned.max_attempts, "used": step.attempts},
            "time_ms": {
                "planned": planned.time_budget_sec * 1_000,
                "used": step.result["elapsed_ms"],
            },
            "over": list(step.over),
        },
        "warnings": list(step.warnings),
        "remarks": list(step.remarks),
    }


def _proposals(run: RunState) -> tuple[str, ...]:
    task = run.tasks.get(REFLECT)
    output = task.record.output if task and task.record else None
    said = output.get("proposals") if isinstance(output, dict) else None
    return tuple(map(str, said)) if isinstance(said, list) else ()


def _text(run: RunState, name: str) -> str:
    task = run.tasks.get(name)
    output = task.record.output if task and task.record else None
    return output if isinstance(output, str) else ""
