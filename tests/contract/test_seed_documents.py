"""The documents that started it all load as they were printed, and have one canonical form."""

import json
from datetime import UTC, datetime

import pytest
from pydantic import BaseModel

from agent_run.contract.claim import ClaimCheck
from agent_run.contract.envelope import Envelope
from agent_run.contract.manifest import Manifest
from agent_run.contract.plan import Plan
from agent_run.contract.reading import load, read_document
from agent_run.contract.record import Record
from agent_run.errors import InvalidDocument

MANIFEST = """\
task_id: repo-142
objective: Add rate-limit backoff to the GitHub sync worker
allowed_paths:
- src/github_sync.py
- tests/test_github_sync.py
constraints:
- Do not change API response schemas
- Keep max retry delay under 30 seconds
verification:
- pytest tests/test_github_sync.py -q
- python -m scripts.smoke_github_sync
handoff_notes:
- Existing failures come from 429 handling
- Prefer jittered exponential backoff
"""

RECORD = """\
{
"task_id": "repo-142",
"status": "needs_review",
"files_changed": [
"src/github_sync.py",
"tests/test_github_sync.py"
],
"commands_run": [
"pytest tests/test_github_sync.py -q",
"python -m scripts.smoke_github_sync"
],
"risks": [
"Backoff constants tuned for current API rate window"
],
"next_step": "Review retry cap before merging"
}"""

CLAIM_CHECK = """\
{"task_id": "repo-142", "owner": "executor-3",
 "expires_at": "2026-11-16T12:20:00", "attempt": 1}"""

PLANNER_OUTPUT = """\
{"subtasks": [
  {"id": "research-x", "description": "Research X", "priority": 2},
  {"id": "2", "description": "Research Y", "priority": 1}],
 "reasoning": "X and Y do not depend on each other.", "confidence": 0.8}"""

WORKER_RESULTS = (
    '{"task_id": "research-x", "status": "success", "output": "X is fine", "error": null}',
    '{"task_id": "2", "status": "failed", "output": null, "error": "timed out"}',
    '{"task_id": "3", "status": "skipped"}',
)

ENVELOPE = """\
{"source": "planner", "target": "worker", "payload": {}, "trace_id": "abc-123",
 "confidence": 0.0, "warnings": ["output truncated from 2048 to 1024 tokens"]}"""

TOOL_PLAN = """\
{"steps": [
  {"tool": "search", "arg": "AI agent architecture"},
  {"tool": "fetch", "arg": "https://anthropic.com/.../agents"},
  {"tool": "summarize", "arg": "...content..."}
]}"""

PLAN_CONTEXT_LOG = """\
{
  "plan": [
    {
      "node": "specialist_a",
      "message": "User wants an event-driven setup. Confirm event type and behavior with user."
    },
    {
      "node": "config_a",
      "message": "Collect configuration details from user. This is a HITL step."
    },
    {
      "node": "specialist_b",
      "message": "User mentioned two integrations. Identify and select the appropriate ones."
    },
    {
      "node": "config_b",
      "message": "Collect integration parameters from user. Static params via interrupt."
    },
    {
      "node": "composer",
      "message": "Write agent instructions covering the event setup and integration workflow."
    },
    {
      "node": "save_node",
      "message": "Save all changes to backend and propagate to frontend."
    },
    {
      "node": "summarizer",
      "message": "Summarize what was configured for the user."
    }
  ]
}"""

CHECKLIST_PLAN = """\
{
  "plan_id": "uuid",
  "steps": [
    {
      "id": "tone-check",
      "goal": "Verify tone matches brand voice",
      "context": "Use /docs/brand/tone.md",
      "max_attempts": 2,
      "min_confidence": 0.7,
      "time_budget_sec": 45
    }
  ],
  "overall_budget": {
    "max_attempts": 6,
    "max_tokens": 6000,
    "time_budget_sec": 240
  }
}"""

EXECUTION_RESULT = """\
{
  "step_id": "tone-check",
  "status": "passed|failed|blocked",
  "confidence": 0.82,
  "notes": "Tone matches style guide but lacks CTA.",
  "evidence": [
    { "type": "quote", "content": "Excerpt with adjustments" },
    { "type": "link", "content": "https://link-checker/report/123" }
  ],
  "tokens_used": 620,
  "elapsed_ms": 2800,
  "next_action": "continue|revise|escalate"
}"""

DOCUMENTS: list[tuple[type[BaseModel], str, str]] = [
    (Manifest, "repo-142.yaml", MANIFEST),
    (Record, "record.json", RECORD),
    (ClaimCheck, "claim.json", CLAIM_CHECK),
    (Plan, "planner-output.json", PLANNER_OUTPUT),
    *((Record, "worker-result.json", text) for text in WORKER_RESULTS),
    (Envelope, "envelope.json", ENVELOPE),
    (Plan, "tool-plan.json", TOOL_PLAN),
    (Plan, "plan-context-log.json", PLAN_CONTEXT_LOG),
    (Plan, "checklist-plan.json", CHECKLIST_PLAN),
    (Record, "execution-result.json", EXECUTION_RESULT),
]


@pytest.mark.parametrize(("model", "source", "text"), DOCUMENTS, ids=[d[1] for d in DOCUMENTS])
def test_a_printed_document_loads_and_its_canonical_form_loads_the_same(
    model: type[BaseModel], source: str, text: str
) -> None:
    loaded = load(model, read_document(text, source=source))

    written = loaded.model_dump_json()
    again = load(model, read_document(written, source="canonical.json"))
    assert again == loaded
    assert again.model_dump_json() == written


