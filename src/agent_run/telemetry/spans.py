"""From pages to spans: the same pages always give the same spans, under the same ids.

So a run can be sent again, whole or from a page on, and a backend that knows a span already
learns nothing new.
"""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from agent_run.ledger.pages import Page
from agent_run.ledger.strips import Strip, strips
from agent_run.telemetry.describing import described
from agent_run.telemetry.names import SCOPE
from agent_run.version import __version__

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_TRACE_BYTES: Final = 16
_SPAN_BYTES: Final = 8


def spans_of(
    pages: Sequence[Page], resource: Resource, *, after: int = 0, content: bool = False
) -> list[ReadableSpan]:
    """Return a span for all that ended on a page behind `after`."""
    if not pages:
        return []
    run_id, trace = pages[0].run_id, trace_number(pages[0].trace_id)
    scope = InstrumentationScope(SCOPE, __version__)

    def context(key: str) -> SpanContext:
        number = span_number(run_id, key)
        return SpanContext(trace, number, is_remote=False, trace_flags=TraceFlags(1))

    def span(strip: Strip) -> ReadableSpan:
        said = described(strip, run_id, content=content)
        return ReadableSpan(
            name=said.name,
            context=context(strip.key),
            parent=None if strip.parent is None else context(strip.parent),
            resource=resource,
            attributes=dict(said.attributes),
            kind=SpanKind.CLIENT if said.leaves else SpanKind.INTERNAL,
            status=Status(StatusCode.ERROR if said.failed else StatusCode.UNSET),
            start_time=nanoseconds(strip.start),
            end_time=nanoseconds(strip.end or strip.start),
            instrumentation_scope=scope,
        )

    return [
        span(strip)
        for strip in strips(pages)
        if strip.closed_on is not None and strip.closed_on > after
    ]


def trace_number(trace_id: str) -> int:
    """Return our trace id as W3C numbers it; another kind of id gets a number of its own."""
    try:
        number = int(trace_id, 16) if len(trace_id) == 2 * _TRACE_BYTES else 0
    except ValueError:
        number = 0
    return number or _hashed(trace_id, _TRACE_BYTES)


def span_number(run_id: str, key: str) -> int:
    """Return the id of a span, always the same for the same strip."""
    return _hashed(f"{run_id}\n{key}", _SPAN_BYTES)


def nanoseconds(moment: datetime) -> int:
    """Return the time as telemetry counts it."""
    return (moment - _EPOCH) // _MICROSECOND * 1_000


def _hashed(text: str, size: int) -> int:
    # An id of zero means none; that a hash gives it is as good as impossible.
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:size], "big") or 1
