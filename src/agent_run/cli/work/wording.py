"""Contracts as JSON, where several commands show the same."""

from pydantic import BaseModel, JsonValue

from agent_run.ledger.state import TaskState


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
