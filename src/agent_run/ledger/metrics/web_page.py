"""Metrics as one page that needs nothing else: no script, no font, no request.

Every word that comes from a ledger is escaped; names of steps, models and reasons may have
been chosen by a stranger.
"""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Final

from agent_run.ledger.metrics.confidence import STATISTIC, StepConfidence
from agent_run.ledger.metrics.plots import bar_plot, line_plot, seen
from agent_run.ledger.metrics.report import Metrics
from agent_run.ledger.metrics.tables import (
    Table,
    agreement_table,
    answering_table,
    budget_table,
    cost_table,
    over_table,
    quality_table,
    refusal_table,
)

_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1c1f23; --soft: #667; --paper: #fff;
  --line: #2563a8; --grid: #d8dce2; --bar: #7aa7d6; --fell: #f6d5d0; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --soft: #9aa3ad;
  --paper: #16181b; --line: #7fb2ea; --grid: #3a3f46; --bar: #3e6a99; --fell: #5b2a25; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
p, caption { color: var(--soft); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .2rem .9rem .2rem 0; vertical-align: top; }
th { border-bottom: 1px solid var(--grid); font-weight: 600; }
svg { max-width: 100%; height: auto; } svg text { fill: var(--ink); font-size: 11px; }
.line { fill: none; stroke: var(--line); stroke-width: 1.5; } .dot { fill: var(--line); }
.grid { stroke: var(--grid); } .bar { fill: var(--bar); } .fell { fill: var(--fell); }
figure { display: inline-block; margin: 0 1.5rem 1rem 0; vertical-align: top; }
.warn { font-weight: 600; }
"""


def web_page(metrics: Metrics, *, title: str) -> str:
    """Return the whole page as HTML."""
    body = "\n".join(_body(metrics, title))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{_text(title)}</title><style>{_STYLE}</style></head>\n"
        f"<body>\n{body}\n</body></html>\n"
    )


def _body(metrics: Metrics, title: str) -> Iterator[str]:
    since = f", posted since {metrics.since:%Y-%m-%d %H:%M}Z" if metrics.since else ""
    yield f"<h1>{_text(title)}</h1>"
    yield f"<p>{metrics.tasks} tasks in {metrics.runs} runs{since}.</p>"
    yield from _section("The work", [quality_table(metrics)])
    yield from _refusals(metrics)
    yield from _confidence(metrics.confidence)
    yield from _section("People", [answering_table(metrics), agreement_table(metrics)])
    yield from _section("Budgets", [over_table(metrics), budget_table(metrics)])
    yield from _costs(metrics)


def _refusals(metrics: Metrics) -> Iterator[str]:
    rows = [
        (f"{gate}: {reason}", float(count), str(count))
        for (gate, _, reason), count in _largest(metrics.quality.refusals.items())
    ]
    yield from _section("What gates refused", [refusal_table(metrics)])
    if rows:
        yield bar_plot(rows, title="How often each gate did not pass, by reason")


def _confidence(steps: Sequence[StepConfidence]) -> Iterator[str]:
    yield "<h2>Confidence by step</h2>"
    yield f"<p>A step has regressed by this measure: {_text(STATISTIC)}.</p>"
    for step in steps:
        fell = step.regression
        said = (
            f"{step.step}: median {step.median:.2f} of {len(step.values)}"
            if (step.median is not None)
            else f"{step.step}: nothing stated, {step.unstated} records"
        )
        plot = line_plot(step.values, title=said, recent=fell.counted if fell else 0)
        warned = ""
        if fell:
            warned = (
                f' <span class="warn">fell from {fell.earlier:.2f} to {fell.recent:.2f}'
                f" over the last {fell.counted}</span>"
            )
        yield f"<figure>{plot}<figcaption>{_text(said)}{warned}</figcaption></figure>"


def _costs(metrics: Metrics) -> Iterator[str]:
    yield from _section("Cost", [cost_table("model", metrics.costs.by_model)])
    rows = [
        (cost.name, float(cost.cost_usd), f"${cost.cost_usd}")
        for cost in metrics.costs.by_model
        if cost.cost_usd
    ]
    if rows:
        yield bar_plot(rows, title="Known cost by model")
    yield from _tables([cost_table("step", metrics.costs.by_task)])


def _section(title: str, tables: Iterable[Table]) -> Iterator[str]:
    yield f"<h2>{_text(title)}</h2>"
    yield from _tables(tables)


def _tables(tables: Iterable[Table]) -> Iterator[str]:
    for table in tables:
        if not table.rows:
            yield f"<p>{_text(table.title)}: nothing.</p>"
            continue
        head = "".join(f"<th>{_text(cell)}</th>" for cell in table.head)
        rows = "\n".join(
            "<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>"
            for row in table.rows
        )
        yield (
            f"<table><caption>{_text(table.title)}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>\n{rows}\n</tbody></table>"
        )


def _largest(
    items: Iterable[tuple[tuple[str, str, str], int]],
) -> list[tuple[tuple[str, str, str], int]]:
    return sorted(items, key=lambda item: (-item[1], item[0]))


def _text(text: str) -> str:
    return escape(seen(text))
