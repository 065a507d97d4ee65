"""The work of `status`: where the tasks stand."""

from typing import Final

from agent_run.cli.exits import Exit
from agent_run.cli.speech import Json, Speech
from agent_run.cli.work.door import Door, opened
from agent_run.cli.work.wording import dumped
from agent_run.contract.base import RunId
from agent_run.errors import UnknownRun, UnknownTask
from agent_run.ledger.state import SETTLED
from agent_run.ledger.views import RunSummary, StatusRow, status_rows, summary
from agent_run.ledger.words import counted, moment, stamp

_NEWEST: Final = 20
_MOST_ROWS: Final = 50


def status(speech: Speech, *, run_id: RunId | None, every: bool) -> int:
    """Show the tasks of one run, or of the newest runs."""
    with opened(speech) as door:
        names = [run.run_id for run in door.desk.runs()]
        wanted = _wanted(door, run_id, names, every=every)
        states = {name: door.desk.run(name) for name in wanted}
    older = 0 if run_id else len(names) - len(wanted)
    runs = [summary(name, state) for name, state in states.items()]
    tasks = [row for name, state in states.items() for row in status_rows(name, state)]
    if speech.as_json:
        speech.object(
            {
                "runs": [_run_json(run) for run in runs],
                "tasks": [_task_json(row) for row in tasks],
                "older_runs": older,
            }
        )
        return Exit.DONE
    _show(speech, tasks, whole=run_id is not None or every)
    if older:
        speech.tell(f"{counted(older, 'older run')} not shown; --all shows them")
    return Exit.DONE


def _wanted(
    door: Door, run_id: RunId | None, names: list[RunId], *, every: bool
) -> list[RunId]:
    if run_id is None:
        return names if every else names[:_NEWEST]
    if run_id in names:
        return [run_id]
    try:
        return [door.desk.locate(run_id)[0]]
    except UnknownTask as error:
        msg = f"no run {run_id!r} in this ledger"
        raise UnknownRun(msg) from error


def _show(speech: Speech, tasks: list[StatusRow], *, whole: bool) -> None:
    if not tasks:
        speech.tell("no tasks")
        return
    shown = tasks
    if not whole and len(tasks) > _MOST_ROWS:
        # What is still open matters most; what is left out is counted below.
        shown = sorted(tasks, key=lambda row: row.status in SETTLED)[:_MOST_ROWS]
    speech.table(
        ("TASK", "STATUS", "ATTEMPT", "CLAIM", "OWNER", "UNTIL", "NOTE"),
        [_cells(row) for row in shown],
    )
    if len(shown) < len(tasks):
        speech.tell(f"{counted(len(tasks) - len(shown), 'more task')}; --all shows them")


def _cells(row: StatusRow) -> tuple[str, ...]:
    name = row.task_id if row.task_id == row.run_id else f"{row.run_id}/{row.task_id}"
    return (
        name,
        row.status,
        f"{row.attempt}/{row.granted}",
        "" if row.claim is None else str(row.claim),
        row.owner or "",
        moment(row.expires_at),
        row.note,
    )


def _run_json(run: RunSummary) -> Json:
    return {
        "run_id": run.run_id,
        "opened_at": stamp(run.opened_at),
        "at": stamp(run.at),
        "pages": run.pages,
        "intent": run.intent,
        "counts": {status.value: count for status, count in run.counts.items()},
        "settled": run.settled,
        "cancelled": run.cancelled,
        "spent": dumped(run.spent),
    }


def _task_json(row: StatusRow) -> Json:
    return {
        "run_id": row.run_id,
        "task_id": row.task_id,
        "status": row.status.value,
        "attempt": row.attempt,
        "attempts": row.granted,
        "owner": row.owner,
        "claim": row.claim,
        "expires_at": stamp(row.expires_at),
        "executor": row.executor,
        "priority": row.priority,
        "needs": list(row.needs),
        "reason": row.reason,
        "note": row.note,
    }
