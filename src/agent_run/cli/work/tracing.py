"""The work of `trace`: the waterfall of a task or a run, drawn from the ledger alone."""

from shutil import get_terminal_size
from typing import Final

from agent_run.cli.exits import Exit
from agent_run.cli.speech import Json, Speech
from agent_run.cli.work.door import Door, opened
from agent_run.cli.work.spans import send_spans
from agent_run.contract.base import RunId
from agent_run.errors import UnknownRun, UnknownTask
from agent_run.ledger.strips import strips
from agent_run.ledger.waterfall import Row, drawn, fitted, rows
from agent_run.ledger.words import stamp

_BETWEEN: Final = 11
"""What a table drawn at a terminal needs beside its four columns."""
_PIPED: Final = 40


def trace(speech: Speech, *, what: str, width: int | None, otlp: bool, content: bool) -> int:
    """Draw when everything happened; without a width, as wide as the terminal allows."""
    with opened(speech) as door:
        run_id, task_id = _meant(door, what)
        pages = door.desk.pages(run_id)
        trace_id = door.desk.trace_id(run_id)
    if otlp:
        count = send_spans(pages, content=content)
        speech.tell(f"sent {count} spans of trace {trace_id}")
    found = rows(strips(pages), task_id=task_id)
    told = {
        "run_id": run_id,
        "task_id": task_id,
        "trace_id": trace_id,
        "spans": [_as_json(row) for row in found],
    }
    if speech.as_json:
        speech.object(told)
    else:
        longest = None
        if width is None and speech.to_terminal:
            width, longest = fitted(found, get_terminal_size().columns - _BETWEEN)
        lines = list(drawn(found, width=width or _PIPED, longest=longest))
        speech.table(("WHAT", "WHEN", "TOOK", "OUTCOME"), lines)
    return Exit.DONE


def _meant(door: Door, what: str) -> tuple[RunId, str | None]:
    located = None if what.endswith("/") else _located(door, what)
    if located is not None:
        return located
    name = what.removesuffix("/")
    try:
        door.desk.run(name)
    except UnknownRun as error:
        msg = f"neither a task nor a run {name!r} in this ledger"
        raise UnknownTask(msg) from error
    return name, None


def _located(door: Door, what: str) -> tuple[RunId, str] | None:
    try:
        return door.desk.locate(what)
    except UnknownTask:
        return None


def _as_json(row: Row) -> Json:
    strip = row.strip
    return {
        "key": strip.key,
        "parent": strip.parent,
        "kind": strip.kind,
        "name": strip.name,
        "task_id": strip.task_id or None,
        "start": stamp(strip.start),
        "end": stamp(strip.end),
        "offset_ms": round(row.offset.total_seconds() * 1_000, 3),
        "took_ms": round(row.lasted.total_seconds() * 1_000, 3),
        "outcome": strip.outcome,
        "depth": row.depth,
        "details": dict(strip.details),
    }
