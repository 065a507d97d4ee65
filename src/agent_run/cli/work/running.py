"""The work of `run` and `resume`: a whole plan, from a file or from where its ledger stands."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, TypedDict, Unpack

import click

from agent_run.cli.exits import Exit
from agent_run.cli.speech import Speech
from agent_run.cli.work.documents import STDIN, kind_of, load_as, read_file
from agent_run.cli.work.door import Door, opened
from agent_run.cli.work.executing import fenced, warn_of_fence
from agent_run.cli.work.listening import completed, transcript
from agent_run.cli.work.recipes import (
    NAMES,
    OURS,
    Checks,
    built_in_executors,
    by_recipe,
    continued,
    recipe_named,
)
from agent_run.contract.base import RunId
from agent_run.contract.manifest import Manifest
from agent_run.contract.plan import Plan
from agent_run.contract.shapes import Orchestration, Routing
from agent_run.engine.loop import Crew
from agent_run.engine.runs import Ending, Outcome, fitted, run_plan
from agent_run.engine.runs import resume as go_on
from agent_run.engine.shapes import Shape, followed_by
from agent_run.engine.site import Site
from agent_run.errors import AlreadyPosted, InvalidDocument
from agent_run.executors.presets.catalogue import PRESETS
from agent_run.ledger.state import FOR_A_PERSON, SETTLED, RunState
from agent_run.ledger.views import status_rows
from agent_run.ports.executor import Executor
from agent_run.wiring.settings import FenceMode, Settings
from agent_run.wiring.site import Wanted, open_executor, open_site

BUILT_IN: Final = "agent:"
"""How the name of the built-in agent begins; the rest is its model."""
_SHAPES: Final = frozenset({"orchestration", "routing"})
_CODES: Final[Mapping[Ending, Exit]] = {
    "accepted": Exit.DONE,
    "failed": Exit.FAILED,
    "cancelled": Exit.FAILED,
    "waiting": Exit.FOR_A_PERSON,
}


_FOR_DRAFTS: Final[Mapping[str, str]] = {
    "offline": "--offline",
    "reports": "--report",
    "min_confidence": "--min-confidence",
}


class Wish(TypedDict):
    """Who is to work, and how."""

    executor: str | None
    command: str | None
    owner: str | None
    parallel: int | None
    fence: FenceMode | None


class RunWish(Wish):
    """What else may be wanted of a recipe that checks drafts."""

    offline: bool
    reports: tuple[str, ...]
    min_confidence: float | None


def run(
    speech: Speech,
    *,
    plan: str,
    arguments: tuple[str, ...],
    run_id: RunId | None,
    dry_run: bool,
    **wish: Unpack[RunWish],
) -> int:
    """Carry a plan out as far as it goes by itself."""
    recipe = recipe_named(plan)
    if isinstance(recipe, Checks):
        return by_recipe(speech, recipe, arguments, dry_run=dry_run, **_of_drafts(wish))
    _refuse_for_drafts(wish)
    document: Shape = recipe.plan(arguments) if recipe else _read(plan, arguments)
    with opened(speech, writes=True, dry_run=dry_run) as door:
        settings = fenced(door.settings, wish["fence"])
        crew = _crew(door, settings, steps_of(document), wish)
        shape = fitted(document, crew, others=known_executors(settings))
        name = run_id or _free_name(door, document)
        if dry_run:
            speech.answer({"run_id": name, "fits": True}, (f"run {name} would fit",))
            return Exit.DONE
        site = _site(door, settings, speech)
        outcome = completed(lambda: run_plan(site, shape, crew, run_id=name), speech)
    return _told(speech, outcome)


def resume(speech: Speech, *, run_id: RunId, dry_run: bool, **wish: Unpack[Wish]) -> int:
    """Go on with a run."""
    with opened(speech, writes=True, dry_run=dry_run) as door:
        if dry_run:
            return _rehearse(speech, run_id, door.desk.run(run_id))
        going_on = continued(door.desk.run(run_id))
        if going_on is not None:
            return going_on(door, run_id)
        settings = fenced(door.settings, wish["fence"])
        shape = followed_by(door.desk.run(run_id), run_id).shape
        crew = _crew(door, settings, steps_of(shape), wish)
        site = _site(door, settings, speech)
        outcome = completed(lambda: go_on(site, run_id, crew), speech)
    return _told(speech, outcome)


def _rehearse(speech: Speech, run_id: RunId, run: RunState) -> int:
    """Say what stands open in a run."""
    tasks = run.tasks.items()
    left = {name: str(one.status) for name, one in tasks if one.status not in SETTLED}
    speech.answer(
        {"run_id": run_id, "open": left, "dry_run": True},
        [f"{name} is {status}" for name, status in left.items()]
        or [f"nothing of run {run_id} is left open; its topology may post more"],
    )
    return Exit.DONE


def _of_drafts(wish: RunWish) -> dict[str, Any]:
    return {name: wish[name] for name in _FOR_DRAFTS}  # type: ignore[literal-required]


def _refuse_for_drafts(wish: RunWish) -> None:
    for name, option in _FOR_DRAFTS.items():
        if _of_drafts(wish)[name] not in (None, False, ()):
            msg = f"{option} goes with a recipe that checks drafts"
            raise click.UsageError(msg, click.get_current_context())


def steps_of(shape: Shape) -> tuple[Manifest, ...]:
    """Return every task that is known beforehand, and what later ones have in common."""
    if isinstance(shape, Plan):
        return (*shape.steps, *shape.final)
    common = shape.worker if isinstance(shape, Orchestration) else None
    return shape.manifests() if common is None else (*shape.manifests(), common)


def _read(plan: str, arguments: tuple[str, ...]) -> Shape:
    if arguments:
        msg = f"plan {plan!r} takes no arguments, got {' '.join(arguments)!r}"
        raise InvalidDocument(msg)
    if plan != STDIN and not os.path.lexists(plan):
        recipes = ", ".join(NAMES)
        msg = f"{plan!r} is neither a file nor a recipe, expected a plan or one of {recipes}"
        raise InvalidDocument(msg)
    found = read_file(plan)
    kind = kind_of(found)
    document = load_as(found, kind if kind in _SHAPES else "plan")
    if not isinstance(document, Plan | Orchestration | Routing):
        msg = f"{plan}: is not a plan"
        raise InvalidDocument(msg)
    ours = [step for step in steps_of(document) if _is_ours(step)]
    if ours:
        faults = tuple(
            f"{plan}: task {step.task_id!r} names executor {step.executor!r}, which works only "
            "in its recipe: agent-run qa"
            for step in ours
        )
        raise InvalidDocument("\n".join(faults), faults)
    return document


def _is_ours(step: Manifest) -> bool:
    return step.executor is not None and step.executor.startswith(OURS)


def _site(door: Door, settings: Settings, speech: Speech) -> Site:
    site = open_site(door.desk, settings, Wanted(tell=transcript(speech)))
    warn_of_fence(speech, site)
    return site


def _crew(door: Door, settings: Settings, steps: Iterable[Manifest], wish: Wish) -> Crew:
    """Return everybody the steps name; whoever is unknown is left to `fit` to tell."""
    executors: dict[str, Executor] = {}
    for name in dict.fromkeys(step.executor for step in steps if step.executor):
        if name.startswith(OURS):
            executors.update(built_in_executors(door))
            continue
        if name not in known_executors(settings) and not name.startswith(BUILT_IN):
            continue  # `fit` names every step that has nobody, all in one go
        executors[name] = open_executor(name, settings, desk=door.desk)
    fallback = None
    if wish["command"] or wish["executor"] or settings.executor:
        wanted, command = wish["executor"], wish["command"]
        fallback = open_executor(wanted, settings, command=command, desk=door.desk)
    crew = Crew(executors, fallback, owner=wish["owner"] or settings.owner)
    return replace(crew, at_once=wish["parallel"]) if wish["parallel"] else crew


def known_executors(settings: Settings) -> tuple[str, ...]:
    """Return whom a step may name: the configured executors, then those that are built in."""
    return (*sorted(settings.executors), *sorted(PRESETS.keys() - settings.executors.keys()))


def _free_name(door: Door, plan: Shape) -> RunId:
    name = plan.run_name
    if door.run_or_empty(name).seq:
        msg = f"run {name!r} stands on the ledger; resume it, or name this one with --run"
        raise AlreadyPosted(msg)
    return name


def _told(speech: Speech, outcome: Outcome) -> int:
    rows = list(status_rows(outcome.run_id, outcome.run))
    tasks = [
        {"task_id": row.task_id, "status": row.status, "attempt": row.attempt, "note": row.note}
        for row in rows
    ]
    status = outcome.status
    if speech.as_json:
        speech.object({"run_id": outcome.run_id, "status": status, "tasks": tasks})
    else:
        speech.show("")
        speech.table(
            ("TASK", "STATUS", "ATTEMPT", "NOTE"),
            [(row.task_id, row.status, str(row.attempt), row.note or "") for row in rows],
        )
    waiting = [name for name, task in outcome.run.tasks.items() if task.status in FOR_A_PERSON]
    if waiting:
        wait = "waits" if len(waiting) == 1 else "wait"
        speech.tell(f"{', '.join(waiting)} {wait} for a person: agent-run inbox")
    return _CODES[status]
