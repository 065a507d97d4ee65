"""The work of `inbox`: what waits for a person, since when, and what to type next."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from agent_run.cli.exits import Exit
from agent_run.cli.speech import Json, Speech
from agent_run.cli.work.door import Door, opened
from agent_run.cli.work.wording import moment, named, stamp
from agent_run.ledger.state import FOR_A_PERSON, Status
from agent_run.ledger.views import InboxRow, Kind, inbox_rows
from agent_run.wiring.opening import wall_clock

_MAY_WAIT: Final = FOR_A_PERSON | {Status.WAITING}
_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60))
_NEXT: Final[dict[Kind, str]] = {
    "decision": "agent-run review {name}",
    "approval": "agent-run review {name} --approve",
    "question": "agent-run review {name} --answer TEXT",
    "scope": "agent-run review {name} --widen {paths}",
}


def inbox(speech: Speech) -> int:
    """List what waits for a person, the oldest first."""
    with opened(speech) as door:
        rows = sorted(_waiting(door), key=lambda item: item[1])
    if speech.as_json:
        speech.object({"items": [_as_json(row, since) for row, since in rows]})
        return Exit.DONE
    if not rows:
        speech.tell("nothing waits for a person")
        return Exit.DONE
    now = wall_clock()
    speech.table(
        ("TASK", "KIND", "AGE", "UNTIL", "OWNER", "WHY", "NEXT"),
        [_cells(row, age_of(now - since)) for row, since in rows],
    )
    return Exit.DONE


def age_of(age: timedelta) -> str:
    """Return an age in its largest unit: `3m`, `2h`, `5d`."""
    seconds = max(0, int(age.total_seconds()))
    for unit, length in _UNITS:
        if seconds >= length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"


def _waiting(door: Door) -> Iterator[tuple[InboxRow, datetime]]:
    rows = door.desk.store.tasks()
    for run_id in dict.fromkeys(row.run_id for row in rows if row.status in _MAY_WAIT):
        for item in inbox_rows(run_id, door.desk.run(run_id)):
            page = door.desk.store.read(run_id, after=item.since - 1, limit=1)[0]
            yield item, page.event().at


def _next(row: InboxRow) -> str:
    paths = " --widen ".join(f"'{path}'" for path in row.wider_scope)
    return _NEXT[row.kind].format(name=named(row.run_id, row.task_id), paths=paths)


def _why(row: InboxRow) -> str:
    return f"{row.reason}: {row.text}" if row.reason else row.text


def _cells(row: InboxRow, age: str) -> tuple[str, ...]:
    return (
        named(row.run_id, row.task_id),
        row.kind,
        age,
        moment(row.deadline),
        row.owner or "",
        _why(row),
        _next(row),
    )


def _as_json(row: InboxRow, since: datetime) -> Json:
    return {
        "run_id": row.run_id,
        "task_id": row.task_id,
        "kind": row.kind,
        "reason": row.reason,
        "text": row.text,
        "wider_scope": list(row.wider_scope),
        "since": stamp(since),
        "deadline": stamp(row.deadline),
        "owner": row.owner,
        "next": _next(row),
    }
