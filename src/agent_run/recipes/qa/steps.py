"""Who does the steps: rules first, a model beside them if there is one, a person for the rest.

A step that failed, that nobody could do, or about which rules and model disagree asks for a
person, with evidence and transcript; the other steps go on.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from time import monotonic
from typing import Final

from anyio import to_thread
from pydantic import JsonValue

from agent_run.contract.base import Contract
from agent_run.contract.brief import Brief
from agent_run.contract.record import Record
from agent_run.contract.verdict import Verdict
from agent_run.desk import Desk
from agent_run.executors.content.drafts import Draft
from agent_run.executors.content.proxies import NO_PROXIES, Proxies
from agent_run.executors.content.remarks import Check, Status, blocked, to_record
from agent_run.executors.function import FunctionExecutor
from agent_run.ports.executor import Job, Work
from agent_run.ports.gate import Cache
from agent_run.recipes.asking import Asker
from agent_run.recipes.qa.allowance import left_for, within
from agent_run.recipes.qa.checklist import CheckName, OverallBudget
from agent_run.recipes.qa.deciding import Decision
from agent_run.recipes.qa.looking import (
    Look,
    combined,
    digest_at,
    draft_at,
    looks_at,
    remarks_json,
    time_to_look,
)
from agent_run.recipes.qa.opinions import Opinion, agreed, opinion_on
from agent_run.recipes.qa.rules import Rules, open_checkers

CHECK: Final = "qa.check"
WITH_OPINION: Final[frozenset[CheckName]] = frozenset({"tone", "compliance"})
"""What a model is asked about besides the rules; links and spelling are not opinions."""


class Assignment(Contract):
    """All that one step must know, so that any process can take it up."""

    draft: str
    digest: str
    """Of the draft that was planned for; another one must be planned for again."""
    checks: tuple[CheckName, ...] = ()
    """Empty means that no checker knows the goal."""
    rules: Rules = Rules()
    model: str | None = None
    """The model that is asked as well. `None` asks none."""
    overall: OverallBudget = OverallBudget()
    settled: Decision | None = None
    """What a person decided about the very same step before. `None` leaves it to the checks."""


@dataclass(frozen=True, slots=True)
class CheckStep:
    """Does one step for one draft, and keeps a transcript of it."""

    desk: Desk
    cache: Cache
    clock: Callable[[], datetime]
    ask: Asker | None = None
    proxies: Proxies = NO_PROXIES
    """The way to web pages, if the user configured one."""
    name: str = CHECK
    wants_workspace: bool = False

    async def run(self, job: Job) -> Work:
        """Look at the draft within the time of the step and of the whole draft."""
        assignment = Assignment.model_validate(job.brief.input)
        now = self.clock()
        left = await to_thread.run_sync(
            lambda: left_for(self.desk, job.brief, assignment.overall, now)
        )
        brief = within(job.brief, left)

        async def look(_: Brief) -> Record:
            rejected = rejection(brief.earlier)
            if rejected:
                told = f"a person rejected it: {rejected}"
                return _record(brief, Check("failed", 1.0, told, (), ""), monotonic())
            if assignment.settled is not None:
                return _record(brief, _as_settled(assignment.settled), monotonic())
            if left.over:
                return _over_budget(brief, left.over)
            return await self._looked(brief, assignment)

        seconds = brief.remaining.time_budget_sec
        held = replace(job, limits=replace(job.limits, wall_sec=seconds))
        work = await FunctionExecutor(self.name, look, None, None).run(held)
        told, model = _transcript(brief, work), _model_of(work.record)
        return replace(work, seen=replace(work.seen, transcript=told, model=model))

    async def _looked(self, brief: Brief, assignment: Assignment) -> Record:
        started = monotonic()
        draft = await to_thread.run_sync(draft_at, Path(assignment.draft))
        if isinstance(draft, str):
            return _record(brief, blocked("draft", draft), started)
        if digest_at(draft) != assignment.digest:
            told = f"draft {draft.name!r} changed after its plan was made; run the checks again"
            return _record(brief, blocked("draft", told), started)
        looks: list[Look] = []
        if assignment.checks:
            checkers = open_checkers(assignment.rules, assignment.checks, self.proxies)
            today = self.clock().date()
            seconds = time_to_look(brief.remaining.time_budget_sec, model=_asks(assignment))
            looks = await looks_at(draft, checkers, self.cache, today=today, seconds=seconds)
        opinion = await self._opinion(draft, brief, assignment)
        check = _judged(brief, looks, opinion)
        record = _record(brief, check, started, looks, opinion)
        warnings = (*record.warnings, *assignment.rules.unused)
        record = record.model_copy(update={"warnings": warnings})
        if opinion and opinion.refine and (brief.remaining.max_attempts or 1) > 1:
            # Asked again with better instructions, it may answer; the attempt is counted.
            again = {"status": "needs_review", "next_action": "revise"}
            return record.model_copy(update={**again, "next_step": opinion.refine})
        return record

    async def _opinion(
        self, draft: Draft, brief: Brief, assignment: Assignment
    ) -> Opinion | None:
        if assignment.model is None or not _asks(assignment):
            return None
        if self.ask is None:
            told = f"model {assignment.model!r} is not configured here and was not asked"
            return Opinion(assignment.model, None, told)
        ask, most = self.ask, assignment.overall.max_tokens
        return await opinion_on(draft, brief, lambda: ask(brief, most), self.cache)


def _asks(assignment: Assignment) -> bool:
    """Say whether a model is asked besides the rules, or instead of them."""
    wanted = not assignment.checks or WITH_OPINION & set(assignment.checks)
    return assignment.model is not None and bool(wanted)


def _model_of(record: Record | None) -> str | None:
    """Return the model that was really asked; None where none was."""
    output = record.output if record else None
    name = output.get("model") if isinstance(output, dict) else None
    return name if isinstance(name, str) else None


def rejection(verdicts: tuple[Verdict, ...]) -> str:
    """Return why a person rejected the last attempt; empty if no one did."""
    findings = verdicts[-1].failures if verdicts else ()
    return next((one.evidence for one in findings if one.reason == "review_rejected"), "")


def _as_settled(decision: Decision) -> Check:
    status: Status = "passed" if decision.approved else "failed"
    return Check(status, 1.0, decision.sentence(), (), "")


def _judged(brief: Brief, looks: list[Look], opinion: Opinion | None) -> Check:
    if looks:
        ours = combined(looks)
        return ours if opinion is None else agreed(ours, opinion)
    if opinion is not None and opinion.check is not None:
        return replace(opinion.check, notes=f"{opinion.by}: {opinion.check.notes}")
    told = f"no checker knows the goal {brief.objective!r}, so a person has to look"
    # A model that could not be asked this time may be asked the next time.
    return blocked("qa.person", told, whole=opinion is None)


def _record(
    brief: Brief,
    check: Check,
    started: float,
    looks: list[Look] | None = None,
    opinion: Opinion | None = None,
) -> Record:
    elapsed = round((monotonic() - started) * 1_000)
    record = to_record(brief.task_id, check, elapsed)
    asked = [*(looks or ()), *([opinion] if opinion else [])]
    trouble = (opinion.trouble,) if opinion and opinion.trouble else ()
    output: dict[str, JsonValue] = {
        "cached": bool(asked) and all(one.cached for one in asked),
        "by": [*(one.name for one in looks or ()), *([opinion.by] if opinion else [])],
        "remarks": remarks_json(check.remarks),
        "remarks_in_all": len(check.remarks),
        "over": ["tokens"] if opinion and opinion.unpaid else [],
        "model": opinion.by if opinion and opinion.requests else None,
        "whole": check.whole,
    }
    return record.model_copy(
        update={
            # A failed check is not tried again: the same draft would fail again.
            "next_action": "continue" if check.status == "passed" else "escalate",
            "output": output,
            "warnings": trouble,
            "tokens_used": opinion.tokens if opinion else 0,
            "requests_made": opinion.requests if opinion else 0,
            "cost_usd": opinion.cost_usd if opinion else None,
        }
    )


def _over_budget(brief: Brief, over: tuple[str, ...]) -> Record:
    told = f"over budget: no {', no '.join(over)} left of what this draft may take"
    check = blocked("budget", told)
    output: JsonValue = {"cached": False, "by": [], "over": list(over), "whole": False}
    record = to_record(brief.task_id, check, 0)
    return record.model_copy(update={"next_action": "escalate", "output": output})


def _transcript(brief: Brief, work: Work) -> bytes:
    record = work.record
    lines = [
        f"step {brief.task_id}, attempt {brief.attempt}: {brief.objective}",
        f"context: {' '.join(brief.manifest.handoff_notes) or 'none'}",
        f"remaining: {brief.remaining.model_dump_json(exclude_none=True)}",
    ]
    if record is None:
        lines.append(f"no answer: {work.seen.error or work.invalid}")
    else:
        lines.append(f"{record.status}, confidence {record.confidence}: {record.notes}")
        lines.extend(f"{one.type}: {one.content}" for one in record.evidence)
        lines.extend(f"warning: {warning}" for warning in record.warnings)
    return ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")
