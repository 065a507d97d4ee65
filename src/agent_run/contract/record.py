"""The execution record: what an executor says it did. A claim, not yet a fact.

Three ways of reporting are read and become this one: the summary of a code change, the
result of a worker, the result of a checking step.
"""

from decimal import Decimal
from typing import Annotated, Any, Final, Generic, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, model_validator
from typing_extensions import TypeVar

from agent_run.contract.base import (
    Contract,
    Flag,
    Line,
    Lines,
    Share,
    TaskId,
    Text,
    Whole,
    as_tuple,
)
from agent_run.contract.budget import NOTHING, Spend
from agent_run.contract.manifest import Paths

RecordStatus: TypeAlias = Literal[
    "needs_review", "done", "passed", "failed", "blocked", "skipped"
]
NextAction: TypeAlias = Literal["continue", "revise", "escalate"]
OutputT = TypeVar("OutputT", default=JsonValue)

_SAME_STATUS: Final = {"success": "done", "completed": "done"}
_UNDECIDED: Final = {
    ("status", "passed|failed|blocked"): "blocked",
    ("next_action", "continue|revise|escalate"): "escalate",
}
"""A model that echoes the choices instead of choosing has decided nothing. The echo is read
as the most careful choice, so that a person looks at it."""


class Evidence(Contract):
    """Something a reader can check: a quote, a link, a test report, a measurement."""

    model_config = ConfigDict(frozen=True, extra="allow")

    type: str = Field(default="note", min_length=1, max_length=100)
    content: Text = ""


class Question(Contract):
    """What an executor must know before it can go on."""

    text: Line
    answer_schema: dict[str, JsonValue] | None = None
    """JSON Schema of the answer. `None` means free text."""
    wider_scope: Paths = ()
    """Globs the executor asks to be allowed to write."""


def _as_question(value: object) -> object:
    return {"text": value} if isinstance(value, str) else value


class Record(Contract, Generic[OutputT]):
    """What was changed, what was run, what may go wrong, and what should come next."""

    task_id: TaskId | None = None
    status: RecordStatus = "needs_review"
    output: OutputT | None = None
    """What the next task is handed, once this one is accepted."""
    files_changed: tuple[str, ...] = ()
    commands_run: tuple[str, ...] = ()
    risks: Lines = ()
    warnings: Lines = ()
    notes: Text = ""
    evidence: tuple[Evidence, ...] = ()
    error: Text = ""
    confidence: Share | None = None
    """`None` means that the executor did not say; a required confidence is then not met."""
    next_step: Text = ""
    next_action: NextAction = "continue"
    question: Annotated[
        Question | None,
        BeforeValidator(_as_question, json_schema_input_type=Line | Question | None),
    ] = None
    tokens_used: Whole = Field(default=0, ge=0)
    requests_made: Whole = Field(default=0, ge=0)
    cost_usd: Decimal | None = Field(default=None, ge=0, allow_inf_nan=False)
    """`None` means that the price is unknown, which is not free."""
    elapsed_ms: Whole = Field(default=0, ge=0)
    observed_only: Flag = False
    """The executor gave no record; this one was built from what was seen."""

    @model_validator(mode="before")
    @classmethod
    def _read_other_shapes(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        record = canonical_record(value)
        output = record.get("output")
        if isinstance(output, BaseModel) and not cls.__pydantic_generic_metadata__["args"]:
            record["output"] = output.model_dump(mode="json")  # what any JSON value may be
        return record

    @property
    def stated(self) -> str:
        """What its author says about how it went: the error, the notes, or what comes next."""
        return self.error or self.notes or self.next_step

    @property
    def spend(self) -> Spend:
        if not (self.tokens_used or self.requests_made or self.cost_usd or self.elapsed_ms):
            return NOTHING
        priced = self.cost_usd is not None
        return Spend(
            tokens=self.tokens_used,
            requests=self.requests_made,
            cost_usd=self.cost_usd or Decimal(0),
            unpriced_requests=0 if priced else self.requests_made,
            elapsed_ms=self.elapsed_ms,
        )


def canonical_record(value: dict[str, Any]) -> dict[str, Any]:
    """Return `value` with the names of this contract, whichever known shape it has."""
    record = dict(value)
    if "step_id" in record and "task_id" not in record:
        record["task_id"] = record.pop("step_id")
    for optional in ("error", "notes", "next_step"):
        if optional in record and record[optional] is None:
            del record[optional]
    status = record.get("status")
    if isinstance(status, str):
        record["status"] = _SAME_STATUS.get(status, status)
    percent = record.pop("confidence_percent", None)
    if percent is not None and "confidence" not in record:
        record["confidence"] = percent / 100 if isinstance(percent, int) else percent
    return _decided(record)


def _decided(record: dict[str, Any]) -> dict[str, Any]:
    for (key, echo), careful in _UNDECIDED.items():
        if record.get(key) == echo:
            record[key] = careful
            said = f"{key} was left undecided: {echo!r}, read as {careful!r}"
            warnings = as_tuple(record.get("warnings", ()))
            if isinstance(warnings, list | tuple):  # anything else is refused as it stands
                record["warnings"] = (*warnings, said)
    return record