def test_the_manifest_keeps_every_word() -> None:
    manifest = load(Manifest, read_document(MANIFEST, source="repo-142.yaml"))

    assert manifest.task_id == "repo-142"
    assert manifest.allowed_paths == ("src/github_sync.py", "tests/test_github_sync.py")
    assert [check.run for check in manifest.verification] == [
        "pytest tests/test_github_sync.py -q",
        "python -m scripts.smoke_github_sync",
    ]
    assert manifest.handoff_notes[1] == "Prefer jittered exponential backoff"
    assert manifest.budget.attempts == 3


def test_the_claim_check_knows_when_it_has_expired() -> None:
    check = ClaimCheck.model_validate_json(CLAIM_CHECK.replace("12:20:00", "12:20:00Z"))

    assert not check.expired(now=datetime(2026, 11, 16, 12, 19, 59, tzinfo=UTC))
    assert check.expired(now=datetime(2026, 11, 16, 12, 20, tzinfo=UTC))


def test_subtasks_become_independent_steps_with_their_priority() -> None:
    plan = load(Plan, read_document(PLANNER_OUTPUT, source="plan.json"))

    assert [(step.task_id, step.objective, step.priority) for step in plan.steps] == [
        ("research-x", "Research X", 2),
        ("2", "Research Y", 1),
    ]
    assert plan.order == "graph"
    assert (plan.confidence, plan.reasoning) == (0.8, "X and Y do not depend on each other.")


def test_a_plan_without_subtasks_is_refused_before_workers_silently_do_nothing() -> None:
    with pytest.raises(InvalidDocument, match="subtasks: has 0 items"):
        load(Plan, read_document('{"subtasks": []}', source="plan.json"))


def test_subtasks_that_are_a_string_this_time_are_refused() -> None:
    with pytest.raises(InvalidDocument, match="subtasks: is 'research X', expected a list"):
        load(Plan, read_document('{"subtasks": "research X"}', source="plan.json"))


def test_tool_calls_become_steps_that_wait_for_each_other() -> None:
    plan = load(Plan, read_document(TOOL_PLAN, source="plan.json"))

    assert [(step.task_id, step.executor) for step in plan.steps] == [
        ("step-1", "search"),
        ("step-2", "fetch"),
        ("step-3", "summarize"),
    ]
    assert plan.steps[0].input == {"arg": "AI agent architecture"}
    assert [step.needs for step in plan.manifests()] == [(), ("step-1",), ("step-2",)]


def test_nodes_become_steps_in_order_each_with_its_message() -> None:
    plan = load(Plan, read_document(PLAN_CONTEXT_LOG, source="plan.json"))

    assert plan.order == "sequence"
    assert [step.executor for step in plan.steps][-2:] == ["save_node", "summarizer"]
    assert plan.steps[0].objective.startswith("User wants an event-driven setup.")


def test_checklist_steps_keep_their_budgets_and_thresholds() -> None:
    plan = load(Plan, read_document(CHECKLIST_PLAN, source="plan.json"))

    (step,) = plan.steps
    assert (step.task_id, step.objective) == ("tone-check", "Verify tone matches brand voice")
    assert step.handoff_notes == ("Use /docs/brand/tone.md",)
    assert (step.budget.max_attempts, step.budget.time_budget_sec) == (2, 45)
    assert step.min_confidence == 0.7
    assert (plan.budget.max_attempts, plan.budget.max_tokens) == (6, 6000)


def test_a_worker_result_keeps_output_or_error() -> None:
    done, failed, skipped = (
        load(Record, read_document(text, source="r.json")) for text in WORKER_RESULTS
    )

    assert (done.status, done.output, done.error) == ("done", "X is fine", "")
    assert (failed.status, failed.output, failed.error) == ("failed", None, "timed out")
    assert skipped.status == "skipped"


def test_an_executor_that_echoes_the_choices_has_decided_nothing() -> None:
    record = load(Record, read_document(EXECUTION_RESULT, source="result.json"))

    assert (record.task_id, record.status) == ("tone-check", "blocked")
    assert record.next_action == "escalate"
    assert len(record.warnings) == 2
    assert record.evidence[1].content == "https://link-checker/report/123"
    assert (record.spend.tokens, record.spend.elapsed_ms) == (620, 2800)


def test_every_fault_of_a_plan_is_named_with_its_line() -> None:
    text = json.dumps(
        {
            "steps": [
                {"task_id": "a", "objective": "x", "needs": ["b"]},
                {"task_id": "b", "objective": "x", "needs": ["a", "ghost"]},
                {"task_id": "a", "objective": "x"},
            ]
        },
        indent=1,
    )

    with pytest.raises(InvalidDocument) as refused:
        load(Plan, read_document(text, source="plan.json"))

    assert str(refused.value).splitlines() == [
        "plan.json:2: steps: wait for each other in a circle: a -> b -> a",
        "plan.json:15: steps[1].needs[1]: is 'ghost', expected the task_id of a step of this plan",  # noqa: E501
        "plan.json:19: steps[2].task_id: is 'a' again, which steps[0] is already",
    ]


def test_a_model_given_as_output_is_written_as_plain_json() -> None:
    plain: Record = Record(output=Manifest(task_id="a", objective="b"))

    assert isinstance(plain.output, dict)
    assert plain.output["task_id"] == "a"
