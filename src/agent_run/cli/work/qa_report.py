"""How a report on drafts reads in the terminal: a table, then what a person should know."""

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from agent_run.cli.speech import Speech
from agent_run.recipes.places import sentence_of
from agent_run.recipes.qa.rendering import whole_json
from agent_run.recipes.qa.reporting import DraftReport, Report, StepReport
from agent_run.recipes.qa.scoring import Score, score_lines
from agent_run.recipes.qa.wording import VERDICTS, counts, standing

_MOST_REMARKS: Final = 5


def show_report(speech: Speech, report: Report, told: Score | None) -> None:
    """Print the report, and say what still waits for a person."""
    if speech.as_json:
        speech.object(whole_json(report, told))
        return
    steps = list(dict.fromkeys(step.step.id for step in report.steps))
    rows = []
    for draft in report.drafts:
        by_name = {step.step.id: step for step in draft.steps}
        cells = [cell_of(by_name[name]) if name in by_name else "" for name in steps]
        rows.append((draft.name, VERDICTS[draft.status], *cells))
    speech.table(("DRAFT", "STATUS", *(name.upper() for name in steps)), rows)
    speech.show(*_details(report))
    speech.show("", counts(report))
    if told is not None:
        speech.show("", *score_lines(told))
    if any(draft.waiting for draft in report.drafts):
        speech.tell(_what_waits(report))


def cell_of(step: StepReport) -> str:
    """Return in a few words what became of a step."""
    if step.decision is not None:
        return standing(step)
    said = {"passed": "ok", "failed": "FAILED", "person": "person"}[step.outcome]
    # Of what nobody could look at there is nothing to be sure of.
    blocked = step.result["status"] == "blocked"
    sure = "" if blocked else f" {step.result['confidence']:.2f}"
    return f"{said}{sure}{' (cached)' if step.cached else ''}"


def _what_waits(report: Report) -> str:
    """Return what a person has to decide, where, and what to type afterwards."""
    drafts = [draft for draft in report.drafts if draft.waiting]
    steps = [step for draft in drafts for step in draft.waiting]
    if len(drafts) == 1:
        named = f"{sentence_of(steps)} of {drafts[0].name}"
        after = f"agent-run resume {drafts[0].run_id}"
    else:
        named, after = f"{len(steps)} checks of {len(drafts)} drafts", "the same command again"
    verb = "waits" if len(steps) == 1 else "wait"
    return f"{named} {verb} for a person: agent-run inbox; then {after} for the new report"


def _details(report: Report) -> Iterator[str]:
    for draft in report.drafts:
        telling = [step for step in draft.steps if _is_worth_a_line(step)]
        # A draft that cannot be read is a reason for every step: it is said once.
        for why, steps in groupby(telling, key=lambda step: step.why):
            alike = list(steps)
            named = sentence_of(step.step.id for step in alike)
            yield ""
            yield f"{draft.name}: {named}: {why}"
            for step in alike:
                yield from (f"  warning: {warning}" for warning in step.warnings)
                if step.outcome != "passed":
                    yield from _remarks(step)
        yield from _about(draft)


def _is_worth_a_line(step: StepReport) -> bool:
    plain = step.outcome == "passed" and step.decision is None
    return not plain or bool(step.over or step.warnings)


def _about(draft: DraftReport) -> Iterator[str]:
    yield from (f"{draft.name}: over budget: {over}" for over in draft.over)
    yield from (f"{draft.name}: proposal: {one}" for one in draft.proposals)


def _remarks(step: StepReport) -> Iterator[str]:
    if step.result["status"] == "blocked" and len(step.remarks) == 1:
        return  # its one remark is the reason, which is said already
    for one in step.remarks[:_MOST_REMARKS]:
        yield f"  {one['line']}:{one['column']} {one['severity']} {one['message']}"
    more, kept = step.found - _MOST_REMARKS, len(step.remarks)
    if more > 0:
        named = f"all {kept}" if kept == step.found else f"the {kept} gravest of {step.found}"
        yield f"  and {more} more; --report FILE names {named}"
