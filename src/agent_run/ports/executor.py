"""What an executor is given and what it brings back: a record, and what was really seen."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Protocol

from agent_run.contract.brief import Brief
from agent_run.contract.record import Record
from agent_run.ports.fence import Fence, FenceReport, Limits, Network


@dataclass(frozen=True, slots=True)
class Job:
    """One attempt, ready to be worked on."""

    brief: Brief
    workspace: Path | None
    """Where to work in a throwaway copy. `None` for work that touches no files."""
    folder: Path
    """A private folder beside the workspace for brief, manifest, record and home."""
    fence: Fence
    limits: Limits = field(default_factory=Limits)
    network: Network = "deny"
    tree: Path | None = None
    """The whole copy. It is more than `workspace` where the project lies in a larger one."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables that name places in the copy."""
    tell: Callable[[str, str], None] = lambda _topic, _text: None
    """Called with a topic and a line for people, as things happen."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the worker saw with its own eyes."""

    exit_code: int | None = None
    ended: str = "exited"
    """How the process came to its end, in the words of the fence."""
    detail: str = ""
    elapsed_ms: int = 0
    commands_run: tuple[str, ...] | None = None
    """`None` means that nobody could see which commands were run."""
    tokens_used: int = 0
    requests_made: int = 0
    cost_usd: Decimal | None = None
    model: str | None = None
    error: str = ""
    """Why the executor did not come to a proper end. Empty means that it did."""
    refused_hosts: tuple[str, ...] = ()
    transcript: bytes = b""
    fence: FenceReport | None = None
    """`None` means that no process was started."""


@dataclass(frozen=True, slots=True)
class Work:
    """What came of one attempt."""

    record: Record | None
    """`None` means that the executor gave no record at all."""
    seen: Seen
    invalid: str = ""
    """Why the record that was given is not one. Empty means that it is, or that none was."""


class Executor(Protocol):
    """Whoever does the work: a command, a coding agent, a function."""

    @property
    def name(self) -> str:
        """The name manifests call it by."""
        ...

    @property
    def wants_workspace(self) -> bool:
        """Whether it works on files, and so needs a copy of the project."""
        ...

    async def run(self, job: Job) -> Work:
        """Do the work. Cancelling stops it, and all it started, before this returns.

        Raises:
            Unfit: It cannot be started on this machine.
        """
        ...
