"""Values that were never a file: what is wrong with them is said in the same words."""

from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from agent_run.contract.notes import Notes
from agent_run.contract.plan import Plan
from agent_run.contract.values import faults_of, in_words, valid
from agent_run.errors import InvalidDocument


class Draft(BaseModel):
    title: str
    marks: tuple[int, ...] = ()


def wrong(wanted: Any, value: object) -> ValidationError:
    with pytest.raises(ValidationError) as refused:
        TypeAdapter(wanted).validate_python(value)
    return refused.value


def test_a_right_value_becomes_the_model() -> None:
    assert valid(Plan, {"steps": [{"task_id": "a", "objective": "b"}]}).steps[0].task_id == "a"


def test_a_wrong_value_names_every_key_and_no_line() -> None:
    with pytest.raises(InvalidDocument) as refused:
        valid(Plan, {"steps": [{"task_id": "a"}, 3], "objektive": ""}, source="the answer")

    assert sorted(str(fault) for fault in refused.value.faults) == [
        "the answer: objektive: is not a known key; did you mean 'objective'?",
        "the answer: steps[0].objective: is missing, expected a string",
        "the answer: steps[1]: is 3, expected a mapping",
    ]


def test_any_type_can_be_wanted() -> None:
    given = {"title": 3, "marks": (1, "x")}

    assert in_words(wrong(Draft, given), wanted=Draft, value=given) == (
        "title: is 3, expected a string; put it in quotes; "
        "marks[1]: is 'x', expected an integer"
    )
    assert in_words(wrong(list[int], "x"), wanted=list[int], value="x") == (
        "is 'x', expected a list"
    )
    assert in_words(wrong(Draft | None, 3), wanted=Draft | None, value=3) == (
        "is 3, expected a mapping"
    )


def test_no_word_of_the_library_is_left() -> None:
    values: tuple[object, ...] = (3, None, [], {"turn": []}, {"requirements": 3})
    for value in values:
        error = wrong(Notes, value)

        told = " ".join(map(str, faults_of(error, wanted=Notes, value=value)))
        assert not {"Input", "pydantic", "type=", "Field"} & set(told.split()), told
