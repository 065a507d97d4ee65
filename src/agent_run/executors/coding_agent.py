"""A coding agent's command line as an executor: a preset, run inside the fence.

What the agent reports about itself is not evidence. The record it gives is taken as its word,
the commands and tokens of its event stream as what was seen.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio

from agent_run.contract.paths import is_literal
from agent_run.contract.record import Record
from agent_run.errors import ContractError, InvalidDocument
from agent_run.executors.command import seen_in
from agent_run.executors.handing_over import Papers, papers_for, read_left_behind, record_from
from agent_run.executors.presets.shapes import (
    Assignment,
    Endpoint,
    Invocation,
    Observation,
    Output,
    Preset,
    Program,
)
from agent_run.ports.executor import Job, Seen, Work
from agent_run.ports.fence import Finished, Launch, Network


@dataclass(frozen=True, slots=True)
class CodingAgent:
    """Runs one preset for every attempt."""

    name: str
    preset: Preset
    find: Callable[[], Program]
    """Looks the program up when it is needed.

    Raises:
        ExecutorMissing: It is not installed.
    """
    endpoint: Endpoint = field(default_factory=Endpoint)
    env: Mapping[str, str] = field(default_factory=dict)
    secret: Callable[[str], str | None] = lambda _name: None
    """Reads a variable of the user's environment that the configuration names."""
    readable: tuple[Path, ...] = ()
    network: Network | None = None
    """What the tool may reach. `None` is what its preset asks for."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """Limits of its own, by their names in `Limits`; they replace those of the job."""
    wants_workspace: bool = True

    async def run(self, job: Job) -> Work:
        """Run the agent to its end, or to the end of its time."""
        if job.workspace is None:
            msg = f"executor {self.name!r} works on files and was given no workspace"
            raise ContractError(msg)
        papers = await anyio.to_thread.run_sync(papers_for, job)
        invocation = self.preset.invocation(self._assignment(job, papers, job.workspace))
        await anyio.to_thread.run_sync(_prepare, invocation)
        finished = await job.fence.run(self._launch(job, papers, invocation))
        files = await anyio.to_thread.run_sync(_left_behind, invocation)
        output = Output(
            stdout=finished.stdout.decode(errors="replace"),
            stderr=finished.stderr.decode(errors="replace"),
            exit_code=finished.exit_code,
            files=files,
        )
        observation = self.preset.read_events(output)
        record, invalid = _record(observation)
        return Work(record, _seen(finished, observation), invalid)

    def _assignment(self, job: Job, papers: Papers, workspace: Path) -> Assignment:
        allowed = job.brief.manifest.allowed_paths
        editable = (path for path in allowed if is_literal(path))
        return Assignment(
            brief=job.brief.to_markdown(),
            brief_path=papers.brief,
            workspace=workspace,
            home=papers.home,
            program=self.find(),
            endpoint=self.endpoint,
            editable=tuple(path for path in editable if (workspace / path).is_file()),
        )

    def _launch(self, job: Job, papers: Papers, invocation: Invocation) -> Launch:
        secrets = {
            inside: value
            for inside, outside in invocation.secrets.items()
            if (value := self.secret(outside)) is not None
        }
        network = self.network if self.network is not None else invocation.hosts
        if isinstance(job.network, tuple) and isinstance(network, tuple):
            network = (*network, *job.network)
        return Launch(
            argv=invocation.argv,
            cwd=invocation.cwd,
            env={**self.env, **papers.env, **invocation.env, **secrets},
            writable=(job.tree or invocation.cwd, *papers.writable),
            readable=(*self.readable, *papers.readable, *invocation.readable),
            network="allow" if job.network == "allow" else network,
            limits=replace(job.limits, **self.limits),
        )


def _prepare(invocation: Invocation) -> None:
    for folder in invocation.folders:
        folder.mkdir(parents=True, exist_ok=True)
    for path, text in invocation.files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _left_behind(invocation: Invocation) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, path in invocation.results.items():
        try:
            content = read_left_behind(path)
        except InvalidDocument:
            continue  # not a file we may read: the preset then says that there is none
        if content is not None:
            found[name] = content.decode(errors="replace")
    return found


def _record(observation: Observation) -> tuple[Record | None, str]:
    if observation.record is None:
        return None, ""
    try:
        return record_from(observation.record), ""
    except InvalidDocument as error:
        return None, str(error)


def _seen(finished: Finished, observation: Observation) -> Seen:
    seen = seen_in(finished)
    return replace(
        seen,
        commands_run=tuple(run.command for run in observation.commands_run),
        tokens_used=observation.tokens_in + observation.tokens_out,
        requests_made=observation.requests_made or 0,
        cost_usd=observation.cost_usd,
        model=observation.model,
        error=seen.error or observation.error or "",
        transcript="\n".join(observation.transcript).encode() or seen.transcript,
    )
