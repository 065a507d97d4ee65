"""Guided configuration, from the first turn to the summary, as one run of the ledger.

Turns are tasks of the annotator; when its notes are clear enough, the planner is posted;
then its log is followed. All of it is a pure function of the run, so any process can go on.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, Literal, TypeAlias

import anyio
from anyio import to_thread
from pydantic import JsonValue

from agent_run.contract.base import RunId
from agent_run.contract.manifest import Manifest
from agent_run.contract.notes import Notes
from agent_run.desk import Desk
from agent_run.engine.loop import drive
from agent_run.engine.runs import crew_of
from agent_run.engine.site import Site
from agent_run.engine.telling import Listener, to_nobody
from agent_run.errors import ContractError, TransitionError, UnknownRun
from agent_run.ledger.commands import Command, OpenRun, Post
from agent_run.ledger.state import FOR_A_PERSON, SETTLED, RunState, Status
from agent_run.ports.executor import Executor
from agent_run.recipes.configure.annotator import ANNOTATOR, Heard
from agent_run.recipes.configure.clarity import ENOUGH, Clarity, Pivot, pivot
from agent_run.recipes.configure.planner import PLANNER, ContextLog, dispatchable
from agent_run.recipes.configure.registry import Registry
from agent_run.recipes.places import file_less_site
from agent_run.recipes.rounds import in_round
from agent_run.topology.plan_execute import plan_execute
from agent_run.topology.shape import Topology

RECIPE: Final = "configure"
Phase: TypeAlias = Literal["talking", "working", "asking", "stuck", "done", "failed"]
_TURN: Final = "turn-"
_POLL: Final = 0.2
_MOVING: Final = frozenset({Status.READY, Status.CLAIMED, Status.SUBMITTED})


@dataclass(frozen=True, slots=True)
class Team:
    """Who listens, who plans, which nodes there are, and when enough has been said."""

    annotator: Executor
    planner: Executor
    registry: Registry
    clarity: Clarity = ENOUGH

    def executors(self) -> tuple[Executor, ...]:
        """Return everybody who works in such a run."""
        return (self.annotator, self.planner, *self.registry.executors())


@dataclass(frozen=True, slots=True)
class Standing:
    """How a conversation stands."""

    run_id: RunId
    phase: Phase
    """`talking` wants more turns, `asking` an answer, `stuck` a person's decision."""
    run: RunState
    notes: Notes
    pivot: Pivot
    log: ContextLog | None = None
    """`None` until the plan is made."""

    @property
    def waiting(self) -> tuple[str, ...]:
        """The nodes that wait for a person."""
        return tuple(n for n, task in self.run.in_order() if task.status in FOR_A_PERSON)


def configuring(team: Team) -> Topology:
    """Return the topology: turn after turn, one plan, node after node, the fixed end."""

    def next_commands(run: RunState) -> tuple[Command, ...]:
        planner = run.tasks.get(PLANNER)
        if planner is None:
            return _plan_if_clear(run, team)
        log, notes = _log(run), Notes.model_validate(planner.manifest.input)
        if log is not None:
            plan = dispatchable(log, notes, team.registry)
        elif planner.status in SETTLED | {Status.ESCALATED}:
            # Without a plan there is nothing to follow; the fixed end runs all the same.
            only = dispatchable(ContextLog.model_construct(plan=()), notes, team.registry)
            plan = only.model_copy(update={"steps": (planner.manifest,)})
        else:
            return ()
        return plan_execute(in_round(plan, run))(run)

    return next_commands


def say(
    desk: Desk, run_id: RunId, turns: Sequence[str], *, actor: str, model: str | None = None
) -> None:
    """Write down what the user said; the conversation is opened by its first turn.

    `model` is who listens and plans, remembered for everybody who goes on with it.

    Raises:
        TransitionError: The plan is already made, and talking changes nothing any more.
    """
    if not turns:
        return
    run = _run_or_none(desk, run_id)
    commands: list[Command] = []
    if run is None:
        plan: JsonValue = {"recipe": RECIPE, "model": model}
        commands.append(OpenRun(actor=actor, intent=turns[0], plan=plan))
    elif PLANNER in run.tasks:
        msg = f"run {run_id!r} has its plan already; begin a new conversation"
        raise TransitionError(msg)
    elif not is_conversation(run):
        msg = f"run {run_id!r} is not a configuration"
        raise ContractError(msg)
    said = len(_turns(run)) if run else 0
    for number, text in enumerate(turns, start=said + 1):
        commands.append(Post(actor=actor, manifest=_turn(number, text)))
    desk.handle(run_id, *commands)


