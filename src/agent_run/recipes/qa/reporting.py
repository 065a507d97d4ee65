"""The report: how every draft stands, folded from the ledger and nothing else.

A draft fails when a check failed and is sure of it; it needs a person when something is not
decided; it passes otherwise. What a person decided wins over what the checks said.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from pydantic import JsonValue

from agent_run.contract.base import RunId
from agent_run.contract.record import Record
from agent_run.desk import Desk
from agent_run.ledger.state import FOR_A_PERSON, RunState, Status, TaskState
from agent_run.recipes.places import sentence_of
from agent_run.recipes.qa.allowance import attempts_of
from agent_run.recipes.qa.carrying import carried
from agent_run.recipes.qa.checklist import QaPlan, Step
from agent_run.recipes.qa.deciding import Decision, decisions_of
from agent_run.recipes.qa.planning import REFLECT, Dossier, dossier_of
from agent_run.recipes.qa.steps import Assignment

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
    """What the person said who decided, else what the checks say."""
    decision: Decision | None
    """What a person decided. `None` where no person did."""
    waits: bool
    """Whether it stands in the inbox: what failed does, until a person has decided."""
    cached: bool
    attempts: int
    over: tuple[str, ...]
    """What of the budget did not suffice."""
    warnings: tuple[str, ...]
    remarks: tuple[dict[str, Any], ...]
    found: int
    """How many remarks there are in all; a record carries only so many."""
    result: dict[str, JsonValue]
    """The execution result: status, confidence, notes, evidence, and what it took."""

    @property
    def overruled(self) -> str:
        """What the checks said where a person had the last word; empty elsewhere."""
        said = self.result["notes"] if self.decision else ""
        return f"The checks said: {said}" if said else ""


@dataclass(frozen=True, slots=True)
class DraftReport:
    """What became of one draft."""

    name: str
    run_id: RunId
    trace_id: str
    plan: QaPlan
    steps: tuple[StepReport, ...]
    free: int = 0
    """Attempts that take nothing from the overall budget: of steps that were known before."""
    proposals: tuple[str, ...] = ()
    """What the reflection on the results proposes."""

    @property
    def status(self) -> Verdict:
        outcomes = {step.outcome for step in self.steps}
        if "failed" in outcomes:
            return "fail"
        return "person" if "person" in outcomes else "pass"

    @property
    def waiting(self) -> tuple[str, ...]:
        """The steps that wait for a person."""
        return tuple(step.step.id for step in self.steps if step.waits)

    @property
    def summary(self) -> str:
        """In a sentence or two what a person should know first."""
        failed = [one.step.id for one in self.steps if one.outcome == "failed"]
        person = [one.step.id for one in self.steps if one.outcome == "person"]
        said = [f"{self.name}: {len(self.steps)} checks"]
        if failed:
            said.append(f"{sentence_of(failed)} failed")
        if person:
            said.append(f"{sentence_of(person)} must be decided by a person")
        if len(said) == 1:
            said.append("all passed")
        people = sorted({one.decision.by for one in self.steps if one.decision})
        if people:
            said.append(f"{sentence_of(people)} decided in part")
        if self.over:
            said.append(f"over budget: {'; '.join(self.over)}")
        return "; ".join(said)

    @property
    def over(self) -> tuple[str, ...]:
        """Everything that is over budget, in words."""
        steps = (f"{one.step.id}: {over}" for one in self.steps for over in one.over)
        return (*steps, *_overall(self))


class Known(NamedTuple):
    """What the pages of a run say beyond the state of its tasks."""

    decisions: Mapping[str, Decision]
    attempts: Counter[str]
    reused: frozenset[str]
    """Steps that were done before this was asked for."""


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
    run, pages = desk.run(run_id), desk.pages(run_id)
    dossier = dossier_of(run, run_id)
    known = Known(decisions_of(pages), attempts_of(pages), reused)
    return DraftReport(
        name=dossier.name,
        run_id=run_id,
        trace_id=desk.trace_id(run_id),
        plan=dossier.plan,
        steps=tuple(_steps(run, dossier, known)),
        free=_free(run, dossier),
        proposals=_proposals(run),
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


def _free(run: RunState, dossier: Dossier) -> int:
    """Return how many attempts were given on top, for steps that were known before."""
    first = run.tasks.get(dossier.plan.steps[0].id)
    if first is None:
        return 0
    given = Assignment.model_validate(first.manifest.input).overall.max_attempts
    return given - dossier.plan.overall_budget.max_attempts


def _steps(run: RunState, dossier: Dossier, known: Known) -> Iterable[StepReport]:
    for step in dossier.plan.steps:
        task = run.tasks.get(step.id)
        if task is None:
            yield _not_begun(step)
            continue
        record = task.record
        output = record.output if record and isinstance(record.output, dict) else {}
        decision = _standing(task, known.decisions.get(step.id) or carried(task.manifest))
        outcome, decided_by = _outcome(step, task, decision)
        remarks: Any = output.get("remarks", [])
        yield StepReport(
            step=step,
            outcome=outcome,
            decided_by=decided_by,
            why=decision.sentence() if decision else _why(task, outcome),
            decision=decision,
            waits=task.status in FOR_A_PERSON and decision is None,
            cached=bool(output.get("cached")) or step.id in known.reused,
            attempts=known.attempts[step.id],
            over=_over(task, output.get("over", [])),
            warnings=record.warnings if record else (),
            remarks=tuple(remarks),
            found=_count(output.get("remarks_in_all"), at_least=len(remarks)),
            result=_result(step, record or Record(status="blocked", notes=task.note)),
        )


def _standing(task: TaskState, decision: Decision | None) -> Decision | None:
    """Return the decision if it still counts: work that was accepted without it does not."""
    if decision is None or decision.approved == (task.status is Status.ACCEPTED):
        return decision
    return None


def _outcome(step: Step, task: TaskState, decision: Decision | None) -> tuple[Outcome, str]:
    if decision is not None:
        return ("passed" if decision.approved else "failed"), decision.by
    if task.status is Status.ACCEPTED:
        return "passed", "checks"
    record = task.record
    if task.status is Status.ESCALATED and record is not None and record.status == "failed":
        sure = not record.observed_only and (record.confidence or 0) >= step.min_confidence
        return ("failed", "checks") if sure else ("person", "")
    return "person", ""


def _why(task: TaskState, outcome: Outcome) -> str:
    record = task.record
    said = "" if record is None or record.observed_only else record.notes
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


def _overall(draft: DraftReport) -> tuple[str, ...]:
    budget, steps = draft.plan.overall_budget, draft.steps
    tried = sum(step.attempts for step in steps) - draft.free
    used = (
        ("attempts", tried, budget.max_attempts),
        ("tokens", sum(_number(step, "tokens_used") for step in steps), budget.max_tokens),
    )
    return tuple(
        f"overall {name}: {amount} > {most}" for name, amount, most in used if amount > most
    )


def _count(value: JsonValue, *, at_least: int) -> int:
    return value if isinstance(value, int) else at_least


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
        decision=None,
        waits=False,
        cached=False,
        attempts=0,
        over=(),
        warnings=(),
        remarks=(),
        found=0,
        result=_result(step, Record(status="blocked", notes=why)),
    )


def _step_json(step: StepReport) -> dict[str, JsonValue]:
    planned = step.step
    return {
        "step_id": planned.id,
        "outcome": step.outcome,
        "decided_by": step.decided_by,
        "why": step.why,
        "decision": step.decision.as_json() if step.decision else None,
        "waits": step.waits,
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
        "remarks_in_all": step.found,
    }


def _proposals(run: RunState) -> tuple[str, ...]:
    task = run.tasks.get(REFLECT)
    output = task.record.output if task and task.record else None
    said = output.get("proposals") if isinstance(output, dict) else None
    return tuple(map(str, said)) if isinstance(said, list) else ()
