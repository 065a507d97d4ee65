"""The work of `ledger`: pages in words or as JSON, as they come, and their verification."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import click

from agent_run.cli.exits import Exit
from agent_run.cli.speech import Json, Speech
from agent_run.cli.work.door import Door, opened
from agent_run.contract.base import RunId
from agent_run.desk import Desk
from agent_run.errors import UnknownRun, UnknownTask
from agent_run.ledger.pages import Page
from agent_run.ledger.views import line_of
from agent_run.ledger.words import counted, moment

_LOOK_AGAIN: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The pages that were asked for."""

    run_id: RunId | None = None
    """`None` means every run."""
    task_id: str | None = None
    """`None` means every task."""


def ledger(
    speech: Speech, *, what: str | None, run_id: str | None, follow: bool, jsonl: bool
) -> int:
    """Show pages, or verify them."""
    if what == "verify":
        return verify(speech, run_id=run_id)
    if run_id is not None:
        msg = f"one name is enough; {run_id!r} is one too many"
        raise click.UsageError(msg, click.get_current_context())
    if follow and speech.as_json:
        msg = "--follow has no end, so it goes with --jsonl, not with --json"
        raise click.UsageError(msg, click.get_current_context())
    with opened(speech) as door:
        chosen = _chosen(door.desk, what)
        pages = _followed(door, chosen) if follow else _written(door.desk, chosen, {})
        if speech.as_json and not jsonl:
            speech.object({"pages": [as_json(page) for page in pages]})
            return Exit.DONE
        for page in pages:
            if jsonl:
                speech.line(as_json(page))
            else:
                speech.show(in_words(page, several=chosen.run_id is None))
    return Exit.DONE


def verify(speech: Speech, *, run_id: str | None) -> int:
    """Find every place where the ledger is not what was once written."""
    with opened(speech) as door:
        if run_id is not None:
            door.desk.run(run_id)
        runs = [run_id] if run_id else [row.run_id for row in door.desk.runs()]
        broken = list(door.desk.verify(run_id))
    for place in broken:
        speech.warn(f"run {place.run_id!r}, page {place.seq}: {place.problem}")
    found = [{"run_id": b.run_id, "page": b.seq, "problem": b.problem} for b in broken]
    speech.answer(
        {"ok": not broken, "runs": len(runs), "broken": found},
        [verification(len(runs), len(broken))],
    )
    return Exit.FAILED if broken else Exit.DONE


def verification(runs: int, broken: int) -> str:
    """Return what was found about the pages of some runs, in one line."""
    found = counted(broken, "broken place") if broken else "every page as it was written"
    return f"{counted(runs, 'run')}, {found}"


def as_json(page: Page) -> Json:
    """Return a page as written, its event as an object."""
    return {
        "run_id": page.run_id,
        "page": page.seq,
        "task_id": page.task_id,
        "kind": page.kind,
        "trace_id": page.trace_id,
        "digest": page.digest,
        "event": json.loads(page.body),
    }


def in_words(page: Page, *, several: bool = False) -> str:
    """Return a page as one line; with `several` runs in view, each line names its run."""
    line = line_of(page, page.event())
    run = f"{line.run_id} " if several else ""
    about = f"{line.task_id}: " if line.task_id else ""
    said = f"{about}{line.text}".rstrip(": ")
    return f"{run}{line.seq:>4}  {moment(line.at)}  {line.kind:<18} {line.actor:<12} {said}"


def _chosen(desk: Desk, what: str | None) -> Chosen:
    if what is None:
        return Chosen()
    located = None if what.endswith("/") else _located(desk, what)
    if located is not None:
        return located
    name = what.removesuffix("/")
    try:
        desk.run(name)
    except UnknownRun as error:
        msg = f"neither a task nor a run {name!r} in this ledger"
        raise UnknownTask(msg) from error
    return Chosen(name)


def _located(desk: Desk, what: str) -> Chosen | None:
    try:
        return Chosen(*desk.locate(what))
    except UnknownTask:
        return None


def _written(desk: Desk, chosen: Chosen, seen: dict[RunId, int]) -> Iterator[Page]:
    """Yield the pages that were not seen before, and note that they are seen now."""
    for name in [chosen.run_id] if chosen.run_id else _grown(desk, seen):
        for page in desk.pages(name, after=seen.get(name, 0)):
            seen[name] = page.seq
            if chosen.task_id in (None, page.task_id):
                yield page


def _grown(desk: Desk, seen: dict[RunId, int]) -> list[RunId]:
    """Return the runs with pages that were not seen, the oldest run first."""
    heads = desk.store.heads()
    runs = [run.run_id for run in desk.runs()]
    return [name for name in reversed(runs) if heads.get(name, 0) > seen.get(name, 0)]


def _followed(door: Door, chosen: Chosen) -> Iterator[Page]:
    seen: dict[RunId, int] = {}
    while True:
        yield from _written(door.desk, chosen, seen)
        sys.stdout.flush()
        door.desk.wait(_LOOK_AGAIN)
