"""The registry: the one place where a new specialist node is added.

The planner includes a node when its predicate over the notes says so; the dispatcher finds
its executor here; nobody else has to know of it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from pydantic import JsonValue

from agent_run.contract.base import Contract
from agent_run.contract.brief import Brief
from agent_run.contract.manifest import OnSilence
from agent_run.contract.notes import Notes
from agent_run.contract.payload import payload_faults
from agent_run.contract.record import Question, Record
from agent_run.errors import ContractError
from agent_run.executors.function import executor
from agent_run.ports.executor import Executor

Configuration: TypeAlias = dict[str, JsonValue]


class Stop(Contract):
    """One line of the plan context log."""

    node: str
    message: str


class NodeInput(Contract):
    """What every node is handed besides its message: the notes and the whole log."""

    notes: Notes
    log: tuple[Stop, ...] = ()


@dataclass(frozen=True, slots=True)
class Waiting:
    """How long a node waits for a person, and what follows silence."""

    within: timedelta | None = None
    """`None` means as long as it takes."""
    on_silence: OnSilence = "escalate"


@dataclass(frozen=True, slots=True)
class Specialist:
    """One node that the planner may include."""

    executor: Executor
    when: Callable[[Notes], bool]
    message: Callable[[Notes], str]
    """Why the node is visited and what it shall do, in a sentence."""
    waits: Waiting | None = None
    """`None` means that it asks nobody."""

    @property
    def name(self) -> str:
        return self.executor.name


@dataclass(frozen=True, slots=True)
class Registry:
    """All specialists, in the order in which a plan visits them, and the fixed last nodes."""

    specialists: tuple[Specialist, ...]
    final: tuple[Specialist, ...] = ()

    def __post_init__(self) -> None:
        names = [one.name for one in (*self.specialists, *self.final)]
        if len(set(names)) != len(names):
            msg = f"a node stands twice among {', '.join(names)}"
            raise ContractError(msg)

    def with_specialist(self, added: Specialist, *, before: str | None = None) -> "Registry":
        """Return the registry with one more node, at the end or before another."""
        place = len(self.specialists)
        if before is not None:
            place = [one.name for one in self.specialists].index(before)
        nodes = (*self.specialists[:place], added, *self.specialists[place:])
        return Registry(nodes, self.final)

    def included(self, notes: Notes) -> Iterator[Specialist]:
        """Yield the specialists that these notes call for."""
        return (one for one in self.specialists if one.when(notes))

    def find(self, name: str) -> Specialist | None:
        """Return the node called `name`, if there is one."""
        return next((one for one in (*self.specialists, *self.final) if one.name == name), None)

    def executors(self) -> tuple[Executor, ...]:
        """Return who works at the nodes."""
        return tuple(one.executor for one in (*self.specialists, *self.final))


def specialist(name: str, work: Callable[[Notes, Configuration], JsonValue]) -> Executor:
    """Return a node that adds what `work` makes of notes and configuration under its name."""

    @executor(name)
    def node(brief: Brief) -> Record:
        made = work(notes_of(brief), so_far(brief))
        return Record(status="done", output={**so_far(brief), name: made}, confidence=1.0)

    return node


def asks_a_person(name: str, question: Callable[[Notes, Configuration], Question]) -> Executor:
    """Return a node that asks a typed question and takes only an answer that fits.

    The answer stands in the ledger before the node runs again and reads it.
    """

    @executor(name)
    def node(brief: Brief) -> Record:
        asked = question(notes_of(brief), so_far(brief))
        if not brief.answers:
            return Record(status="blocked", question=asked, notes=asked.text)
        answer = brief.answers[-1].answer
        faults = payload_faults(answer, asked.answer_schema or {})
        if faults:
            again = f"{asked.text} (the last answer does not fit: {'; '.join(faults)})"
            repeated = asked.model_copy(update={"text": again})
            return Record(status="blocked", question=repeated, notes=again)
        return Record(status="done", output={**so_far(brief), name: answer}, confidence=1.0)

    return node


def notes_of(brief: Brief) -> Notes:
    """Return the notes that a node was handed."""
    return NodeInput.model_validate(brief.input).notes


def so_far(brief: Brief) -> Configuration:
    """Return what the nodes before this one have configured."""
    merged: Configuration = {}
    for envelope in brief.envelopes:
        if isinstance(envelope.payload, dict):
            merged.update(envelope.payload)
    return merged


def names_of(nodes: Iterable[Specialist]) -> tuple[str, ...]:
    """Return the names of the nodes."""
    return tuple(one.name for one in nodes)
