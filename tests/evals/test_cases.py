"""Datasets are checked as a whole, and every fault is told with its line."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_run.errors import InvalidDocument
from agent_run.evals.cases import EvalCase, load_dataset, parse_dataset

GOOD = {
    "case_id": "one",
    "input": "Hello",
    "expected": {"steps": {"tone": "pass", "links": "fail"}, "outcome": "fail"},
    "human": {"decision": "fail", "reasons": ["broken link"]},
}


def _lines(*cases: object) -> bytes:
    return b"\n".join(json.dumps(case).encode() for case in cases)


def test_a_dataset_is_read_in_order_and_empty_lines_are_passed_over() -> None:
    cases = parse_dataset(_lines(GOOD) + b"\n\n" + _lines({"case_id": "two"}), source="d")

    assert [case.case_id for case in cases] == ["one", "two"]
    assert cases[0].expected.steps == {"tone": "pass", "links": "fail"}
    assert cases[0].human is not None
    assert cases[0].human.decision == "fail"


def test_every_fault_of_every_line_is_told_at_once() -> None:
    wrong = {"case_id": "bad name!", "human": {"decision": "maybe"}, "inptu": 1}
    text = _lines(GOOD, wrong) + b"\n{broken\n" + _lines(GOOD)

    with pytest.raises(InvalidDocument) as refused:
        parse_dataset(text, source="d.jsonl")

    told = str(refused.value).splitlines()
    assert [line.split(":")[1] for line in told] == ["2", "2", "2", "3", "4"]
    assert "d.jsonl:4: case_id: is 'one' again, as on line 1" in told
    assert any("human.decision" in line and "'maybe'" in line for line in told)
    assert any("inptu" in line for line in told)


def test_an_empty_dataset_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidDocument, match="d: holds no case"):
        parse_dataset(b"\n\n", source="d")
    with pytest.raises(InvalidDocument, match="cannot be read: No such file"):
        load_dataset(tmp_path / "none.jsonl")


def test_a_dataset_of_nonsense_is_not_read_to_its_end() -> None:
    with pytest.raises(InvalidDocument, match="the rest was not looked at"):
        parse_dataset(b"{\n" * 10_000, source="d")


@given(st.binary(max_size=200))
def test_whatever_the_bytes_are_it_is_a_dataset_or_a_refusal(text: bytes) -> None:
    cases: tuple[EvalCase, ...] = ()
    faults: tuple[object, ...] = ()
    try:
        cases = parse_dataset(text, source="d")
    except InvalidDocument as refused:
        faults = refused.faults

    assert bool(cases) != bool(faults)
