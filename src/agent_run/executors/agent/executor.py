"""The built-in agent as an executor: a job in, a record and what was seen out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Final

import anyio

from agent_run.errors import ContractError, ModelError, OverBudget
from agent_run.executors.agent.acting import Hands
from agent_run.executors.agent.ending import ended_by
from agent_run.executors.agent.journal import Journal
from agent_run.executors.agent.loop import AgentLimits, Talk
from agent_run.executors.agent.prompting import told
from agent_run.executors.agent.record import final_offer
from agent_run.executors.agent.tools import allowed_tools
from agent_run.models.paying import Terms, paid
from agent_run.ports.executor import Job, Seen, Work
from agent_run.ports.meter import Meter
from agent_run.ports.model import (
    Model,
    Prompt,
    Purse,
)

_WITHIN_LIMITS: Final = AgentLimits()


@dataclass(frozen=True, slots=True)
class Agent:
    """Asks one model until the task has a record."""

    name: str
    open_model: Callable[[str | None], Model]
    """Opens the model of a manifest, or the configured one for `None`."""
    meter: Meter
    purse_for: Callable[[Job], Purse]
    """Who pays for the calls of a job, and remembers them."""
    cheaper: tuple[Model, ...] = ()
    """Whom to ask instead where the budget's policy is to degrade."""
    limits: AgentLimits = _WITHIN_LIMITS
    terms: Terms = field(default_factory=Terms)
    env: Mapping[str, str] = field(default_factory=dict)
    readable: tuple[Path, ...] = ()
    wants_workspace: bool = True

    async def run(self, job: Job) -> Work:
        """Work until there is a record, or the time, the steps or the money are used up."""
        if job.workspace is None:
            msg = f"executor {self.name!r} works on files and was given no workspace"
            raise ContractError(msg)
        talk = self._talk(job, job.workspace)
        started = monotonic()
        work = Work(None, Seen(ended="timeout", error=f"took over {job.limits.wall_sec} s"))
        with anyio.move_on_after(job.limits.wall_sec):
            work = await _finished(job, talk)
        return replace(work, seen=_seen(work.seen, talk, started))

    def _talk(self, job: Job, workspace: Path) -> Talk:
        manifest = job.brief.manifest
        home = job.folder / "home"
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        env = {**self.env, "HOME": str(home)}
        hands = Hands(job, workspace, env, self.readable, home)
        purse = self.purse_for(job)
        model = self.open_model(manifest.model)
        return Talk(
            model=paid(model, purse, self.meter, self._terms(job)),
            journal=Journal(purse, hands, manifest.on_crash, job.tell),
            offers=(*allowed_tools(manifest), final_offer(manifest.output_schema)),
            limits=self.limits,
            messages=[Prompt(text=told(job.brief))],
            tell=job.tell,
            output_schema=manifest.output_schema,
        )

    def _terms(self, job: Job) -> Terms:
        budget = job.brief.manifest.budget
        return replace(
            self.terms,
            needs_price=self.terms.needs_price or budget.max_cost_usd is not None,
            cheaper=self.cheaper if budget.on_budget == "degrade" else (),
            tell=job.tell,
        )


async def _finished(job: Job, talk: Talk) -> Work:
    """Return what came of the conversation; whatever ended it early is said in the record."""
    try:
        record = await talk.record()
    except (OverBudget, ModelError) as error:
        return ended_by(error, job)
    if record is not None:
        return Work(record, Seen(exit_code=0))
    if talk.invalid:
        return Work(None, Seen(error="no valid record came"), invalid=talk.invalid)
    steps, tokens = f"{talk.limits.steps} steps", f"{talk.limits.tokens} tokens"
    limit = tokens if talk.out_of_tokens else steps
    return Work(None, Seen(error=f"no record came within {limit}"))


def _seen(seen: Seen, talk: Talk, started: float) -> Seen:
    return replace(
        seen,
        elapsed_ms=round((monotonic() - started) * 1_000),
        commands_run=tuple(talk.journal.hands.ran),
        tokens_used=talk.spent.tokens,
        requests_made=talk.spent.requests,
        cost_usd=talk.spent.cost_usd if talk.priced else None,
        model=talk.answered_by or talk.model.name,
        transcript=talk.transcript.as_bytes(),
        fence=talk.journal.hands.job.fence.report(),
    )
