"""The manifest: what a planner asks for, and what it allows.

A manifest is written once, before any work, and read by everyone after: the executor to
know its bounds, the fence to enforce them, the gates to judge by them.
"""

from datetime import timedelta
from typing import Annotated, Literal, TypeAlias

from pydantic import BeforeValidator, Field, JsonValue, StringConstraints, field_validator

from agent_run.contract.base import (
    Contract,
    Duration,
    Flag,
    Line,
    Lines,
    Name,
    Share,
    TaskId,
    Whole,
    as_tuple,
    first_repeated,
)
from agent_run.contract.budget import Budget
from agent_run.contract.paths import fault_of

Review: TypeAlias = Literal["auto", "human", "human-if-risky"]
OnCrash: TypeAlias = Literal["retry", "escalate"]
OnSilence: TypeAlias = Literal["escalate", "fail", "skip"]
Host: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9*.\[\]:_-]+$", max_length=255)
]
ExecutorName: TypeAlias = Annotated[
    str,
    StringConstraints(pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]*|agent:[!-~]+)$", max_length=200),
]
PathGlob: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=1_000)]
Paths: TypeAlias = Annotated[
    tuple[PathGlob, ...],
    BeforeValidator(as_tuple, json_schema_input_type=PathGlob | tuple[PathGlob, ...]),
]


class Check(Contract):
    """One command that must succeed in a clean checkout of the result."""

    run: Line
    timeout: Duration = Field(timedelta(minutes=10), json_schema_extra={"default": "10m"})
    min_passed: Whole | None = Field(default=None, ge=1)
    """How many tests must have passed, by a report the tested code cannot write."""
    name: str = ""


def _as_check(value: object) -> object:
    return {"run": value} if isinstance(value, str) else value


Checks: TypeAlias = Annotated[
    tuple[
        Annotated[Check, BeforeValidator(_as_check, json_schema_input_type=Line | Check)], ...
    ],
    BeforeValidator(as_tuple, json_schema_input_type=Line | tuple[Line | Check, ...]),
]
Needs: TypeAlias = Annotated[
    tuple[TaskId, ...],
    BeforeValidator(as_tuple, json_schema_input_type=TaskId | tuple[TaskId, ...]),
]


class Manifest(Contract):
    """One task, its bounds, and how it will be judged."""

    task_id: TaskId
    objective: str = Field(min_length=1, max_length=4_000)
    intent: str = Field(default="", max_length=4_000)
    """What the person who started it all asked for, carried along unchanged."""
    allowed_paths: Paths = ()
    """Globs below the repository root. Empty means that nothing may be written."""
    protected_paths: Paths = ()
    """Globs that may never be changed, whatever `allowed_paths` says."""
    constraints: Lines = ()
    verification: Checks = ()
    """Commands that must exit with 0 in a clean checkout of the result."""
    invariants: Checks = ()
    """Commands that must exit with 0 before the work and after it."""
    handoff_notes: Lines = ()
    executor: ExecutorName | None = None
    """Who should do it: a name from the configuration, or `agent:provider:model` for the
    built-in agent. `None` lets anybody claim it."""
    model: str | None = Field(default=None, max_length=200)
    """The model for an executor that asks one. `None` is the configured default."""
    needs: Needs = ()
    """Tasks of the same run that must be accepted before this one may be claimed."""
    input: JsonValue = None
    input_schema: dict[str, JsonValue] | None = None
    """JSON Schema of what may be handed to this task. `None` takes anything."""
    max_input_tokens: Whole | None = Field(default=None, ge=1)
    """How large a payload this task can take in. `None` means no limit."""
    output_schema: dict[str, JsonValue] | None = None
    """JSON Schema that the record's output must satisfy. `None` asks for no output."""
    tools: Lines = ()
    """Tools the executor may use. Empty means its own default set."""
    network: Literal["deny", "allow"] | tuple[Host, ...] = "deny"
    budget: Budget = Budget()
    claim_ttl: Duration = Field(timedelta(minutes=20), json_schema_extra={"default": "20m"})
    min_confidence: Share = 0.0
    review: Review = "auto"
    approve_before_claim: Flag = False
    always: Flag = False
    """Whether it runs even when the budget of the run is used up, as final steps do."""
    on_crash: OnCrash = "retry"
    """Whether work whose owner vanished is tried again or shown to a person."""
    answer_within: Duration | None = None
    """How long a person may take: to answer, to decide, to approve. `None` means no limit."""
    on_silence: OnSilence = "escalate"
    """What follows when nobody came in time."""
    max_diff_lines: Whole | None = Field(default=None, ge=1)
    max_diff_files: Whole | None = Field(default=None, ge=1)
    priority: Whole = Field(default=0, ge=-1_000_000, le=1_000_000)
    labels: dict[Name, str] = Field(default_factory=dict)

    @field_validator("allowed_paths", "protected_paths")
    @classmethod
    def _stay_below_the_root(cls, paths: tuple[str, ...]) -> tuple[str, ...]:
        for path in paths:
            fault = fault_of(path)
            if fault:
                raise ValueError(fault)
        return paths

    @field_validator("needs")
    @classmethod
    def _need_each_once(cls, needs: tuple[TaskId, ...]) -> tuple[TaskId, ...]:
        repeated = first_repeated(needs)
        if repeated is not None:
            msg = f"task {repeated!r} is needed twice"
            raise ValueError(msg)
        return needs
