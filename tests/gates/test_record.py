"""The record against the tree, the commands and the schema; and the author's own doubt."""

from typing import Any

import anyio
import pytest

from agent_run.contract.record import Record
from agent_run.gates.record import ConfidenceGate, RecordGate
from agent_run.ports.workspace import Candidate, Issue
from tests.gates.cases import case, change, outcomes

ONE = Candidate("t", (change("src/a.py"),))
AGREES = [("pass", "verified")]
LIES = [("fail", "record_mismatch")]


def asked(record: Record, **more: Any) -> list[tuple[str, str]]:
    return outcomes(anyio.run(RecordGate().check, case(record=record, **more)))


@pytest.mark.parametrize("named", ["src/a.py", "./src/a.py"])
def test_a_record_that_names_what_changed_agrees(named: str) -> None:
    assert asked(Record(files_changed=(named,)), candidate=ONE) == AGREES


@pytest.mark.parametrize("named", [(), ("src/a.py", "src/b.py"), ("src/b.py",)])
def test_a_record_that_names_too_little_or_too_much_does_not(named: tuple[str, ...]) -> None:
    assert set(asked(Record(files_changed=named), candidate=ONE)) == set(LIES)


def test_naming_a_file_that_was_refused_is_honest() -> None:
    candidate = Candidate("t", refused=(Issue("out_of_scope", "README.md", "x"),))

    assert asked(Record(files_changed=("README.md",)), candidate=candidate) == AGREES


def test_only_the_worker_can_say_that_the_record_was_built() -> None:
    built = Record(files_changed=("other",), observed_only=True)

    assert asked(built, candidate=ONE, observed={"record_built": True}) == AGREES
    assert set(asked(built, candidate=ONE)) == set(LIES)


def test_commands_are_compared_where_they_were_seen() -> None:
    record = Record(commands_run=("pytest  -q",))

    assert asked(record, observed={"commands_run": ["bash -lc 'pytest -q'"]}) == AGREES
    assert asked(record, observed={"commands_run": ["ls"]}) == LIES
    assert asked(record, observed={"commands_run": []}) == LIES
    assert asked(record, observed={"commands_run": None}) == AGREES


def test_a_pass_says_that_commands_were_not_seen() -> None:
    looked_at = case(record=Record(commands_run=("make",)), observed={"commands_run": None})

    (found,) = anyio.run(RecordGate().check, looked_at)

    assert found.evidence.endswith("which commands were run was not")


@pytest.mark.parametrize(
    ("observed", "reason"),
    [
        ({"invalid_record": "no JSON"}, "invalid_record"),
        ({"error": "exit 1", "ended": "exited"}, "executor_failed"),
        ({"error": "took too long", "ended": "timeout"}, "timeout"),
    ],
)
def test_what_the_worker_saw_counts_more_than_what_is_said(
    observed: dict[str, str], reason: str
) -> None:
    assert asked(Record(status="done"), observed=observed) == [("fail", reason)]


@pytest.mark.parametrize(
    "record", [Record(status="failed"), Record(status="skipped"), Record(next_action="revise")]
)
def test_an_executor_that_says_it_is_not_done_is_believed(record: Record) -> None:
    assert asked(record) == [("fail", "executor_failed")]


def test_output_must_fit_the_schema() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

    assert asked(Record(output={"n": 1}), output_schema=schema) == AGREES
    assert asked(Record(output={"n": "1"}), output_schema=schema) == [
        ("fail", "invalid_record")
    ]
    assert asked(Record(), output_schema=schema) == [("fail", "invalid_record")]


@pytest.mark.parametrize(("said", "outcome"), [(0.7, "pass"), (0.69, "fail"), (None, "fail")])
def test_confidence_is_asked_for_only_where_it_matters(
    said: float | None, outcome: str
) -> None:
    record = Record(confidence=said)

    (found,) = anyio.run(ConfidenceGate().check, case(record=record, min_confidence=0.7))

    assert found.outcome == outcome
    assert anyio.run(ConfidenceGate().check, case(record=record)) == ()
