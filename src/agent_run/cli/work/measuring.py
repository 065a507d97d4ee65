"""The work of `metrics`: the ledger in numbers, for a terminal, programs, or a page."""

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

import click

from agent_run.cli.declaring import loaded
from agent_run.cli.exits import Exit
from agent_run.cli.speech import Speech
from agent_run.cli.work.door import Door, opened
from agent_run.cli.work.outputs import require_place, write_output
from agent_run.contract.base import RunId, parse_duration
from agent_run.errors import UnknownRun
from agent_run.ledger.metrics.facts import Run, posted_since
from agent_run.ledger.metrics.gathering import Gathering
from agent_run.ledger.metrics.report import Metrics, as_json, measure
from agent_run.ledger.metrics.tables import (
    FEW,
    SMALL,
    Table,
    agreement_table,
    answering_table,
    budget_table,
    cost_table,
    over_table,
    quality_table,
    refusal_table,
    step_table,
)
from agent_run.ports.store import Store
from agent_run.wiring.opening import wall_clock
from agent_run.wiring.settings import current_folder

_MOST_ROWS: Final = 40
_AT_ONCE: Final = 4_000


def metrics(
    speech: Speech,
    *,
    run_id: RunId | None,
    since: str | None,
    prometheus: bool,
    html: str | None,
    otlp: bool,
) -> int:
    """Show the metrics in the form that was asked for."""
    if prometheus and speech.as_json:
        msg = "--prometheus and --json cannot be given together: each is a form of the answer"
        raise click.UsageError(msg, click.get_current_context())
    if html is not None:
        require_place(html)
    moment = None if since is None else moment_of(since, now=wall_clock())
    with _no_garbage():
        with opened(speech) as door:
            runs = facts(door, run_id, moment)
        found = measure(runs, since=moment)
        _tell(speech, found, runs, prometheus=prometheus, html=html, otlp=otlp)
    return Exit.DONE


def _tell(
    speech: Speech,
    found: Metrics,
    runs: Sequence[Run],
    *,
    prometheus: bool,
    html: str | None,
    otlp: bool,
) -> None:
    if otlp:
        loaded("agent_run.cli.work.spans:send_metrics")(found, runs)
    if html is not None:
        _write(speech, html, found)
    if speech.as_json:
        speech.object(as_json(found))
    elif prometheus:
        exposition = loaded("agent_run.ledger.metrics.exposition:exposition")
        speech.show(*exposition(found).splitlines())
    elif html is None:
        _tables(speech, found)


def facts(door: Door, run_id: RunId | None, since: datetime | None) -> list[Run]:
    """Return what the ledger says about one run or about all, oldest first."""
    if run_id is not None and not door.desk.store.runs(run_id=run_id):
        msg = f"no run {run_id!r} in this ledger"
        raise UnknownRun(msg)
    rows = [run_id] if run_id else [row.run_id for row in reversed(door.desk.runs())]
    runs = [run for name in rows if (run := _counted(door.desk.store, name)) is not None]
    return runs if since is None else posted_since(runs, since)


def _counted(store: Store, run_id: RunId) -> Run | None:
    """Return what a run says, read some pages at a time, so that no long run fills memory."""
    gathering, after = Gathering(run_id), 0
    while some := store.entries(run_id, after=after, limit=_AT_ONCE):
        for entry in some:
            gathering.add(*entry)
        after = some[-1][0]
    return gathering.run()


def moment_of(text: str, *, now: datetime) -> datetime:
    """Return the time that `7d`, `2026-11-01` or `2026-11-01T12:00Z` stands for.

    Raises:
        click.BadParameter: It stands for none.
    """
    try:
        span = parse_duration(text)
    except ValueError:
        span = None
    if isinstance(span, timedelta):
        return now - span
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        msg = f"{text!r} is no time, expected something like 7d or 2026-11-01T12:00Z"
        raise click.BadParameter(msg, click.get_current_context()) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@contextmanager
def _no_garbage() -> Iterator[None]:
    """Look for no garbage: what is gathered from a ledger stays until the end."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _tables(speech: Speech, found: Metrics) -> None:
    if not found.tasks:
        speech.tell("no tasks")
        return
    tables: Iterable[Table] = (
        quality_table(found),
        step_table(found),
        refusal_table(found),
        answering_table(found),
        agreement_table(found),
        budget_table(found),
        over_table(found),
        cost_table("model", found.costs.by_model),
    )
    for number, table in enumerate(table for table in tables if table.rows):
        if number:
            speech.show("")
        shown = table.rows[:_MOST_ROWS]
        speech.table(table.head, shown)
        if len(shown) < len(table.rows):
            left = len(table.rows) - len(shown)
            speech.tell(f"{table.title}: {left} more rows; --json and --html have them all")
    speech.tell(f"{FEW} marks what fewer than {SMALL} cases say")


def _write(speech: Speech, file: str, found: Metrics) -> None:
    page = loaded("agent_run.ledger.metrics.web_page:web_page")(
        found, title=f"Metrics of {current_folder().name}"
    )
    write_output(file, page)
    speech.tell(f"wrote {file}")
