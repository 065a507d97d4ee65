"""Ways of working together other than a plan, as documents: workers, and specialists."""

from collections.abc import Iterable
from typing import Annotated, Any, Final, Self, TypeAlias

from pydantic import Field, WithJsonSchema, model_validator

from agent_run.contract.base import Contract, Name, RunId, Whole, is_name
from agent_run.contract.budget import Budget
from agent_run.contract.manifest import Manifest

MOST_WORKERS: Final = 10_000
_AS_DECOMPOSED: Final = "As the decomposition says"


_Pattern: TypeAlias = Annotated[
    Manifest,
    WithJsonSchema(
        {"type": "object", "description": "A manifest without task_id and objective."}
    ),
]
_Named: TypeAlias = Annotated[
    Manifest,
    WithJsonSchema({"type": "object", "description": "A manifest without task_id."}),
]
"""What an editor is told: the reader fills in the name, which a manifest needs."""


class Orchestration(Contract):
    """Workers that each do a part, and a synthesis that joins what they brought."""

    plan_id: str | None = Field(default=None, min_length=1, max_length=200)
    objective: str = Field(default="", max_length=4_000)
    """What all of it is for; becomes the intent of the run."""
    synthesis: Manifest
    workers: tuple[Manifest, ...] = Field(default=(), max_length=MOST_WORKERS)
    """The workers, if they are known beforehand."""
    decompose: Manifest | None = None
    """A task whose output names the workers as a plan. `None` if they are known."""
    worker: _Pattern | None = None
    """What every worker named by the decomposition has in common: executor, model, budget."""
    quorum: Annotated[float, Field(gt=0, le=1)] = 1.0
    """The share of workers that must succeed."""
    most_workers: Whole = Field(default=100, ge=1, le=MOST_WORKERS)
    budget: Budget = Budget()
    """What the run as a whole may spend."""
    max_parallel: Whole | None = Field(default=None, ge=1)
    """How many tasks may be worked on at once. `None` means no limit."""

    @model_validator(mode="before")
    @classmethod
    def _name_the_pattern(cls, value: Any) -> Any:
        if isinstance(value, dict) and isinstance(value.get("worker"), dict):
            named = {"task_id": "worker", "objective": _AS_DECOMPOSED, **value["worker"]}
            return {**value, "worker": named}
        return value

    @model_validator(mode="after")
    def _holds(self) -> Self:
        if not self.workers and self.decompose is None:
            msg = "has neither workers nor decompose, expected one of them"
            raise ValueError(msg)
        _refuse_twice(one.task_id for one in self.manifests())
        return self

    @property
    def run_name(self) -> RunId:
        """What its run is called when nobody says it."""
        return _named(self.plan_id, self.synthesis.task_id)

    def manifests(self) -> tuple[Manifest, ...]:
        """Return every task that is known beforehand."""
        first = () if self.decompose is None else (self.decompose,)
        return (*first, *self.workers, self.synthesis)


class Routing(Contract):
    """Specialists who hand over to each other, one at a time."""

    plan_id: str | None = Field(default=None, min_length=1, max_length=200)
    intent: str = Field(min_length=1, max_length=4_000)
    """What is wanted; every specialist reads it unchanged."""
    start: Name
    specialists: dict[Name, _Named] = Field(min_length=1, max_length=1_000)
    """Name -> what that specialist is asked to do. The start is one of them."""
    most_hops: Whole = Field(default=8, ge=1, le=1_000)
    trace_id: str = "unknown"
    budget: Budget = Budget()
    """What the run as a whole may spend."""

    @model_validator(mode="before")
    @classmethod
    def _name_the_specialists(cls, value: Any) -> Any:
        given = value.get("specialists") if isinstance(value, dict) else None
        if not isinstance(given, dict):
            return value
        named = {
            name: {"task_id": name, **one} if isinstance(one, dict) else one
            for name, one in given.items()
        }
        return {**value, "specialists": named}

    @model_validator(mode="after")
    def _holds(self) -> Self:
        if self.start not in self.specialists:
            known = ", ".join(sorted(self.specialists))
            msg = f"starts with {self.start!r}, expected one of {known}"
            raise ValueError(msg)
        return self

    @property
    def run_name(self) -> RunId:
        """What its run is called when nobody says it."""
        return _named(self.plan_id, self.start)

    def manifests(self) -> tuple[Manifest, ...]:
        """Return what each specialist is asked to do."""
        return tuple(self.specialists.values())


def _named(plan_id: str | None, otherwise: str) -> RunId:
    return plan_id if plan_id is not None and is_name(plan_id) else otherwise


def _refuse_twice(names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            msg = f"has two tasks called {name!r}, expected different names"
            raise ValueError(msg)
        seen.add(name)
