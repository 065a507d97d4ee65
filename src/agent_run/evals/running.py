"""Putting every case through a pipeline: several at once, resumed, each in its own ledger."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import anyio
from pydantic import JsonValue

from agent_run.errors import AgentRunError, all_of
from agent_run.evals.cases import EvalCase
from agent_run.evals.results import (
    CaseResult,
    append_result,
    fingerprint,
    mend,
    outcome_of,
    read_results,
    report_of,
    steps_of,
)
from agent_run.ledger.fold import fold
from agent_run.ledger.metrics.facts import tasks_of
from agent_run.ledger.metrics.gathering import gather
from agent_run.ledger.pages import Page


@dataclass(frozen=True, slots=True)
class Errand:
    """One case to be put through the pipeline, and where its ledger is."""

    case: EvalCase
    run_id: str
    ledger: Path


_LONGEST_NAME: Final = 80

Conduct: TypeAlias = Callable[[Errand], Awaitable[Sequence[Page]]]
"""Brings the run of a case as far as it goes, from wherever it stands; returns its pages."""
About: TypeAlias = Callable[[EvalCase], JsonValue]
"""Tells what a case names and does not hold, such as the content of a file."""
Progress: TypeAlias = Callable[[int, int, CaseResult], None]
"""Told how many are done, of how many, and which was the last."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A pipeline, and where what came of it is kept."""

    folder: Path
    pipeline: Mapping[str, JsonValue]
    """What makes this pipeline another one: plan, executors, version."""
    conduct: Conduct
    at_once: int = 4
    about: About | None = None
    """`None` where a case holds all there is to know about it."""

    def mark(self, case: EvalCase) -> str:
        """Return the name under which the result of a case is found again."""
        if self.about is None:
            return fingerprint(case, self.pipeline)
        return fingerprint(case, {**self.pipeline, "about": self.about(case)})


async def evaluate(
    evaluation: Evaluation, cases: Sequence[EvalCase], progress: Progress
) -> list[CaseResult]:
    """Return the result of every case; what is known already is not done again."""
    await anyio.to_thread.run_sync(_prepare, evaluation.folder)
    known = await anyio.to_thread.run_sync(_known, evaluation, cases)
    results: dict[str, CaseResult] = dict(known)
    limiter = anyio.CapacityLimiter(evaluation.at_once)
    writing = anyio.Lock()

    async def one(case: EvalCase) -> None:
        async with limiter:
            result = await _result(evaluation, case)
        async with writing:
            await anyio.to_thread.run_sync(append_result, evaluation.folder, result)
            results[case.case_id] = result
            progress(len(results), len(cases), result)

    async with anyio.create_task_group() as group:
        for case in cases:
            if case.case_id not in known:
                group.start_soon(one, case)
    return [results[case.case_id] for case in cases]


async def _result(evaluation: Evaluation, case: EvalCase) -> CaseResult:
    mark = evaluation.mark(case)
    # Runs of two pipelines share a workspace but no name, so neither meets the other's files.
    run_id = f"{case.case_id[:_LONGEST_NAME]}-{mark[:12]}"
    ledger = Path("cases") / f"{run_id}.db"
    try:
        pages = await evaluation.conduct(Errand(case, run_id, evaluation.folder / ledger))
    except (AgentRunError, ExceptionGroup) as error:
        return CaseResult(
            case=case,
            fingerprint=mark,
            run_id=run_id,
            ledger=str(ledger),
            outcome="error",
            steps={},
            tokens=0,
            cost_usd=0,
            seconds=0,
            note=_said(error),
        )
    return seen(case, pages, mark=mark, ledger=str(ledger))


def _said(error: AgentRunError | ExceptionGroup[Exception]) -> str:
    """Return what went wrong; a fault in our own code is not taken for a broken case."""
    if not isinstance(error, ExceptionGroup):
        return str(error)
    return "; ".join(map(str, all_of(error, AgentRunError)))


def seen(case: EvalCase, pages: Sequence[Page], *, mark: str, ledger: str) -> CaseResult:
    """Return what the pages of a run say about its case."""
    run = gather(pages)
    if run is None:
        msg = f"the run of case {case.case_id!r} left no page"
        raise AgentRunError(msg)
    steps = steps_of(run)
    spent = [task.spent for task in tasks_of([run])]
    return CaseResult(
        case=case,
        fingerprint=mark,
        run_id=run.run_id,
        ledger=ledger,
        outcome=outcome_of(steps.values()),
        steps=steps,
        report=report_of(fold(page.event() for page in pages)),
        tokens=sum(one.tokens for one in spent),
        cost_usd=sum(one.cost_usd for one in spent),
        unpriced_requests=sum(one.unpriced for one in spent),
        seconds=run.seconds,
        attempts=sum(len(task.attempts) for task in run.tasks.values()),
    )


def _prepare(folder: Path) -> None:
    (folder / "cases").mkdir(parents=True, exist_ok=True)
    # Results are no content of the project: executors must not find the answers in their tree.
    mark = folder / ".gitignore"
    if not mark.exists():
        mark.write_text("*\n", encoding="utf-8")
    mend(folder)


def _known(evaluation: Evaluation, cases: Sequence[EvalCase]) -> dict[str, CaseResult]:
    """Return the results that are there for these very cases and this very pipeline."""
    if not (evaluation.folder / "results.jsonl").exists():
        return {}
    kept = read_results(evaluation.folder)
    wanted = {case.case_id: evaluation.mark(case) for case in cases}
    return {
        name: result
        for name, result in kept.items()
        if wanted.get(name) == result.fingerprint and result.outcome != "error"
    }
