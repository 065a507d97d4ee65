"""How work that could not go on is handed in: for a person, unless the policy says stop."""

from agent_run.contract.record import Record
from agent_run.errors import ModelError, OutcomeUnknown, OverBudget
from agent_run.ports.executor import Job, Seen, Work


def ended_by(error: ModelError | OverBudget, job: Job) -> Work:
    """Return the work that `error` ended; money and unknown outcomes are typed outcomes."""
    match error:
        case OverBudget():
            return _stopped("over_budget", f"over budget: {error}", job)
        case OutcomeUnknown():
            return _stopped("unknown", str(error), job)
        case _:
            return Work(None, Seen(error=str(error)))


def _stopped(ended: str, said: str, job: Job) -> Work:
    stop = ended == "over_budget" and job.brief.manifest.budget.on_budget == "stop"
    record = Record(
        status="failed" if stop else "blocked",
        error=said,
        next_action="continue" if stop else "escalate",
    )
    return Work(record, Seen(ended=ended, error=said))
