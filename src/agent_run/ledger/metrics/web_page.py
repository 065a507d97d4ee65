"""Metrics as one page that needs nothing else: no script, no font, no request.

What needs attention stands first, then what stands for all, then the tables.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from agent_run.ledger.metrics.attention import attention, headline
from agent_run.ledger.metrics.confidence import STATISTIC, StepConfidence
from agent_run.ledger.metrics.plots import Plot, bar, line_plot
from agent_run.ledger.metrics.report import Metrics
from agent_run.ledger.metrics.tables import (
    Table,
    agreement_table,
    answering_table,
    budget_table,
    cost_table,
    over_table,
    quality_table,
    reason_table,
    refusal_table,
    step_table,
)
from agent_run.ledger.sheet.parts import Grid, Markup, table, tiles, whole_page, words

_LONGEST_NAME: Final = 120
_NUMBER: Final = re.compile(r"(\$?-?[\d.,]+([%smhd]|( \+ .*)?)|unknown)?")
_CALM: Final = (
    "Nothing: nobody is waited for, no step has become less sure, and no budget is overdrawn."
)
_EXPLAINED: Final[Mapping[str, str]] = {
    "agreement": (
        "How people decided, beside what executor and gates thought of the same work. "
        "Kappa is agreement beyond chance: 1 is full, 0 is what chance alone would give."
    ),
    "budgets": "Time is that of all attempts together. Requests without a known price are "
    "counted as unpriced; their cost is not in the sum.",
}


def web_page(metrics: Metrics, *, title: str) -> str:
    """Return the whole page as HTML."""
    return whole_page(title, _body(metrics, title))


def _body(metrics: Metrics, title: str) -> Iterator[Markup]:
    since = f", posted since {metrics.since:%Y-%m-%d %H:%M} UTC" if metrics.since else ""
    yield Markup(f"<h1>{words(title, longest=_LONGEST_NAME)}</h1>")
    tasks, runs = _counted(metrics.tasks, "task"), _counted(metrics.runs, "run")
    yield Markup(f'<p class="soft">{tasks} in {runs}{since}.</p>')
    if not metrics.tasks:
        yield Markup('<p class="card">Nothing was posted, so there is nothing to measure.</p>')
        return
    yield from _attention(metrics)
    yield tiles(headline(metrics))
    yield from _section("work", "The work", [quality_table(metrics)])
    yield from _steps(metrics)
    yield from _section("gates", "What gates refused", [refusal_table(metrics)], bars=3)
    yield from _section("people", "People", [answering_table(metrics)])
    yield from _tables("people-why", [reason_table(metrics)], bars=1)
    yield from _tables("people-agree", [agreement_table(metrics)])
    if metrics.people.agreement_by_step:
        yield _explained("agreement")
    yield from _section("budgets", "Budgets", [over_table(metrics), budget_table(metrics)])
    yield _explained("budgets")
    yield from _section("cost", "Cost", [cost_table("model", metrics.costs.by_model)])


def _attention(metrics: Metrics) -> Iterator[Markup]:
    found = "".join(
        f'<li><a href="#{where}">{words(said, longest=_LONGEST_NAME)}</a></li>'
        for where, said in attention(metrics)
    )
    mood = "warn" if found else "good"
    yield Markup(f'<section class="card {mood}" aria-labelledby="attention">')
    yield Markup('<h2 id="attention">What needs attention</h2>')
    yield Markup(f"<ul>{found}</ul>" if found else f"<p>{_CALM}</p>")
    yield Markup("</section>")


def _steps(metrics: Metrics) -> Iterator[Markup]:
    shown = step_table(metrics)
    # The pictures follow as plots, which have a scale.
    place = shown.head.index("OVER TIME")
    without = replace(
        shown,
        head=(*shown.head[:place], *shown.head[place + 1 :]),
        rows=tuple((*row[:place], *row[place + 1 :]) for row in shown.rows),
    )
    yield from _section("steps", "Steps", [without])
    drawn = [step for step in metrics.confidence if len(step.values) > 1]
    if not drawn:
        return
    yield Markup('<h2 id="confidence">Confidence over time</h2>')
    yield Markup(
        "<p>How sure the executors of a step said they were, from 0 to 1, one record after "
        f"another. A step has become less sure by this measure: {words(STATISTIC)}.</p>"
    )
    yield Markup('<div class="plots">')
    drawn.sort(key=lambda step: step.regression is None)
    yield from (_plot(number, step) for number, step in enumerate(drawn))
    yield Markup("</div>")


def _plot(number: int, step: StepConfidence) -> Markup:
    fell = step.regression
    said = f"{len(step.values)} records, median {step.median:.2f}"
    if step.unstated:
        said += f"; {step.unstated} more did not say"
    if fell:
        said += (
            f"; fell from {fell.earlier:.2f} to {fell.recent:.2f} over the last {fell.counted}"
        )
    first, last = _times(step)
    name = words(step.step, longest=_LONGEST_NAME)
    drawn = Plot(
        anchor=f"plot{number}",
        title=f"Confidence of {_short(step.step)}",
        description=said,
        values=step.values,
        first=first,
        last=last,
        recent=fell.counted if fell else 0,
    )
    return Markup(
        f'<figure class="card"><h3>{name}</h3>{line_plot(drawn)}'
        f"<figcaption>{words(said)}</figcaption></figure>"
    )


def _times(step: StepConfidence) -> tuple[str, str]:
    first, last = step.times[0], step.times[-1]
    shown = "%H:%M UTC" if first.date() == last.date() else "%Y-%m-%d"
    return format(first, shown), format(last, shown)


def _section(
    anchor: str, title: str, these: Sequence[Table], *, bars: int | None = None
) -> Iterator[Markup]:
    yield Markup(f'<h2 id="{anchor}">{words(title)}</h2>')
    yield from _tables(anchor, these, bars=bars)


def _tables(
    anchor: str, these: Sequence[Table], *, bars: int | None = None
) -> Iterator[Markup]:
    """Yield tables; the numbers of column `bars` are drawn as well."""
    for number, one in enumerate(these):
        if not one.rows:
            yield Markup(f'<p class="soft">{words(one.title)}: nothing.</p>')
            continue
        head = [cell.capitalize() for cell in one.head]
        rows = [[words(cell, longest=_LONGEST_NAME) for cell in row] for row in one.rows]
        if bars is not None:
            most = max(float(row[bars]) for row in one.rows)
            head.append("Compared")
            for drawn, row in zip(rows, one.rows, strict=True):
                drawn.append(bar(float(row[bars]) / most))
        numbers = [
            place
            for place in range(1, len(one.head))
            if all(_NUMBER.fullmatch(row[place]) for row in one.rows)
        ]
        name = f"{anchor}-{number}"
        yield table(Grid(name, words(one.title), head, rows, numbers))


def _explained(what: str) -> Markup:
    return Markup(f'<p class="soft">{words(_EXPLAINED[what])}</p>')


def _counted(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"
