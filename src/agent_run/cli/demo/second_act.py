"""The second act of the demo: eight drafts with planted defects, and a key to the truth."""

from importlib import import_module
from pathlib import Path
from typing import Any, Final

from agent_run.cli.speech import Json, Speech
from agent_run.desk import Desk

_FOLDER: Final = "examples/content-qa"
_COMMAND: Final = f"agent-run qa {_FOLDER}/0* --checklist {_FOLDER}/checklist.yaml --offline"


def played(speech: Speech, desk: Desk, state: Path) -> Json | None:
    """Check the example drafts and show how good the checks were; None if that cannot be."""
    try:
        example: Any = import_module("agent_run.recipes.qa.example")
    except ModuleNotFoundError as error:
        speech.tell(f"the second act needs {error.name!r}: install agent-run[qa]")
        return None
    folder = example.example_folder()
    if folder is None:
        speech.tell("the second act needs the example drafts, which come with the repository")
        return None
    act = example.qa_act(desk, state, folder)
    score, again = act.score, act.again
    rows = [
        (Path(draft.name).name, draft.status, _words(draft.steps))
        for draft in act.report.drafts
    ]
    if not speech.as_json:
        speech.show("", f"$ {_COMMAND}")
        speech.table(("DRAFT", "STATUS", "WHY"), rows)
        speech.show("", *_lines(score, again))
    return {
        "drafts": {name: status for name, status, _ in rows},
        "precision": score.precision,
        "recall": score.recall,
        "escalated": score.escalated,
        "steps": score.steps,
        "cache_hits_again": again.cache_hits,
    }


def _lines(score: Any, again: Any) -> list[str]:
    right = f"precision {_share(score.precision)}, recall {_share(score.recall)}"
    undecided = f"{score.undecided} of {score.steps} steps left to a person"
    return [
        f"[demo]    against a hand-made key: {right}, {undecided}",
        f"[demo]    {score.defects_found} of {score.defects} planted defects found",
        f"[demo]    checked again: {again.cache_hits} of {again.steps} results were reused",
    ]


def _share(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"


def _words(steps: Any) -> str:
    troubled = [f"{step.step.id} {step.outcome}" for step in steps if step.outcome != "passed"]
    return ", ".join(troubled) or "every check passed"