async def go_on(
    desk: Desk,
    run_id: RunId,
    team: Team,
    *,
    state: Path,
    tell: Listener = to_nobody,
    ttl: timedelta = timedelta(seconds=30),
) -> Standing:
    """Bring the run as far as it goes without a person, and return how it then stands."""
    site = file_less_site(desk, state, tell=tell)
    crew = crew_of(team.executors(), owner=RECIPE, at_once=1)
    crew = replace(crew, ttl=ttl)
    topology = configuring(team)
    async with anyio.create_task_group() as group:
        group.start_soon(_stop_when_asked, site, run_id, topology, group.cancel_scope)
        # A question whose time passed may end the driver with something left to post.
        while topology(await drive(site, run_id, topology, crew)):
            continue
        group.cancel_scope.cancel()
    return await to_thread.run_sync(standing, desk, run_id, team)


def standing(desk: Desk, run_id: RunId, team: Team) -> Standing:
    """Return how the conversation stands, from the ledger alone.

    Raises:
        ContractError: The run is not one of this recipe.
    """
    run = desk.run(run_id)
    if not is_conversation(run):
        msg = f"run {run_id!r} is not a configuration"
        raise ContractError(msg)
    notes = _notes(run)
    return Standing(
        run_id=run_id,
        phase=_phase(run),
        run=run,
        notes=notes,
        pivot=pivot(notes, team.clarity),
        log=_log(run),
    )


def is_conversation(run: RunState) -> bool:
    """Say whether a run was opened by this recipe."""
    return isinstance(run.plan, dict) and run.plan.get("recipe") == RECIPE


def model_of(run: RunState) -> str | None:
    """Return the model that listens and plans in this conversation, if one does."""
    model = run.plan.get("model") if isinstance(run.plan, dict) else None
    return model if isinstance(model, str) else None


def output_of(run: RunState, node: str) -> JsonValue:
    """Return what a node gave when it ran last; None if it has not been accepted."""
    found = [
        task.record.output
        for name, task in run.in_order()
        if name.partition(".")[0] == node and task.status is Status.ACCEPTED and task.record
    ]
    return found[-1] if found else None


async def _stop_when_asked(
    site: Site, run_id: RunId, topology: Topology, scope: anyio.CancelScope
) -> None:
    """Let go when nothing is left but questions: another process may take the answers."""
    while True:
        await anyio.sleep(_POLL)
        run = await to_thread.run_sync(site.desk.run, run_id)
        statuses = {task.status for task in run.tasks.values()}
        asked = Status.ASKED in statuses and not statuses & _MOVING
        if asked and not _late(run, site.clock()) and not topology(run):
            scope.cancel()


def _late(run: RunState, now: datetime) -> bool:
    """Say whether the time of a question has passed, so that its policy must be followed."""
    deadlines = [t.deadline for t in run.tasks.values() if t.status is Status.ASKED]
    return any(deadline is not None and deadline <= now for deadline in deadlines)


def _plan_if_clear(run: RunState, team: Team) -> tuple[Command, ...]:
    turns = _turns(run)
    if not turns or any(run.tasks[name].status is not Status.ACCEPTED for name in turns):
        return ()
    notes = _notes(run)
    if not pivot(notes, team.clarity).ready:
        return ()
    manifest = Manifest(
        task_id=PLANNER,
        objective="Write the whole plan from the notes",
        intent=run.intent,
        executor=PLANNER,
        input=notes.model_dump(mode="json"),
        input_schema=Notes.model_json_schema(),
        output_schema=ContextLog.model_json_schema(),
    )
    return (Post(actor=RECIPE, manifest=manifest),)


def _turn(number: int, text: str) -> Manifest:
    return Manifest(
        task_id=f"{_TURN}{number}",
        objective="Note what this turn of the conversation settles",
        executor=ANNOTATOR,
        needs=(f"{_TURN}{number - 1}",) if number > 1 else (),
        input=Heard(turn=number, text=text).model_dump(mode="json"),
        output_schema=Notes.model_json_schema(),
    )


def _phase(run: RunState) -> Phase:
    statuses = {task.status for task in run.tasks.values()}
    if Status.ASKED in statuses:
        return "asking"
    if Status.ESCALATED in statuses:
        return "stuck"
    if not statuses <= SETTLED:
        return "working"
    if PLANNER not in run.tasks:
        return "talking"
    return "done" if statuses <= {Status.ACCEPTED} else "failed"


def _notes(run: RunState) -> Notes:
    for name in reversed(_turns(run)):
        task = run.tasks[name]
        if task.status is Status.ACCEPTED and task.record is not None:
            return Notes.model_validate(task.record.output)
    return Notes()


def _log(run: RunState) -> ContextLog | None:
    task = run.tasks.get(PLANNER)
    if task is None or task.status is not Status.ACCEPTED or task.record is None:
        return None
    return ContextLog.model_validate(task.record.output)


def _turns(run: RunState) -> list[str]:
    return [name for name, _ in run.in_order() if name.startswith(_TURN)]


def _run_or_none(desk: Desk, run_id: RunId) -> RunState | None:
    try:
        return desk.run(run_id)
    except UnknownRun:
        return None
