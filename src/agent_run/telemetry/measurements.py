"""Metrics as OpenTelemetry carries them.

The ledger is complete, so histograms are cumulative from its first page: they may be sent
any number of times and nothing is counted twice. What is a share stays a gauge.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, TypeAlias

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from agent_run.ledger.metrics.exposition import Family, families
from agent_run.ledger.metrics.facts import SETTLED_WORDS, Run, tasks_of
from agent_run.ledger.metrics.report import Metrics
from agent_run.telemetry import names
from agent_run.telemetry.spans import nanoseconds
from agent_run.version import __version__

_SECONDS: Final = (0.01, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3_600)
_TOKENS: Final = tuple(float(4**power) for power in range(14))

_Values: TypeAlias = Mapping[tuple[tuple[str, str], ...], Sequence[float]]


def metrics_data(
    metrics: Metrics, runs: Sequence[Run], resource: Resource, *, now: datetime
) -> MetricsData:
    """Return everything there is to send about a ledger."""
    begun = min((run.opened_at for run in runs), default=now)
    start, end = nanoseconds(begun), nanoseconds(now)
    found = [_gauge(family, start, end) for family in families(metrics) if family.samples]
    found += list(_histograms(runs, start, end))
    scope = ScopeMetrics(InstrumentationScope(names.SCOPE, __version__), found, "")
    return MetricsData([ResourceMetrics(resource, [scope], "")])


def _gauge(family: Family, start: int, end: int) -> Metric:
    points = [
        NumberDataPoint(
            {**sample.labels, **({"part": sample.suffix[1:]} if sample.suffix else {})},
            start,
            end,
            sample.value,
        )
        for sample in family.samples
    ]
    name = "agent_run." + family.name.removeprefix("agent_run_")
    return Metric(name, family.says, "1", Gauge(points))


def _histograms(runs: Sequence[Run], start: int, end: int) -> Iterator[Metric]:
    finished = [run for run in runs if _over(run)]
    workflows: _Values = {((names.WORKFLOW, "all"),): [run.seconds for run in finished]}
    yield from _histogram(names.WORKFLOW_DURATION, "s", workflows, _SECONDS, (start, end))
    took: dict[tuple[tuple[str, str], ...], list[float]] = {}
    used: dict[tuple[tuple[str, str], ...], list[float]] = {}
    for task in tasks_of(runs):
        for attempt in task.attempts:
            agent = ((names.AGENT, task.executor or attempt.owner),)
            if attempt.seconds is not None:
                took.setdefault(agent, []).append(attempt.seconds)
            if attempt.spent.tokens:
                model = (*agent, (names.REQUEST_MODEL, attempt.model or "unknown"))
                used.setdefault(model, []).append(attempt.spent.tokens)
    yield from _histogram(names.AGENT_DURATION, "s", took, _SECONDS, (start, end))
    yield from _histogram(names.TOKEN_USAGE, "{token}", used, _TOKENS, (start, end))


def _histogram(
    name: str, unit: str, values: _Values, bounds: Sequence[float], times: tuple[int, int]
) -> Iterator[Metric]:
    points = [
        HistogramDataPoint(
            attributes=dict(labels),
            start_time_unix_nano=times[0],
            time_unix_nano=times[1],
            count=len(these),
            sum=sum(these),
            bucket_counts=_buckets(these, bounds),
            explicit_bounds=list(bounds),
            min=min(these),
            max=max(these),
        )
        for labels, these in values.items()
        if these
    ]
    if points:
        yield Metric(name, "", unit, Histogram(points, AggregationTemporality.CUMULATIVE))


def _buckets(values: Iterable[float], bounds: Sequence[float]) -> list[int]:
    counts = [0] * (len(bounds) + 1)
    for value in values:
        counts[bisect_left(bounds, value)] += 1
    return counts


def _over(run: Run) -> bool:
    return bool(run.tasks) and all(t.status in SETTLED_WORDS for t in run.tasks.values())
