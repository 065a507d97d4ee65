"""Datasets from recorded work: what was asked, what came of it, what a person decided.

So a new model, prompt or gate can be measured on the very cases that people have judged.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Final

from pydantic import JsonValue, TypeAdapter, ValidationError

from agent_run.contract.base import Name
from agent_run.evals.cases import EvalCase, Expected, Human, StepOutcome
from agent_run.evals.results import step_outcome
from agent_run.ledger import events as happened
from agent_run.ledger.metrics.facts import Run, Task
from agent_run.ledger.metrics.gathering import gather
from agent_run.ledger.pages import Page

_LONGEST_NAME: Final = 80
_NAME: Final = TypeAdapter[str](Name)


def collect(pages: Sequence[Page], *, decided_only: bool) -> Iterator[EvalCase]:
    """Yield a case for each task of a run that has an input and came to an outcome.

    A person's decision counts before what the machine came to; with `decided_only`, tasks
    that no person decided about are left out.
    """
    run = gather(pages)
    if run is None:
        return
    inputs = _inputs(pages)
    for name, task in run.tasks.items():
        given = inputs.get(name)
        if given is None or (decided_only and not task.decisions):
            continue
        case = _case(run, task, given)
        if case is not None:
            yield case


def _case(run: Run, task: Task, given: JsonValue) -> EvalCase | None:
    seen = step_outcome(task)
    human = None
    if task.decisions:
        last = task.decisions[-1]
        human = Human(decision="pass" if last.person else "fail", by=last.by[:200])
    if human is None and seen == "error":
        return None
    outcome: StepOutcome = human.decision if human else seen  # type: ignore[assignment]
    return EvalCase(
        case_id=_name(run.run_id, task.task_id),
        input=given,
        expected=Expected(steps={task.step: outcome} if _is_name(task.step) else {}),
        human=human,
    )


def _inputs(pages: Sequence[Page]) -> dict[str, JsonValue]:
    """Return what each task was given: its own input, or what was handed to it."""
    inputs: dict[str, JsonValue] = {}
    handed: dict[str, dict[str, JsonValue]] = {}
    for page in pages:
        if page.kind not in {"task_posted", "handoff_made"}:
            continue
        event = page.event()
        if isinstance(event, happened.TaskPosted):
            inputs[event.task_id] = event.manifest.input
        elif isinstance(event, happened.HandoffMade):
            envelope = event.envelope
            handed.setdefault(event.task_id, {})[envelope.source] = envelope.payload
    for name, given in handed.items():
        if inputs.get(name) is None:
            inputs[name] = next(iter(given.values())) if len(given) == 1 else given
    return inputs


def _is_name(step: str) -> bool:
    """Say whether the step can stand in a dataset; a label may hold any text."""
    try:
        _NAME.validate_python(step)
    except ValidationError:
        return False
    return True


def _name(run_id: str, task_id: str) -> str:
    whole = f"{run_id}.{task_id}"
    if len(whole) <= _LONGEST_NAME:
        return whole
    return f"{whole[:_LONGEST_NAME]}-{hashlib.sha256(whole.encode()).hexdigest()[:12]}"
