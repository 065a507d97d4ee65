"""Models by name, their keys from the environment, and the executors that ask them.

Loaded only where a model is asked: everything else starts without any of it.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from agent_run.contract.base import Name
from agent_run.contract.budget import NOTHING, Spend
from agent_run.desk import Desk
from agent_run.engine.purse import purse_of
from agent_run.errors import ContractError, ModelMissing
from agent_run.executors.agent.executor import Agent
from agent_run.executors.planner.planner import Planner
from agent_run.executors.planner.reviewer import Reviewer
from agent_run.executors.planner.thinking import Thinker
from agent_run.gates.review import ReviewGate
from agent_run.models import (
    BytesMeter,
    DayBudget,
    DayPurse,
    ModelOptions,
    open_meter,
    open_model,
)
from agent_run.models.names import parse_model
from agent_run.ports.executor import Executor, Job
from agent_run.ports.meter import Meter
from agent_run.ports.model import (
    Model,
    Purse,
)
from agent_run.wiring.opening import wall_clock
from agent_run.wiring.settings import Settings
from agent_run.wiring.toolbox import Toolbox

BUILT_IN: Final = "agent:"
"""Before a model's name: the built-in agent that asks this model."""
_KEYS: Final[Mapping[str, str]] = {
    "anthropic": "ANTHROPIC_API_KEY",
    "openai": "OPENAI_API_KEY",
    "openai-chat": "OPENAI_API_KEY",
}


@dataclass(frozen=True, slots=True)
class Asking:
    """What executors that ask a model have in common."""

    desk: Desk
    settings: Settings
    tools: Toolbox

    def agent(self, name: Name, model: str | None, *, key: str | None = None) -> Executor:
        """Return the built-in agent, asking `model` unless a manifest names another."""
        return Agent(
            name=name,
            open_model=self.opener(model, key=key),
            meter=usual_meter(),
            purse_for=self.purse,
            env=self.tools.env,
            readable=self.tools.readable,
        )

    def planner(self, name: Name, model: str | None, *, key: str | None = None) -> Executor:
        """Return a planner: a task whose output is a plan."""
        return Planner(name, self._thinker(model, key), self.tools.path)

    def reviewer(self, name: Name, model: str | None, *, key: str | None = None) -> Executor:
        """Return a reviewer: a task whose output is a review of its input."""
        return Reviewer(name, self._thinker(model, key))

    def opener(self, model: str | None, *, key: str | None) -> Callable[[str | None], Model]:
        """Return what opens a manifest's own model, or the configured one."""
        usual = model or self.settings.model
        return lambda wanted: named_model(wanted or usual, key=key)

    def purse(self, job: Job) -> Purse:
        """Return who pays for the calls of a job: its task, its run, and the day."""
        return held_to_the_day(purse_of(self.desk, job.brief), self.desk, self.settings)

    def _thinker(self, model: str | None, key: str | None) -> Thinker:
        return Thinker(self.opener(model, key=key), usual_meter(), self.purse)


def named_model(name: str | None, *, key: str | None = None) -> Model:
    """Return the model called `name`; its key is read from the variable `key`.

    Raises:
        ContractError: No model is named, or the name is not one.
        ModelMissing: The key or the library it needs is not there.
    """
    if name is None:
        msg = "no model is named: use --model, or set `model` in agent-run.toml"
        raise ContractError(msg)
    wanted = parse_model(name)
    variable = key or _KEYS.get(wanted.provider)
    value = os.environ.get(variable) if variable else None
    if key is not None and value is None:
        msg = f"model {wanted.text!r} needs the key in {key}, which is not set"
        raise ModelMissing(msg)
    return open_model(name, ModelOptions(api_key=value))


def review_gate(name: str, desk: Desk, settings: Settings) -> ReviewGate:
    """Return the gate in which the model called `name` reads every change."""
    return ReviewGate(
        named_model(name),
        usual_meter(),
        desk.store.blob,
        held_to=lambda purse: held_to_the_day(purse, desk, settings),
    )


def held_to_the_day(purse: Purse, desk: Desk, settings: Settings) -> Purse:
    """Return the purse, held to what all runs together may spend on one day."""
    limit = settings.day_budget_usd
    if limit is None:
        return purse
    return DayPurse(purse, DayBudget(max_cost_usd=limit), lambda: spent_today(desk))


def usual_meter() -> Meter:
    """Return the exact counter if its library is here, else one that never counts too few."""
    try:
        return open_meter()
    except ModelMissing:
        return BytesMeter()


def spent_today(desk: Desk) -> Spend:
    """Return what runs opened today have spent or set aside."""
    today = wall_clock().date()
    total = NOTHING
    for row in desk.runs():
        if row.opened_at.date() != today:
            break
        total += desk.run(row.run_id).committed
    return total
