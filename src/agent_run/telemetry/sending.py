"""Sending spans and metrics where the standard variables say.

`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_EXPORTER_OTLP_TIMEOUT` and
the rest are read by the exporters themselves; what is decided here is only whether to send
at all, and in whose name.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics.export import (
    ConsoleMetricExporter,
    MetricExporter,
    MetricExportResult,
)
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import (
    ConsoleSpanExporter,
    SpanExporter,
    SpanExportResult,
)

from agent_run.errors import Unfit
from agent_run.ledger.metrics.facts import Run
from agent_run.ledger.metrics.report import Metrics
from agent_run.ledger.pages import Page
from agent_run.telemetry.measurements import metrics_data
from agent_run.telemetry.names import SERVICE
from agent_run.telemetry.spans import spans_of

_AT_ONCE: Final = 512
_EXPORTERS: Final = "'otlp', 'console' or 'none'"


class Sender:
    """Sends what the pages of runs say; knows nothing between two calls."""

    def __init__(
        self,
        spans: SpanExporter | None,
        metrics: MetricExporter | None = None,
        *,
        resource: Resource,
    ) -> None:
        """Take the exporters; `None` sends nothing of that kind."""
        self._spans = spans
        self._metrics = metrics
        self._resource = resource

    def spans(self, pages: Sequence[Page], *, after: int = 0, content: bool = False) -> int:
        """Send what ended behind page `after` of one run, and return how many spans it was.

        Raises:
            Unfit: Nobody took them.
        """
        if self._spans is None:
            return 0
        found = spans_of(pages, self._resource, after=after, content=content)
        for some in _batches(found):
            if self._spans.export(some) is not SpanExportResult.SUCCESS:
                msg = f"{len(found)} spans could not be sent; see the OTEL_EXPORTER_ variables"
                raise Unfit(msg)
        return len(found)

    def metrics(self, metrics: Metrics, runs: Sequence[Run], *, now: datetime) -> None:
        """Send the metrics of a ledger as it stands.

        Raises:
            Unfit: Nobody took them.
        """
        if self._metrics is None:
            return
        data = metrics_data(metrics, runs, self._resource, now=now)
        if self._metrics.export(data) is not MetricExportResult.SUCCESS:
            msg = "the metrics could not be sent; see the OTEL_EXPORTER_ variables"
            raise Unfit(msg)

    def close(self) -> None:
        """Let go of connections."""
        for exporter in (self._spans, self._metrics):
            if exporter is not None:
                exporter.shutdown()


def open_sender(environ: Mapping[str, str]) -> Sender:
    """Return the sender that the standard variables describe.

    Raises:
        Unfit: They ask for something that is not here.
    """
    disabled = environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    protocol = environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    if protocol != "http/protobuf":
        msg = f"OTEL_EXPORTER_OTLP_PROTOCOL is {protocol!r}, expected 'http/protobuf'"
        raise Unfit(msg)
    spans = "none" if disabled else _chosen(environ, "OTEL_TRACES_EXPORTER")
    metrics = "none" if disabled else _chosen(environ, "OTEL_METRICS_EXPORTER")
    return Sender(_span_exporter(spans), _metric_exporter(metrics), resource=_resource())


def _chosen(environ: Mapping[str, str], name: str) -> str:
    chosen = environ.get(name) or "otlp"
    if chosen not in {"otlp", "console", "none"}:
        msg = f"{name} is {chosen!r}, expected {_EXPORTERS}"
        raise Unfit(msg)
    return chosen


def _span_exporter(chosen: str) -> SpanExporter | None:
    if chosen == "none":
        return None
    return OTLPSpanExporter() if chosen == "otlp" else ConsoleSpanExporter()


def _metric_exporter(chosen: str) -> MetricExporter | None:
    if chosen == "none":
        return None
    return OTLPMetricExporter() if chosen == "otlp" else ConsoleMetricExporter()


def _resource() -> Resource:
    """Return who speaks: what the variables say, else our own name."""
    found = Resource.create()
    if str(found.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        return found.merge(Resource({SERVICE_NAME: SERVICE}))
    return found


def _batches(found: Sequence[ReadableSpan]) -> Iterator[Sequence[ReadableSpan]]:
    for start in range(0, len(found), _AT_ONCE):
        yield found[start : start + _AT_ONCE]
