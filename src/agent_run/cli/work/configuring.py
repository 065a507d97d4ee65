"""The work of `configure`: turns in; notes, the plan, or the finished configuration out."""

import json
from collections.abc import Iterator, Mapping
from typing import Final

from agent_run.cli.exits import Exit
from agent_run.cli.speech import Json, Speech
from agent_run.cli.work.door import Door, opened
from agent_run.cli.work.listening import completed, transcript
from agent_run.cli.work.wording import dumped
from agent_run.contract.base import RunId
from agent_run.engine.telling import to_nobody
from agent_run.errors import ContractError
from agent_run.ledger.words import named
from agent_run.models.names import parse_model
from agent_run.recipes.asking import Asker, open_asker
from agent_run.recipes.configure.annotator import listening_annotator, model_annotator
from agent_run.recipes.configure.conversation import (
    RECIPE,
    Phase,
    Standing,
    Team,
    go_on,
    model_of,
    output_of,
    say,
)
from agent_run.recipes.configure.nodes import usual_registry
from agent_run.recipes.configure.planner import model_planner, registry_planner
from agent_run.wiring.opening import new_trace

_CODES: Final[Mapping[Phase, Exit]] = {
    "done": Exit.DONE,
    "failed": Exit.FAILED,
    "talking": Exit.FOR_A_PERSON,
    "working": Exit.FOR_A_PERSON,
    "asking": Exit.FOR_A_PERSON,
    "stuck": Exit.FOR_A_PERSON,
}


def configure(
    speech: Speech, *, said: tuple[str, ...], run_id: RunId | None, model: str | None
) -> int:
    """Take the turns down, and go on as far as it goes without a person."""
    if not said and run_id is None:
        msg = "nothing was said: give a TEXT, or the conversation to go on with by --run"
        raise ContractError(msg)
    if any(not text.strip() for text in said):
        msg = "a TEXT is empty, expected what you want to say"
        raise ContractError(msg)
    with opened(speech, writes=True) as door:
        name = run_id or f"{RECIPE}-{new_trace()[:8]}"
        if model is not None:
            parse_model(model)
        say(door.desk, name, said, actor=door.settings.owner, model=model)
        return went_on(door, name)


def went_on(door: Door, run_id: RunId) -> int:
    """Go on with the conversation `run_id`, and tell how it stands."""
    team = team_for(door, model_of(door.desk.run(run_id)))
    speech, state = door.speech, door.settings.state
    tell = transcript(speech, aside=True) if speech.verbose else to_nobody
    now = completed(lambda: go_on(door.desk, run_id, team, state=state, tell=tell), speech)
    speech.answer(_as_json(now), _lines(now))
    return _CODES[now.phase]


def team_for(door: Door, model: str | None) -> Team:
    """Return who listens and plans: a model if one is named, else the rules that need none."""
    registry = usual_registry(door.settings.state / RECIPE)
    if model is None:
        return Team(listening_annotator(), registry_planner(registry), registry)
    ask: Asker = open_asker(door.desk, door.settings, model)
    return Team(model_annotator(ask), model_planner(registry, ask), registry)


def _as_json(now: Standing) -> Json:
    tasks = [
        {"task_id": name, "status": task.status.value, "note": task.note}
        for name, task in now.run.in_order()
    ]
    return {
        "run_id": now.run_id,
        "phase": now.phase,
        "notes": dumped(now.notes),
        "missing": list(now.pivot.missing),
        "plan": dumped(now.log)["plan"] if now.log else None,  # type: ignore[index,call-overload]  # a contract is an object
        "tasks": tasks,
        "waiting": [_waiting_json(now, name) for name in now.waiting],
        "configuration": output_of(now.run, "save_node"),
        "summary": output_of(now.run, "summarizer"),
    }


def _waiting_json(now: Standing, name: str) -> Json:
    question = now.run.tasks[name].question
    return {
        "task_id": name,
        "question": question.text if question else now.run.tasks[name].note,
        "answer_schema": question.answer_schema if question else None,
        "next": f"agent-run review {named(now.run_id, name)}",
    }


def _lines(now: Standing) -> Iterator[str]:
    yield f"conversation {now.run_id}: {now.phase}"
    if now.log is None:
        yield from (f"  wanted   {one}" for one in now.notes.requirements)
        yield from (f"  missing  {one}" for one in now.pivot.missing)
        yield f"say more: agent-run configure --run {now.run_id} TEXT"
        return
    for stop in now.log.plan:
        task = now.run.tasks.get(stop.node)
        yield f"  {stop.node:<24}{task.status if task else 'to come':<11}{stop.message}"
    for name in now.waiting:
        yield from _question(now, name)
    summary = output_of(now.run, "summarizer")
    if isinstance(summary, str):
        yield summary


def _question(now: Standing, name: str) -> Iterator[str]:
    task = now.run.tasks[name]
    begin = f"agent-run review {named(now.run_id, name)}"
    if task.question is None:
        yield f"{name}: {task.note}"
        yield f"  {begin}"
        return
    yield f"{name} asks: {task.question.text}"
    if task.question.answer_schema is not None:
        yield f"  expected {json.dumps(task.question.answer_schema)}"
    yield f"  {begin} --answer JSON, then agent-run resume {now.run_id}"
