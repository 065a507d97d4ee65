"""Telemetry: the spans and metrics that leave, and that nothing written leaves unasked."""

from datetime import timedelta
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from agent_run.contract.budget import Spend
from agent_run.contract.envelope import Envelope
from agent_run.errors import Unfit
from agent_run.ledger.commands import OpenRun, Reserve
from agent_run.ledger.metrics.report import measure
from agent_run.telemetry import names
from agent_run.telemetry.sending import Sender, open_sender
from agent_run.telemetry.spans import trace_number
from tests.support.books import TRACE, Book
from tests.support.otlp import otlp_receiver
from tests.support.stories import FAILED, PASSED, claim, judge, post, settle, submit

SECRET = "the objective nobody else may read"
SECOND = timedelta(seconds=1)


def _book() -> Book:
    book = Book("run-7")
    book.tell(OpenRun(actor="p", intent=SECRET, plan={"plan": {}}))
    book.tell(post("a", executor="claude"), post("b", needs=["a"])).wait(SECOND)
    book.tell(claim(task_id="a"))
    amount = Spend(tokens=9)
    book.tell(
        Reserve(task_id="a", actor="ada", claim=4, key="k1", amount=amount, purpose="search"),
        Reserve(
            task_id="a", actor="ada", claim=4, key="k2", amount=amount, purpose="chat acme:m1"
        ),
    ).wait(SECOND)
    book.tell(settle("k1", 7, claim=4, task_id="a"), settle("k2", 8, claim=4, task_id="a"))
    seen = {"model": "acme:m1", "fence": {"kind": "landlock+seccomp"}}
    book.submit(4, "a", observed=seen, output=SECRET, confidence=0.9, tokens_used=20)
    envelope = Envelope(source="a", target="b", payload=SECRET, trace_id=TRACE, tokens=6)
    book.wait(SECOND).tell(judge(PASSED, "a", handoffs=(envelope,)))
    book.tell(claim(task_id="b"), submit(13, "b"), judge(FAILED, "b"))
    return book


def _sent(book: Book, **how: Any) -> list[Any]:
    exporter = InMemorySpanExporter()
    Sender(exporter, resource=Resource({})).spans(book.pages, **how)
    return list(exporter.get_finished_spans())


def test_the_pinned_names_are_those_of_the_conventions() -> None:
    pinned = {
        names.PROVIDER: "gen_ai.provider.name",
        names.REQUEST_MODEL: "gen_ai.request.model",
        names.AGENT: "gen_ai.agent.name",
        names.CONVERSATION: "gen_ai.conversation.id",
        names.WORKFLOW: "gen_ai.workflow.name",
        names.TOOL: "gen_ai.tool.name",
        names.TOOL_CALL: "gen_ai.tool.call.id",
        names.TOKEN_USAGE: "gen_ai.client.token.usage",
        names.AGENT_DURATION: "gen_ai.invoke_agent.duration",
        names.WORKFLOW_DURATION: "gen_ai.invoke_workflow.duration",
        names.ERROR: "error.type",
    }

    assert all(ours == theirs for ours, theirs in pinned.items())


def test_each_kind_of_thing_becomes_a_span_of_its_own() -> None:
    spans = {span.name: span for span in _sent(_book())}

    assert set(spans) == {
        "plan run-7",
        "task a",
        "invoke_agent claude",
        "execute_tool search",
        "chat acme:m1",
        "gate commands",
        "handoff a to b",
        "invoke_agent ada",
    }
    agent = spans["invoke_agent claude"].attributes
    assert agent["gen_ai.request.model"] == "acme:m1"
    assert agent["gen_ai.provider.name"] == "acme"
    assert agent["agent_run.usage.tokens"] == 20
    assert spans["handoff a to b"].attributes["agent_run.handoff.tokens"] == 6


def test_spans_belong_to_the_trace_of_the_run_and_to_their_parents() -> None:
    spans = {span.name: span for span in _sent(_book())}

    agent, call = spans["invoke_agent claude"], spans["execute_tool search"]

    assert {span.context.trace_id for span in spans.values()} == {int(TRACE, 16)}
    assert call.parent.span_id == agent.context.span_id
    assert agent.parent.span_id == spans["task a"].context.span_id
    assert call.end_time - call.start_time == 1_000_000_000


