"""A coding agent's command line as an executor: a preset, run inside the fence.

What the agent reports about itself is not evidence. The record it gives is taken as its word,
the commands and tokens of its event stream as what was seen.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import anyio

from agent_run.contract.paths import is_literal
from agent_run.contract.record import Record
from agent_run.errors import ContractError, InvalidDocument, ModelMissing
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

LARGEST_RESULT: Final = 64 << 20
"""Bytes of one file that an agent leaves; the trajectory of a long run has millions."""


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
        keys = self._keys(invocation)
        await anyio.to_thread.run_sync(_prepare, invocation)
        ended = await job.fence.run(self._launch(job, papers, invocation, keys))
        finished = replace(
            ended, stdout=_without(keys, ended.stdout), stderr=_without(keys, ended.stderr)
        )
        files, unread = await anyio.to_thread.run_sync(_left_behind, invocation, keys)
        output = Output(
            stdout=finished.stdout.decode(errors="replace"),
            stderr=finished.stderr.decode(errors="replace"),
            exit_code=finished.exit_code,
            files=files,
        )
        # A long run leaves megabytes behind, and the heartbeat must not wait for them.
        observation = await anyio.to_thread.run_sync(self.preset.read_events, output)
        record, invalid = _record(observation)
        return Work(record, _seen(finished, observation), invalid or unread)

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

    def _keys(self, invocation: Invocation) -> dict[str, str]:
        keys: dict[str, str] = {}
        for inside, outside in invocation.secrets.items():
            value = self.secret(outside)
            if not value:
                msg = f"executor {self.name!r} needs a key in {outside!r}, which is not set"
                raise ModelMissing(msg)
            keys[inside] = value
        return keys

    def _launch(
        self, job: Job, papers: Papers, invocation: Invocation, keys: Mapping[str, str]
    ) -> Launch:
        network = self.network if self.network is not None else invocation.hosts
        if isinstance(job.network, tuple) and isinstance(network, tuple):
            network = (*network, *job.network)
        return Launch(
            argv=invocation.argv,
            cwd=invocation.cwd,
            env={**job.env, **self.env, **papers.env, **invocation.env, **keys},
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


def _left_behind(invocation: Invocation, keys: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """Return the text of what the agent left, and why something there cannot be read."""
    found: dict[str, str] = {}
    unread: list[str] = []
    for name, path in invocation.results.items():
        try:
            content = read_left_behind(path, most=LARGEST_RESULT)
        except InvalidDocument as error:
            unread.append(str(error))
            continue
        if content is not None:
            found[name] = _without(keys, content).decode(errors="replace")
    return found, "; ".join(unread)


def _without(keys: Mapping[str, str], output: bytes) -> bytes:
    """Return `output` with a word in the place of every key: it goes into the ledger."""
    for inside, value in keys.items():
        output = output.replace(value.encode(), f"[{inside}]".encode())
    return output


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
        requests_made=_requests(observation),
        cost_usd=observation.cost_usd,
        model=observation.model,
        error=_error(finished, seen.error, observation.error or ""),
        transcript="\n".join(observation.transcript).encode() or seen.transcript,
    )


def _requests(observation: Observation) -> int:
    """Return how often the model was asked: at least once where it is not known how often.

    A run without requests would have a price, which is nothing.
    """
    if observation.requests_made is not None:
        return observation.requests_made
    return 1 if observation.tokens_in + observation.tokens_out else 0


def _error(finished: Finished, seen: str, said: str) -> str:
    """Return why it failed: by its own words where it ended itself, else by the fence's too."""
    if finished.ended == "exited" or not said:
        return said or seen
    return f"{seen}; {said}"
