"""What a fence is asked for and what it gives back.

A fence runs one command of somebody we do not trust, holds it to what `Launch` grants,
and returns only when every process of that command is dead.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

Network = Literal["deny", "allow"] | tuple[str, ...]
"""`"deny"` leaves a private loopback, `"allow"` everything; or names, as `host[:port]`."""

Stream = Literal["stdout", "stderr"]

Kind = Literal["namespaces+landlock+seccomp", "namespaces+seccomp", "landlock+seccomp", "none"]

Ended = Literal[
    "exited",
    "signalled",
    "unstartable",
    "timeout",
    "cpu",
    "memory",
    "processes",
    "disk",
    "output_limit",
]
"""Why a command is over. Only `"exited"` and `"signalled"` are the command's own doing."""

OnLine = Callable[[Stream, bytes], None]
"""Gets each line as it is complete, without its newline."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one command may use; the whole process tree is counted together."""

    wall_sec: float | None = None
    """None means no limit, here and below."""
    cpu_sec: int | None = None
    memory_mb: int | None = None
    """Resident memory, shared pages counted once, and private files where those live in it."""
    processes: int | None = None
    """Processes and threads alive at one moment."""
    disk_mb: int | None = None
    """Size of each file, and of everything in the writable trees together."""
    output_bytes: int = 16 * 1024 * 1024
    """Of stdout and stderr together; the command is ended when it writes more."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One command and everything it may touch. Its stdin is always empty."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    """Nothing is inherited; `HOME`, `TMPDIR`, `PATH` and a few more are set where absent."""
    writable: tuple[Path, ...] = ()
    """Trees or files; `/tmp`, `/dev/shm` and the home are private and always writable."""
    readable: tuple[Path, ...] = ()
    """Trees or files besides the system's own; readable and executable."""
    hidden: tuple[Path, ...] = ()
    """What must not be seen although a tree above it is granted; the deepest path wins."""
    network: Network = "deny"
    limits: Limits = Limits()


@dataclass(frozen=True, slots=True)
class Mechanism:
    """One kernel mechanism, and what trying it on this machine gave."""

    name: str
    works: bool
    detail: str


@dataclass(frozen=True, slots=True)
class FenceReport:
    """What is held on this machine and what is not, in sentences for people."""

    kind: Kind
    abi: int | None
    """The version of Landlock in use; None when Landlock is not."""
    holds: tuple[str, ...]
    lacks: tuple[str, ...]
    mechanisms: tuple[Mechanism, ...] = ()


@dataclass(frozen=True, slots=True)
class Finished:
    """A command that is over, with every process that it started."""

    ended: Ended
    exit_code: int | None
    """None when the command did not exit by itself."""
    signal: int | None
    detail: str
    """One sentence on what ended it; empty for a plain exit."""
    stdout: bytes
    stderr: bytes
    stdout_truncated: bool
    stderr_truncated: bool
    elapsed_ms: int
    cpu_ms: int
    """Of the whole tree, the fence's own start included."""
    refused_hosts: tuple[str, ...]
    """What the command asked the network forwarder for and did not get."""
    fence: FenceReport


class Fence(Protocol):
    """Runs commands of strangers."""

    def report(self) -> FenceReport:
        """What this fence holds and lacks."""
        ...

    async def run(self, launch: Launch, *, on_line: OnLine | None = None) -> Finished:
        """How the command ended, when nothing of it is alive any more.

        A cancelled call kills the whole tree and waits for its death first.

        Raises:
            ContractError: `launch` cannot be meant.
            FenceUnavailable: this machine cannot hold what `launch` asks for.
            FenceBroken: the fence itself failed; nothing is known about the work.
        """
        ...
