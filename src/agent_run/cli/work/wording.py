"""Small words that several commands share: times, amounts, models as JSON."""

from datetime import datetime

from pydantic import BaseModel, JsonValue

from agent_run.contract.base import RunId, TaskId
from agent_run.ledger.state import TaskState


def moment(at: datetime | None) -> str:
    """Return a time as people read it, in UTC; nothing for none."""
    return "" if at is None else f"{at:%Y-%m-%d %H:%M:%S}Z"


def stamp(at: datetime | None) -> str | None:
    """Return a time as programs read it."""
    return None if at is None else at.isoformat().replace("+00:00", "Z")


def named(run_id: RunId, task_id: TaskId) -> str:
    """Return how a task is called on a command line."""
    return task_id if run_id == task_id else f"{run_id}/{task_id}"


def dumped(model: BaseModel | None, *, brief: bool = False) -> JsonValue:
    """Return a contract as JSON; `brief` leaves out what equals a default."""
    if model is None:
        return None
    told: JsonValue = model.model_dump(mode="json", exclude_defaults=brief)
    return told


def handed(task: TaskState) -> dict[str, JsonValue]:
    """Return what the owner of a claim must know to do the work."""
    return {
        "manifest": dumped(task.manifest, brief=True),
        "inbox": [dumped(envelope, brief=True) for envelope in task.inbox],
        "returned": [dumped(verdict) for verdict in task.returned],
        "answers": [{"question": asked, "answer": answer} for asked, answer in task.answers],
    }
