"""Where work is done: the adapters and folders that worker and judge share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agent_run.desk import Desk
from agent_run.engine.telling import Listener, to_nobody
from agent_run.ports.clock import Clock
from agent_run.ports.fence import Fence, Limits
from agent_run.ports.gate import Cache, Gate
from agent_run.ports.meter import Meter
from agent_run.ports.workspace import Dirty, Workspace


@dataclass(frozen=True, slots=True)
class Site:
    """Everything that is needed to work on tasks of one project."""

    desk: Desk
    workspace: Workspace | None
    """`None` where no task touches files."""
    fence: Fence
    gates: tuple[Gate, ...]
    cache: Cache
    clock: Clock
    folder: Path
    """Private folder for jobs and rooms; executors see only what they are granted of it."""
    remove: Callable[[Path], None]
    """Removes a folder that strangers wrote in."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Search path and language: what every command of the judge gets, and nothing else."""
    readable: tuple[Path, ...] = ()
    """The tools on that search path."""
    imports: tuple[str, ...] = ()
    """Folders of the project that Python imports from, relative to its root.

    The user's environment names its own copy there; everyone here is given theirs instead.
    """
    environment: str = ""
    """Says which tools those are; another word when one of them is replaced."""
    limits: Limits = field(default_factory=Limits)
    dirty: Dirty = "refuse"
    tell: Listener = to_nobody
    meter: Meter | None = None
    """Counts the tokens of what is handed over. `None` leaves it uncounted."""
