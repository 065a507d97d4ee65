"""Measuring through the door: metrics and trace look, and change nothing."""

import json
import sys
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from agent_run.contract.manifest import Manifest
from agent_run.ledger.commands import Claim, Post
from agent_run.wiring import open_desk
from tests.support.command_line import Ask
from tests.support.otlp import otlp_receiver


def _work(ask: Ask) -> None:
    ask("post", "repo-142.yaml")
    ask("claim", "repo-142", "--owner", "bob")
    ask("submit", "repo-142", "--claim", "2", "--record", "record.json")


def test_metrics_of_no_ledger_are_empty_and_leave_nothing_behind(
    ask: Ask, folder: Path
) -> None:
    answer = ask("metrics", "--json")

    assert (answer.code, answer.json["tasks"]) == (0, 0)
    assert not (folder / ".agent-run").exists()


def test_metrics_tell_the_same_in_every_form(ask: Ask, folder: Path) -> None:
    _work(ask)

    told = ask("metrics", "--json").json
    text = ask("metrics", "--prometheus").out
    table = ask("metrics").out
    ask("metrics", "--html", "page.html")

    assert told["quality"]["statuses"] == {"submitted": 1}
    assert 'agent_run_tasks{status="submitted"} 1' in text.splitlines()
    assert "1 submitted" in table
    assert "1 submitted" in (folder / "page.html").read_text()


def test_metrics_of_one_run_or_since_a_moment_leave_out_the_rest(ask: Ask) -> None:
    ask("post", "repo-142.yaml", "--run", "monday")
    ask("post", "repo-142.yaml", "--run", "tuesday")

    assert ask("metrics", "--run", "monday", "--json").json["runs"] == 1
    assert ask("metrics", "--since", "1h", "--json").json["tasks"] == 2
    assert ask("metrics", "--since", "2999-01-01", "--json").json["tasks"] == 0


def test_a_run_or_a_time_that_is_none_is_refused_in_one_sentence(ask: Ask) -> None:
    unknown, wrong = ask("metrics", "--run", "nobody"), ask("metrics", "--since", "soon")

    assert (unknown.code, wrong.code) == (2, 2)
    assert unknown.err.endswith("agent-run: no run 'nobody' in this ledger\n")
    assert "'soon' is no time, expected something like 7d" in wrong.err


def test_a_page_that_cannot_be_written_is_said(ask: Ask) -> None:
    _work(ask)

    answer = ask("metrics", "--html", "no/such/folder.html")

    assert answer.code == 2
    assert "cannot be written: there is no folder" in answer.err


def test_names_of_strangers_cannot_move_the_cursor_or_open_a_tag(
    ask: Ask, folder: Path
) -> None:
    hostile = "<script>alert(1)</script>\x1b[31m\u202e"
    desk = open_desk(f"sqlite:///{folder / '.agent-run' / 'ledger.db'}")
    manifest = Manifest(task_id="a", objective="x", labels={"step": hostile})
    desk.handle("r", Post(actor="p", manifest=manifest), Claim(task_id="a", owner=hostile))
    desk.close()

    shown = ask("metrics").out + ask("metrics", "--prometheus").out + ask("trace", "a").out
    ask("metrics", "--html", "page.html")
    page = (folder / "page.html").read_text()

    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "<script>" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "&lt;script&gt;" in page


def test_trace_draws_the_waterfall_of_a_task(ask: Ask) -> None:
    _work(ask)

    lines = ask("trace", "repo-142").out.splitlines()
    spans = ask("trace", "repo-142", "--json").json["spans"]

    assert lines[0].split() == ["WHAT", "WHEN", "TOOK", "OUTCOME"]
    assert [span["kind"] for span in spans] == ["task", "attempt"]
    assert lines[2].startswith("  attempt 1 by bob")
    assert spans[1]["outcome"] == "needs_review"


def test_trace_of_a_run_has_all_its_tasks(ask: Ask, folder: Path) -> None:
    plan = {"plan_id": "p", "steps": [{"task_id": n, "objective": "x"} for n in "ab"]}
    (folder / "plan.json").write_text(json.dumps(plan))
    ask("post", "plan.json")

    spans = ask("trace", "p/", "--json").json["spans"]

    assert [span["name"] for span in spans if span["kind"] == "task"] == ["a", "b"]
    assert spans[0]["kind"] == "run"


def test_trace_of_an_unknown_name_is_refused(ask: Ask) -> None:
    answer = ask("trace", "nobody")

    assert answer.code == 2
    assert answer.err.endswith("neither a task nor a run 'nobody' in this ledger\n")


def _names(body: bytes) -> list[str]:
    traced = ExportTraceServiceRequest.FromString(body).resource_spans[0]
    return [span.name for span in traced.scope_spans[0].spans]


def test_with_telemetry_on_each_command_sends_what_it_wrote(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_RUN_TELEMETRY", "true")
    with otlp_receiver() as (url, got):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        _work(ask)
        ask("status")
        ask("trace", "repo-142", "--otlp")

    assert [_names(body) for _, body in got] == [["invoke_agent bob"], ["invoke_agent bob"]]


def test_a_collector_that_is_gone_stops_no_work(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_RUN_TELEMETRY", "true")
    with otlp_receiver(answer=400) as (url, _):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        ask("post", "repo-142.yaml")
        ask("claim", "repo-142", "--owner", "bob")
        answer = ask("submit", "repo-142", "--claim", "2", "--record", "record.json")

    assert answer.code == 0
    assert "telemetry: 1 spans could not be sent" in answer.err


def test_metrics_are_sent_where_the_variables_say(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    _work(ask)
    with otlp_receiver() as (url, got):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        answer = ask("metrics", "--otlp", "-q")

    assert answer.code == 0
    assert [path for path, _ in got] == ["/v1/metrics"]


def test_without_the_extra_it_says_what_to_install(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "agent_run.telemetry.sending", None)
    _work(ask)

    answer = ask("trace", "repo-142", "--otlp")

    assert answer.code == 3
    assert answer.err.endswith("which is not installed; install agent-run[otel]\n")
