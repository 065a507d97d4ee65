"""What a gate is given and what it answers. The executor can reach neither."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from pydantic import JsonValue

from agent_run.contract.manifest import Manifest
from agent_run.contract.record import Record
from agent_run.contract.verdict import Finding
from agent_run.ports.fence import Finished
from agent_run.ports.model import Purse
from agent_run.ports.workspace import Candidate

Which = Literal["base", "result"]


@dataclass(frozen=True, slots=True)
class Errand:
    """One command to be run in a fresh room."""

    command: str
    which: Which
    """Whether the room holds the base or the result."""
    timeout_sec: float
    env: Mapping[str, str] = field(default_factory=dict)
    readable: tuple[Path, ...] = ()
    reports: tuple[str, ...] = ()
    """Names of files the command may leave in the folder `$AGENT_RUN_REPORTS`."""
    papers: Mapping[str, bytes] = field(default_factory=dict)
    """Files that lie in that folder when the command starts."""


@dataclass(frozen=True, slots=True)
class Done:
    """How an errand ended, and the reports it left."""

    finished: Finished
    reports: Mapping[str, bytes]


class Rooms(Protocol):
    """Fresh rooms, made from trusted trees, in which nothing the executor left can wait."""

    @property
    def environment(self) -> str:
        """What else a command's answer depends on: another word for other tools."""
        ...

    async def run(self, errand: Errand) -> Done:
        """Run one command in a room of its own, inside the fence, and tear the room down."""
        ...

    def tree(self, which: Which) -> str:
        """Return the id of what such a room holds."""
        ...


class Cache(Protocol):
    """What was found about the very same thing before."""

    def get(self, key: str) -> JsonValue:
        """Return what was kept under `key`, or None."""
        ...

    def put(self, key: str, value: JsonValue) -> None:
        """Keep `value` under `key`."""
        ...


@dataclass(frozen=True, slots=True)
class Case:
    """A submitted record, with everything needed to judge it."""

    manifest: Manifest
    record: Record
    observed: Mapping[str, JsonValue]
    """What the worker saw, as the ledger has it."""
    candidate: Candidate | None
    """The result as one tree. `None` for work that touches no files."""
    rooms: Rooms | None
    """`None` where there are no files and so no commands to run."""
    cache: Cache
    purse: Purse | None = None
    """Pays for what gates ask of models. `None` means that nobody does, and none is asked."""


class Gate(Protocol):
    """One question about the work."""

    @property
    def name(self) -> str:
        """What findings of this gate are filed under."""
        ...

    async def check(self, case: Case) -> tuple[Finding, ...]:
        """Return what was found; nothing if the gate has no question about this case."""
        ...
