"""The work of `inbox`: what waits for a person, since when, and what to type next.

What a person copies, the name of the task and the command, stands whole on a line of its own
however narrow the terminal is; only sentences are broken.
"""

import textwrap
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from shutil import get_terminal_size
from typing import Final

from agent_run.cli.exits import Exit
from agent_run.cli.speech import Speech
from agent_run.cli.visible import visible
from agent_run.cli.work.door import Door, opened
from agent_run.ledger.inbox import InboxRow, inbox_rows, item_json
from agent_run.ledger.state import MAY_LAPSE
from agent_run.ledger.words import moment, named
from agent_run.wiring.opening import wall_clock

_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60))
_LATEST: Final = datetime.max.replace(tzinfo=UTC)
_MARGIN: Final = " " * 9
_LONGEST: Final = 600
_NARROWEST: Final = 30


def inbox(speech: Speech) -> int:
    """List what waits for a person: what is overdue first, then the oldest."""
    with opened(speech) as door:
        rows = list(_waiting(door))
    now = wall_clock()
    rows.sort(key=lambda row: (not row.is_overdue(now), row.since or _LATEST))
    if speech.as_json:
        speech.object({"items": [item_json(row, now) for row in rows]})
        return Exit.DONE
    if not rows:
        speech.tell("nothing waits for a person")
        return Exit.DONE
    width = get_terminal_size().columns if speech.to_terminal else None
    for number, row in enumerate(rows):
        speech.show(*([""] if number else []), *item_lines(row, now, width))
    return Exit.DONE


def item_lines(row: InboxRow, now: datetime, width: int | None) -> Iterator[str]:
    """Yield an item as lines; `None` as the width breaks no sentence."""
    name = named(row.run_id, row.task_id)
    state = ", ".join(_state(row, now))
    if width is None or len(name) + 2 + len(state) <= width:
        yield f"{name}  {state}"
    else:
        yield name
        yield from _field("", state, width)
    yield from _field("about", _subject(row), width)
    yield from _field("why" if row.kind == "decision" else "asks", _why(row), width)
    yield from _field("found", f'"{row.found}"' if row.found else "", width)
    for path in row.wider_scope:
        yield f"  path   {visible(path)}"
    yield from _command(row, width)


def age_of(age: timedelta) -> str:
    """Return an age in its largest unit: `3m`, `2h`, `5d`."""
    seconds = max(0, int(age.total_seconds()))
    for unit, length in _UNITS:
        if seconds >= length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"


def _waiting(door: Door) -> Iterator[InboxRow]:
    rows = door.desk.store.tasks()
    for run_id in dict.fromkeys(row.run_id for row in rows if row.status in MAY_LAPSE):
        yield from inbox_rows(run_id, door.desk.run(run_id))


def _state(row: InboxRow, now: datetime) -> Iterator[str]:
    yield row.kind
    if row.since is not None:
        yield f"waits {age_of(now - row.since)}"
    if row.is_overdue(now):
        yield f"OVERDUE since {moment(row.deadline)}" if row.deadline else "OVERDUE"
    elif row.deadline is not None:
        yield f"until {moment(row.deadline)}"
    if row.owner:
        yield f"by {visible(row.owner)}"


def _subject(row: InboxRow) -> str:
    return f"{row.about}: {row.objective}" if row.about else row.objective


def _why(row: InboxRow) -> str:
    """Return the reason; words of the executor stand in quotes, for they are only its words."""
    if row.kind == "approval":
        return "may work on it begin?"
    text = row.text
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}... ({len(text) - _LONGEST} characters more)"
    return f'"{text}"' if row.said_by == "executor" else text


def _command(row: InboxRow, width: int | None) -> Iterator[str]:
    """Yield what to type; where that is too long, what shows the item and asks for one key."""
    command = row.next
    if width is not None and len(command) > width:
        command = f"agent-run review {named(row.run_id, row.task_id)}"
    if width is None or len(_MARGIN) + len(command) <= width:
        yield f"  next   {command}"
        return
    yield "  next"
    yield command


def _field(name: str, value: str, width: int | None) -> Iterator[str]:
    """Yield a sentence, broken between words where the terminal ends."""
    seen = visible(value)
    if not seen:
        return
    if width is None:
        yield f"  {name:<6} {seen}".rstrip()
        return
    room = max(_NARROWEST, width)
    yield from textwrap.wrap(
        seen, room, initial_indent=f"  {name:<6} ", subsequent_indent=_MARGIN
    )