def test_nothing_that_was_written_leaves_unless_it_is_asked_for() -> None:
    quiet, loud = _sent(_book()), _sent(_book(), content=True)

    assert SECRET not in str([dict(span.attributes) for span in quiet])
    assert SECRET in str([dict(span.attributes) for span in loud])


def test_the_same_pages_give_the_same_spans_and_only_new_ones_are_sent() -> None:
    book = _book()
    first = {(span.name, span.context.span_id) for span in _sent(book)}
    before = len(book.pages)
    book.tell(claim(task_id="b"), submit(16, "b"), judge(PASSED, "b"))

    again = {(span.name, span.context.span_id) for span in _sent(book)}
    new = [span.name for span in _sent(book, after=before)]

    assert first < again
    assert sorted(new) == [
        "gate commands",
        "invoke_agent ada",
        "invoke_workflow run-7",
        "task b",
    ]


def test_a_gate_that_failed_is_an_error_with_its_reason() -> None:
    failed = [span for span in _sent(_book()) if span.status.status_code is StatusCode.ERROR]

    assert [span.name for span in failed] == ["gate commands"]
    assert failed[0].attributes["error.type"] == "verification_failed"


def test_an_id_of_another_kind_gets_a_number_all_the_same() -> None:
    assert trace_number("abc") == trace_number("abc") != trace_number("abd")
    assert trace_number("0" * 32) > 0


def test_a_collector_gets_spans_and_metrics_by_the_standard_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    book = _book()
    with otlp_receiver() as (url, got):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        monkeypatch.setenv("OTEL_SERVICE_NAME", "qa")
        sender = open_sender({})
        count = sender.spans(book.pages)
        runs = [book.run()]
        sender.metrics(measure(runs), runs, now=book.now)
        sender.close()

    (spans_at, spans), (metrics_at, metrics) = got
    assert (spans_at, metrics_at) == ("/v1/traces", "/v1/metrics")
    traced = ExportTraceServiceRequest.FromString(spans).resource_spans[0]
    assert len(traced.scope_spans[0].spans) == count == 9
    who = {one.key: one.value.string_value for one in traced.resource.attributes}
    assert who["service.name"] == "qa"
    measured = ExportMetricsServiceRequest.FromString(metrics).resource_metrics[0]
    found = {metric.name: metric for metric in measured.scope_metrics[0].metrics}
    assert "agent_run.tasks" in found
    usage = found["gen_ai.client.token.usage"].histogram.data_points[0]
    assert (usage.count, usage.sum) == (1, 20)


def test_our_own_name_stands_where_no_other_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_SERVICE_NAME", raising=False)
    with otlp_receiver() as (url, got):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        sender = open_sender({})
        sender.spans(_book().pages)
        sender.close()

    traced = ExportTraceServiceRequest.FromString(got[0][1]).resource_spans[0]
    who = {one.key: one.value.string_value for one in traced.resource.attributes}
    assert who["service.name"] == "agent-run"


def test_a_collector_that_refuses_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with otlp_receiver(answer=400) as (url, _):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        sender = open_sender({})
        with pytest.raises(Unfit, match="9 spans could not be sent"):
            sender.spans(_book().pages)
        sender.close()


@pytest.mark.parametrize(
    "environ", [{"OTEL_SDK_DISABLED": "true"}, {"OTEL_TRACES_EXPORTER": "none"}]
)
def test_switched_off_nothing_is_sent(environ: dict[str, str]) -> None:
    assert open_sender(environ).spans(_book().pages) == 0


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "is 'zipkin', expected 'otlp', 'console'"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "is 'grpc', expected 'http/protobuf'"),
    ],
)
def test_what_is_not_here_is_refused(environ: dict[str, str], said: str) -> None:
    with pytest.raises(Unfit, match=said):
        open_sender(environ)
