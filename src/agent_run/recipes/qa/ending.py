"""The final region: reflect if asked for, save and summarize always.

Each reads the ledger when it runs, so it knows of steps that failed, too.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from anyio import to_thread
from pydantic import JsonValue

from agent_run.contract.brief import Brief
from agent_run.contract.record import Record
from agent_run.desk import Desk
from agent_run.errors import ContractError, ModelError, Unfit
from agent_run.executors.function import executor
from agent_run.executors.planner.reviewer import review_of
from agent_run.ports.executor import Executor
from agent_run.recipes.asking import Asker
from agent_run.recipes.places import write_json
from agent_run.recipes.qa.planning import REFLECT, SAVE, SUMMARIZE
from agent_run.recipes.qa.reporting import DraftReport, StepReport, draft_json, draft_report

_NEAR: Final = 0.1


def final_region(desk: Desk, folder: Path, ask: Asker | None = None) -> tuple[Executor, ...]:
    """Return who ends the run of a draft; results are saved in `folder`."""

    @executor(REFLECT)
    async def reflect(brief: Brief) -> Record:
        draft = await to_thread.run_sync(lambda: draft_report(desk, brief.run_id))
        proposals: list[JsonValue] = [*proposals_for(draft)]
        if ask is not None:
            proposals.extend(await _second_thoughts(draft, brief, ask))
        notes = f"{len(proposals)} proposals"
        return Record(status="done", output={"proposals": proposals}, notes=notes)

    @executor(SAVE)
    def save(brief: Brief) -> Record:
        place = folder / f"{brief.run_id}.json"
        write_json(place, draft_json(draft_report(desk, brief.run_id)))
        return Record(status="done", output={"saved": str(place)}, notes=f"saved to {place}")

    @executor(SUMMARIZE)
    def summarize(brief: Brief) -> Record:
        said = draft_report(desk, brief.run_id).summary
        return Record(status="done", output=said, notes=said)

    return reflect, save, summarize


async def _second_thoughts(draft: DraftReport, brief: Brief, ask: Asker) -> list[str]:
    """Return what a model would do better; that it could not be asked is said, too."""
    results: list[JsonValue] = [step.result for step in draft.steps]
    try:
        model = ask(brief, draft.plan.overall_budget.max_tokens)
        review = await review_of(model, f"A clear report about {draft.name}", results)
    except (ModelError, ContractError, Unfit) as error:
        return [f"the model proposed nothing: {error}"]
    return [f"{one.importance}: {one.where}: {one.what}" for one in review.improvements]


def proposals_for(draft: DraftReport) -> Iterator[str]:
    """Yield what would make the report better, or the next one."""
    for step in draft.steps:
        yield from _about(step)


def _about(step: StepReport) -> Iterator[str]:
    sure = step.result["confidence"]
    near = isinstance(sure, float) and 0 <= sure - step.step.min_confidence < _NEAR
    if step.outcome == "passed" and near:
        least = step.step.min_confidence
        yield f"{step.step.id} passed with {sure:g}, hardly above {least:g}: have a look"
    fixes = [one for one in step.remarks if one.get("suggestion")]
    if fixes:
        yield f"{step.step.id} has {len(fixes)} suggestions that can be taken over as they are"
    if step.outcome == "failed" and not step.remarks and step.decision is None:
        yield f"{step.step.id} failed without a remark: say where, or nobody can mend it"
    if step.outcome == "person" and not step.step.checks:
        yield f"{step.step.id} is done by hand each time: give it a checker or a model"
    for over in step.over:
        yield f"{step.step.id} did not get through ({over}): give it more, or check less"
