"""Executors in our own process, for what does not need a fence."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from agent_run.contract.record import Record
from agent_run.ports.executor import Job, Seen, Work
from tests.support.projects import FIXED

SYNC = "src/github_sync.py"


@dataclass(slots=True)
class Fake:
    """Does what `deed` says in the workspace, and remembers what it was given."""

    deed: Callable[[Path], None] = lambda workspace: None
    record: Record | None = None
    seen: Seen = field(default_factory=Seen)
    before: Callable[[], Awaitable[None]] | None = None
    """Awaited first, as a place to be cancelled at."""
    name: str = "fake"
    wants_workspace: bool = True
    jobs: list[Job] = field(default_factory=list)

    async def run(self, job: Job) -> Work:
        self.jobs.append(job)
        if self.before is not None:
            await self.before()
        if job.workspace is not None:
            self.deed(job.workspace)
        return Work(self.record, self.seen)

    @property
    def brief(self) -> str:
        """What the last attempt was told."""
        return self.jobs[-1].brief.to_markdown()


def fixing(workspace: Path) -> None:
    (workspace / SYNC).write_text(FIXED)


def writing(path: str, content: str) -> Callable[[Path], None]:
    """Return a deed that writes one file."""

    def write(workspace: Path) -> None:
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text(content)

    return write
