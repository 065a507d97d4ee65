"""Metrics as OpenTelemetry carries them.

The ledger is complete, so histograms are cumulative from its first page: they may be sent
any number of times and nothing is counted twice. What is a share stays a gauge.
"""

from bisect import bisect_left
from collections import defaultdict
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
from agent_run.ledger.metrics.facts import SETTLED_WORDS, Attempt, Call, Run, tasks_of
from agent_run.ledger.metrics.report import Metrics
from agent_run.telemetry import names
from agent_run.telemetry.describing import model_name, provider_of
from agent_run.telemetry.spans import nanoseconds
from agent_run.version import __version__

_SECONDS: Final = (*(0.01 * 2**power for power in range(14)), 300.0, 900.0, 3_600.0)
"""The buckets that the conventions advise, and some more, for agents may work for hours."""
_TOKENS: Final = tuple(float(4**power) for power in range(14))

_Labels: TypeAlias = tuple[tuple[str, str], ...]
_Values: TypeAlias = Mapping[_Labels, Sequence[float]]
_Gathered: TypeAlias = defaultdict[_Labels, list[float]]
_Times: TypeAlias = tuple[int, int]


def metrics_data(
    metrics: Metrics, runs: Sequence[Run], resource: Resource, *, now: datetime
) -> MetricsData:
    """Return everything there is to send about a ledger."""
    begun = min((run.opened_at for run in runs), default=now)
    start, end = nanoseconds(begun), nanoseconds(now)
    found = [_gauge(family, start, end) for family in families(metrics) if family.samples]
    found += list(_histograms(runs, (start, end)))
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


def _histograms(runs: Sequence[Run], times: _Times) -> Iterator[Metric]:
    finished = [run for run in runs if _over(run)]
    workflows: _Values = {((names.WORKFLOW, "all"),): [run.seconds for run in finished]}
    yield from _histogram(names.WORKFLOW_DURATION, "s", workflows, times)
    took: _Gathered = defaultdict(list)
    used: _Gathered = defaultdict(list)
    calls: list[Call] = []
    for task in tasks_of(runs):
        for attempt in task.attempts:
            agent = ((names.AGENT, task.executor or attempt.owner),)
            if attempt.seconds is not None:
                took[agent].append(attempt.seconds)
            if attempt.spent.tokens and not any(call.usage for call in attempt.calls):
                used[*agent, *_undivided(attempt)].append(attempt.spent.tokens)
            calls += attempt.calls
    yield from _histogram(names.AGENT_DURATION, "s", took, times)
    yield from _of_calls(calls, used, times)


def _of_calls(calls: Iterable[Call], tokens: _Gathered, times: _Times) -> Iterator[Metric]:
    """Yield what is measured of each question to a model, and of each use of a tool."""
    chats: _Gathered = defaultdict(list)
    tools: _Gathered = defaultdict(list)
    for call in calls:
        failed = () if call.error is None else ((names.ERROR, call.error),)
        if call.operation == names.CHAT:
            asked = _asked(call)
            _keep(chats, (*asked, *failed), call.seconds)
            if call.usage is not None:
                tokens[*asked, (names.TOKEN_TYPE, "input")].append(call.usage.tokens_in)
                tokens[*asked, (names.TOKEN_TYPE, "output")].append(call.usage.tokens_out)
        else:
            _keep(tools, ((names.TOOL, call.name), *failed), call.seconds)
    yield from _histogram(names.OPERATION_DURATION, "s", chats, times)
    yield from _histogram(names.TOOL_DURATION, "s", tools, times)
    yield from _histogram(names.TOKEN_USAGE, "{token}", tokens, times)


def _asked(call: Call) -> _Labels:
    return ((names.OPERATION, call.operation), *_model(call.name))


def _undivided(attempt: Attempt) -> _Labels:
    """Label tokens of which a record told only the sum, as coding agents do."""
    return (
        (names.OPERATION, names.INVOKE_AGENT),
        *_model(attempt.model or "unknown"),
        (names.TOKEN_TYPE, "total"),
    )


def _model(name: str) -> _Labels:
    return (
        (names.PROVIDER, provider_of(name) or "unknown"),
        (names.REQUEST_MODEL, model_name(name)),
    )


def _keep(values: _Gathered, labels: _Labels, seconds: float | None) -> None:
    if seconds is not None:
        values[labels].append(seconds)


def _histogram(name: str, unit: str, values: _Values, times: _Times) -> Iterator[Metric]:
    bounds = _TOKENS if unit == "{token}" else _SECONDS
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
