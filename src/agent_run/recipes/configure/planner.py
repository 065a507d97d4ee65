"""The planner reads only the notes and writes the whole plan context log, before any node runs.

What it writes is checked against the registry, so that the dispatcher never meets a node that
nobody knows; then the log is followed in its order, without any further decision.
"""

from typing import Final

from pydantic import Field, JsonValue

from agent_run.contract.base import Contract
from agent_run.contract.brief import Brief
from agent_run.contract.manifest import Manifest
from agent_run.contract.notes import Notes
from agent_run.contract.plan import Plan
from agent_run.contract.record import Record
from agent_run.contract.values import valid
from agent_run.errors import InvalidDocument
from agent_run.executors.function import executor
from agent_run.models.asking import ask_for
from agent_run.ports.executor import Executor
from agent_run.ports.model import ModelRequest, Prompt
from agent_run.recipes.asking import Asker
from agent_run.recipes.configure.registry import (
    NodeInput,
    Registry,
    Specialist,
    Stop,
    names_of,
)

PLANNER: Final = "planner"
_INSTRUCTIONS: Final = """\
You read notes about what a user wants and write the plan: which nodes are visited, in which
order, and for each node one message that says why it is visited and what it shall do. Use
only the nodes you are given, each at most once. You see nothing but the notes."""


class ContextLog(Contract):
    """The plan context log: every node that will be visited, with its message."""

    plan: tuple[Stop, ...] = Field(min_length=1)


def context_log(notes: Notes, registry: Registry) -> ContextLog:
    """Return the log that the predicates of the registry make of these notes."""
    nodes = (*registry.included(notes), *registry.final)
    stops = tuple(Stop(node=one.name, message=one.message(notes)) for one in nodes)
    return ContextLog(plan=stops)


def log_faults(log: ContextLog, registry: Registry) -> list[str]:
    """Return a sentence for each stop that cannot be followed."""
    known = names_of((*registry.specialists, *registry.final))
    seen: set[str] = set()
    faults: list[str] = []
    for number, stop in enumerate(log.plan):
        if stop.node not in known:
            faults.append(
                f"plan[{number}].node is {stop.node!r}, expected one of {', '.join(known)}"
            )
        elif stop.node in seen:
            faults.append(f"plan[{number}].node is {stop.node!r} again")
        seen.add(stop.node)
    return faults


def dispatchable(log: ContextLog, notes: Notes, registry: Registry) -> Plan:
    """Return the log as a plan; the fixed nodes stand at the end, whatever the log says."""
    said = {stop.node: stop.message for stop in log.plan}
    fixed = names_of(registry.final)
    handed = NodeInput(notes=notes, log=log.plan).model_dump(mode="json")
    steps = [
        _manifest(stop.node, stop.message, registry, handed)
        for stop in log.plan
        if stop.node not in fixed
    ]
    final = [
        _manifest(one.name, said.get(one.name) or one.message(notes), registry, None)
        for one in registry.final
    ]
    # Not validated as a whole: a plan of nothing but its end is followed, too.
    return Plan.model_construct(
        objective=notes.requirements[0] if notes.requirements else "",
        order="sequence",
        steps=tuple(steps),
        final=tuple(final),
    )


def registry_planner(registry: Registry) -> Executor:
    """Return a planner that goes by the predicates of the registry and needs no model."""

    @executor(PLANNER)
    def plan(brief: Brief[Notes]) -> Record[ContextLog]:
        log = context_log(_notes(brief), registry)
        return Record[ContextLog](status="done", output=log, confidence=1.0)

    return plan


def model_planner(registry: Registry, ask: Asker) -> Executor:
    """Return a planner that asks a model; a log with unknown nodes is said back to it."""

    @executor(PLANNER)
    async def plan(brief: Brief[Notes]) -> Record[ContextLog]:
        notes = _notes(brief)
        nodes = "\n".join(f"- {one.name}: {one.message(notes)}" for one in registry.specialists)
        told = f"Nodes:\n{nodes}\n\nNotes:\n{notes.model_dump_json()}"
        schema: dict[str, JsonValue] = ContextLog.model_json_schema()
        request = ModelRequest(
            messages=(Prompt(text=told),),
            instructions=_INSTRUCTIONS,
            output_schema=schema,
            output_name="plan",
            step="plan",
        )
        given = await ask_for(ask(brief, None), request, lambda value: _read(value, registry))
        tokens = sum(answer.usage.tokens for answer in given.answers)
        requests = sum(answer.usage.requests for answer in given.answers)
        return Record[ContextLog](
            status="done", output=given.value, tokens_used=tokens, requests_made=requests
        )

    return plan


def _read(value: JsonValue, registry: Registry) -> ContextLog:
    log = valid(ContextLog, value)
    faults = log_faults(log, registry)
    if faults:
        raise InvalidDocument("\n".join(faults), tuple(faults))
    return log


def _notes(brief: Brief[Notes]) -> Notes:
    if brief.input is None:
        msg = "the planner was handed no notes"
        raise InvalidDocument(msg)
    return brief.input


def _manifest(name: str, message: str, registry: Registry, handed: JsonValue) -> Manifest:
    node: Specialist | None = registry.find(name)
    waits = node.waits if node else None
    return Manifest(
        task_id=name,
        objective=message,
        executor=name,
        input=handed,
        answer_within=waits.within if waits else None,
        on_silence=waits.on_silence if waits else "escalate",
    )
