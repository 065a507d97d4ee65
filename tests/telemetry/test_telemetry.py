"""Telemetry: the spans and metrics that leave, and that nothing written leaves unasked."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from pydantic import JsonValue

from agent_run.contract.budget import Spend
from agent_run.contract.envelope import Envelope
from agent_run.errors import Unfit
from agent_run.ledger.commands import OpenRun, Reserve, Settle
from agent_run.ledger.metrics.report import measure
from agent_run.telemetry import names
from agent_run.telemetry.describing import model_name, provider_of
from agent_run.telemetry.sending import Sender, open_sender
from agent_run.telemetry.spans import trace_number
from tests.support.books import TRACE, Book
from tests.support.otlp import otlp_receiver
from tests.support.stories import FAILED, PASSED, claim, judge, post, settle, submit

SECRET = "the objective nobody else may read"
SECOND = timedelta(seconds=1)


QUESTION = "step-1:acme:m1:1:0123456789abcdef"
USAGE: JsonValue = {"tokens_in": 5, "tokens_out": 3}


def _reserve(key: str, amount: Spend, purpose: str) -> Reserve:
    return Reserve(task_id="a", actor="ada", claim=4, key=key, amount=amount, purpose=purpose)


def _settle(key: str, tokens: int, result: JsonValue) -> Settle:
    spent = Spend(tokens=tokens)
    return Settle(task_id="a", actor="ada", claim=4, key=key, spent=spent, result=result)


def _book() -> Book:
    book = Book("run-7")
    book.tell(OpenRun(actor="p", intent=SECRET, plan={"plan": {}}))
    book.tell(post("a", executor="claude"), post("b", needs=["a"])).wait(SECOND)
    book.tell(claim(task_id="a"))
    amount = Spend(tokens=9)
    book.tell(
        _reserve("k1", amount, "tool search"),
        _reserve(QUESTION, amount, "acme:m1"),
    ).wait(SECOND)
    book.tell(settle("k1", 7, claim=4, task_id="a"))
    book.tell(_settle(QUESTION, 8, {"answer": {"model": "m1-2026", "usage": USAGE}}))
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
        names.TOKEN_TYPE: "gen_ai.token.type",
        names.OPERATION_DURATION: "gen_ai.client.operation.duration",
        names.TOOL_DURATION: "gen_ai.execute_tool.duration",
        names.RESPONSE_MODEL: "gen_ai.response.model",
        names.INPUT_TOKENS: "gen_ai.usage.input_tokens",
        names.OUTPUT_TOKENS: "gen_ai.usage.output_tokens",
        names.OPERATION: "gen_ai.operation.name",
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
        "chat m1",
        "gate commands",
        "handoff a to b",
        "invoke_agent ada",
    }
    agent = spans["invoke_agent claude"].attributes
    assert agent["gen_ai.request.model"] == "m1"
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
    assert {name for name in found if name.startswith("gen_ai.")} == {
        "gen_ai.client.operation.duration",
        "gen_ai.client.token.usage",
        "gen_ai.execute_tool.duration",
        "gen_ai.invoke_agent.duration",
    }


def _measured(book: Book, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return every metric that a collector gets, by its name."""
    with otlp_receiver() as (url, got):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        sender = open_sender({})
        runs = [book.run()]
        sender.metrics(measure(runs), runs, now=book.now)
        sender.close()
    measured = ExportMetricsServiceRequest.FromString(got[0][1]).resource_metrics[0]
    return {metric.name: metric for metric in measured.scope_metrics[0].metrics}


def _points(metric: Any) -> dict[tuple[tuple[str, str], ...], tuple[int, float]]:
    return {
        tuple(sorted((one.key, one.value.string_value) for one in point.attributes)): (
            point.count,
            point.sum,
        )
        for point in metric.histogram.data_points
    }


ASKED = (
    ("gen_ai.operation.name", "chat"),
    ("gen_ai.provider.name", "acme"),
    ("gen_ai.request.model", "m1"),
)


def test_each_question_to_a_model_is_measured_and_a_failed_one_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    book = Book("run").tell(post("a"), claim(task_id="a"))
    told: list[tuple[str, JsonValue]] = [
        ("answered", {"answer": {"usage": USAGE}}),
        ("failed", {"failed": "no answer in 60 s"}),
        ("unusable", {"answer": {"usage": USAGE}, "unusable": "it was cut"}),
    ]
    for number, (_, result) in enumerate(told):
        key = f"step-{number}:acme:m1:1:0123456789abcdef"
        asked = replace(_reserve(key, Spend(tokens=9), "acme:m1"), claim=2)
        book.tell(asked).wait(2 * SECOND).tell(replace(_settle(key, 8, result), claim=2))
    lost = _reserve("step-9:acme:m1:1:0123456789abcdef", Spend(tokens=9), "acme:m1")
    book.tell(replace(lost, claim=2)).wait(SECOND).tell(submit(2, "a"))

    found = _measured(book, monkeypatch)

    duration = found["gen_ai.client.operation.duration"]
    assert duration.unit == "s"
    assert _points(duration) == {
        ASKED: (1, 2.0),
        (("error.type", "failed"), *ASKED): (1, 2.0),
        (("error.type", "unusable"), *ASKED): (1, 2.0),
        (("error.type", "unknown"), *ASKED): (1, 1.0),
    }
    assert _points(found["gen_ai.client.token.usage"]) == {
        (*ASKED, ("gen_ai.token.type", "input")): (2, 10),
        (*ASKED, ("gen_ai.token.type", "output")): (2, 6),
    }


def test_tokens_of_which_only_the_sum_is_known_are_sent_as_a_sum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    book = Book("run").tell(post("a", executor="claude"), claim(task_id="a")).wait(SECOND)
    book.submit(2, "a", observed={"model": "acme:m1"}, tokens_used=20)
    book.tell(judge(PASSED, "a"))

    found = _measured(book, monkeypatch)

    (labels,) = _points(found["gen_ai.client.token.usage"])
    assert dict(labels)["gen_ai.token.type"] == "total"
    assert dict(labels)["gen_ai.operation.name"] == "invoke_agent"
    assert list(_points(found["gen_ai.invoke_agent.duration"]).values()) == [(1, 1.0)]
    assert list(_points(found["gen_ai.invoke_workflow.duration"]).values()) == [(1, 1.0)]


def test_a_chat_span_says_what_was_asked_what_it_took_and_who_answered() -> None:
    spans = {span.name: span for span in _sent(_book())}

    chat, tool = spans["chat m1"], spans["execute_tool search"]

    assert chat.kind is SpanKind.CLIENT
    assert tool.kind is SpanKind.INTERNAL
    assert chat.attributes["gen_ai.response.model"] == "m1-2026"
    assert chat.attributes["gen_ai.usage.input_tokens"] == 5
    assert chat.attributes["gen_ai.usage.output_tokens"] == 3
    assert tool.attributes["gen_ai.tool.call.id"] == "k1"


@pytest.mark.parametrize(
    ("configured", "provider", "name"),
    [
        ("anthropic:claude-haiku-5-5", "anthropic", "claude-haiku-5-5"),
        ("openai-chat:qwen@http://localhost:1/v1", "openai", "qwen"),
        ("openai:ft:gpt:me", "openai", "ft:gpt:me"),
        ("opus", None, "opus"),
        ("test:", "test", "test:"),
    ],
)
def test_a_model_is_named_as_its_provider_names_it(
    configured: str, provider: str | None, name: str
) -> None:
    assert (provider_of(configured), model_name(configured)) == (provider, name)


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
