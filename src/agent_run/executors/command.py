"""Any command as an executor: it works in its workspace, inside the fence, and answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio

from agent_run.errors import ContractError
from agent_run.executors.handing_over import papers_for, record_of
from agent_run.ports.executor import Job, Seen, Work
from agent_run.ports.fence import Finished, Launch, Network


@dataclass(frozen=True, slots=True)
class CommandExecutor:
    """Runs one shell command for every attempt."""

    name: str
    command: str
    env: Mapping[str, str] = field(default_factory=dict)
    """The variables of the user's environment that were named, and the search path."""
    readable: tuple[Path, ...] = ()
    network: Network | None = None
    """What the command needs itself. `None` leaves it to the manifest."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """Limits of its own, by their names in `Limits`; they replace those of the job."""
    wants_workspace: bool = True

    async def run(self, job: Job) -> Work:
        """Run the command to its end, or to the end of its time."""
        if job.workspace is None:
            msg = f"executor {self.name!r} works on files and was given no workspace"
            raise ContractError(msg)
        papers = await anyio.to_thread.run_sync(papers_for, job)
        launch = Launch(
            argv=("/bin/sh", "-c", self.command),
            cwd=job.workspace,
            env={**job.env, **self.env, **papers.env},
            writable=(job.tree or job.workspace, *papers.writable),
            readable=(*self.readable, *papers.readable),
            network=self.network if self.network is not None else job.network,
            limits=replace(job.limits, **self.limits),
        )
        finished = await job.fence.run(launch)
        record, invalid = await anyio.to_thread.run_sync(record_of, papers, finished.stdout)
        return Work(record, seen_in(finished), invalid)


def seen_in(finished: Finished) -> Seen:
    """Return what a finished process shows by itself."""
    return Seen(
        exit_code=finished.exit_code,
        ended=finished.ended,
        detail=finished.detail,
        elapsed_ms=finished.elapsed_ms,
        error=why_it_failed(finished),
        refused_hosts=finished.refused_hosts,
        transcript=transcript_of(finished),
        fence=finished.fence,
    )


def why_it_failed(finished: Finished) -> str:
    """Return why the process did not end well; the empty string if it did."""
    if finished.ended != "exited":
        return finished.detail or f"ended by {finished.ended}"
    if finished.exit_code:
        last = finished.stderr.decode(errors="replace").strip().splitlines()[-1:]
        return f"exit {finished.exit_code}" + (f": {last[0][:300]}" if last else "")
    return ""


def transcript_of(finished: Finished) -> bytes:
    """Return what the process wrote, with a word wherever something is missing."""
    parts = []
    for title, text, cut in (
        (b"stdout", finished.stdout, finished.stdout_truncated),
        (b"stderr", finished.stderr, finished.stderr_truncated),
    ):
        if text:
            parts.append(b"--- " + title + b"\n" + text)
        if cut:
            parts.append(b"\n--- " + title + b" was longer than allowed and is cut here\n")
    return b"\n".join(parts)
