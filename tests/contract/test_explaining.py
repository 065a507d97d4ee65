"""How a document that is not what its model asks for is explained."""

import json
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, AwareDatetime, Field, model_validator

from agent_run.contract.base import Contract, Duration, Lines
from agent_run.contract.faults import Fault
from agent_run.contract.manifest import Manifest
from agent_run.contract.plan import Plan
from agent_run.contract.reading import load, read_document
from agent_run.errors import InvalidDocument
from agent_run.topology.canary import Canary


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Cat(Contract):
    kind: Literal["cat"]
    lives: int = Field(ge=1, le=9)


class Dog(Contract):
    kind: Literal["dog"]
    tricks: tuple[str, ...]
    good: bool = True


class Limits(Contract):
    most: int | None = Field(default=None, ge=1)
    price: Decimal = Field(default=Decimal(0), max_digits=4)
    share: float = Field(default=0.0, lt=1)


def _even(number: int) -> int:
    if number % 2:
        msg = f"number {number} is odd, expected an even one"
        raise ValueError(msg)
    return number


class House(Contract):
    name: str = Field(min_length=1, max_length=5, pattern="^[a-z]*$")
    street: str = ""
    limits: Limits = Limits()
    pets: tuple[Annotated[Cat | Dog, Field(discriminator="kind")], ...] = ()
    guest: Cat | Dog | None = None
    door: Literal["open", "shut"] | tuple[str, ...] = "open"
    colour: Colour = Colour.RED
    even: Annotated[int, AfterValidator(_even)] = 0
    wait: Duration | None = None
    notes: Lines = ()
    rooms: tuple[int, ...] = Field(default=(), max_length=2)
    built: datetime | None = None
    sold: AwareDatetime | None = None
    labels: dict[Annotated[str, Field(max_length=3)], str] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _read_the_old_name(cls, value: Any) -> Any:
        if isinstance(value, dict) and "title" in value:
            return {"name": value["title"]} | {k: v for k, v in value.items() if k != "title"}
        return value


def told(text: str) -> list[str]:
    with pytest.raises(InvalidDocument) as refused:
        load(House, read_document(text, source="h.yaml"))
    return [str(fault) for fault in refused.value.faults]


def test_a_right_document_becomes_the_model() -> None:
    house = load(House, read_document("name: a\npets: [{kind: cat, lives: 9}]", source="-"))

    assert house == House(name="a", pets=(Cat(kind="cat", lives=9),))


def test_every_fault_is_told_in_the_order_of_the_text() -> None:
    assert told(
        "street: 5\n"
        "limits:\n"
        "  most: three\n"
        "  mots: 1\n"
        "  price: 12345\n"
        "colour: green\n"
        "unheard: of\n"
    ) == [
        "h.yaml:1: name: is missing, expected a string",
        "h.yaml:1: street: is 5, expected a string; put it in quotes",
        "h.yaml:3: limits.most: is 'three', expected an integer",
        "h.yaml:4: limits.mots: is not a known key; did you mean 'most'?",
        "h.yaml:5: limits.price: is 12345, expected a number of at most 4 digits",
        "h.yaml:6: colour: is 'green', expected 'red' or 'blue'",
        (
            "h.yaml:7: unheard: is not a known key, expected one of built, colour, door, even, "
            "guest, labels, limits, name, notes, pets, rooms, sold, street, wait"
        ),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: ''", "name: is '', expected at least 1 character"),
        ("name: abcdef", "name: is 'abcdef', expected at most 5 characters"),
        ("name: A", "name: is 'A', expected text that matches ^[a-z]*$"),
        ("name: null", "name: is null, expected a string"),
        ("name: [a]", "name: is a list, expected a string"),
        ("limits: []", "limits: is an empty list, expected a mapping"),
        ("limits: {most: 0}", "limits.most: is 0, expected at least 1"),
        ("limits: {most: 1.5}", "limits.most: is 1.5, expected an integer"),
        ("limits: {share: 1}", "limits.share: is 1, expected less than 1.0"),
        ("limits: {price: much}", "limits.price: is 'much', expected a number"),
        ("door: ajar", "door: is 'ajar', expected 'open' or 'shut' or a list"),
        ("door: [1]", "door[0]: is 1, expected a string; put it in quotes"),
        ("even: 3", "even: number 3 is odd, expected an even one"),
        ("wait: 5x", "wait: duration '5x' is not like '20m', '1h30m' or '45s'"),
        ("wait: [1]", "wait: is a list, expected a duration such as '20m'"),
        ("notes: ''", "notes: is '', expected at least 1 character"),
        ("notes: [a, '']", "notes[1]: is '', expected at least 1 character"),
        ("rooms: [1, 2, 3]", "rooms: has 3 items, expected at most 2 items"),
        ("built: soon", "built: is 'soon', expected a date and time such as "),
        ("sold: 2026-01-31T12:00:00", "sold: is '2026-01-31T12:00:00', expected a time with"),
        ("labels: {long: a}", "labels.long: is the key 'long', expected at most 3 characters"),
        ("pets: [{kind: cow}]", "pets[0]: is a mapping, expected 'kind' to be one of"),
        ("pets: [{lives: 1}]", "pets[0]: is a mapping, expected a mapping with the key 'kind'"),
        ("pets: [{kind: cat, lives: 0}]", "pets[0].lives: is 0, expected at least 1"),
        ("pets: [{kind: dog}]", "pets[0].tricks: is missing, expected a list"),
        (
            "guest: {kind: dog, tricks: [], god: 1}",
            "guest.god: is not a known key; did you mean",
        ),
        ("guest: 5", "guest: is 5, expected a mapping"),
        ("pets: {kind: dog}", "pets: is a mapping, expected a list"),
    ],
)
def test_each_way_to_break_a_model_has_its_own_sentence(text: str, expected: str) -> None:
    name = "" if text.startswith("name") else "name: a\n"

    (only,) = told(name + text)

    assert only.startswith(f"h.yaml:{2 if name else 1}: {expected}")


def test_a_key_read_by_another_name_is_told_by_the_name_that_counts() -> None:
    assert told("street: x\ntitle: 5\n") == [
        "h.yaml:1: name: is 5, expected a string; put it in quotes"
    ]


@pytest.mark.parametrize("key", ["steps", "subtasks"])
def test_a_list_whose_items_are_wrong_is_not_said_to_be_short(key: str) -> None:
    text = f"{key}: [{{task_id: a}}, {{task_id: b}}]"

    with pytest.raises(InvalidDocument) as refused:
        load(Plan, read_document(text, source="p.yaml"))

    assert [str(fault) for fault in refused.value.faults] == [
        f"p.yaml:1: {key}[0].objective: is missing, expected a string",
        f"p.yaml:1: {key}[1].objective: is missing, expected a string",
    ]


def test_faults_of_the_text_and_of_the_model_are_told_at_once(tmp_path: Path) -> None:
    lines = ("task_id: a", "objectiv: x", "task_id: b", "priority: .nan", "budget:")
    (tmp_path / "m.yaml").write_text("\n".join((*lines, "  max_attempts: 0")))

    with pytest.raises(InvalidDocument) as refused:
        Manifest.load(tmp_path / "m.yaml")

    places = [
        (fault.line, fault.key) for fault in refused.value.faults if isinstance(fault, Fault)
    ]
    assert places == [
        (1, "objective"),
        (2, "objectiv"),
        (3, "task_id"),
        (4, "priority"),
        (6, "budget.max_attempts"),
    ]


def test_a_document_with_faults_is_never_loaded() -> None:
    document = read_document("name: a\nname: b", source="h.yaml", go_on=True)

    with pytest.raises(InvalidDocument, match="stands twice"):
        load(House, document)


def test_a_fault_between_parts_has_the_line_of_its_key() -> None:
    text = "name: c\nshare: 0.1\nchanges:\n  executor: a\n  task_id: b\n"

    with pytest.raises(InvalidDocument, match=r"c\.yaml:5: changes\.task_id: may not differ"):
        load(Canary, read_document(text, source="c.yaml"))


def test_what_a_new_version_changes_must_fit_a_task() -> None:
    text = "name: c\nshare: 0.1\nchanges:\n  executor: 3\n  budget: {max_attempts: 0}\n"

    with pytest.raises(InvalidDocument) as refused:
        load(Canary, read_document(text, source="c.yaml"))

    assert [str(fault) for fault in refused.value.faults] == [
        "c.yaml:4: changes.executor: is 3, expected a string; put it in quotes",
        "c.yaml:5: changes.budget.max_attempts: is 0, expected at least 1",
    ]


def test_an_empty_list_is_still_short() -> None:
    with pytest.raises(InvalidDocument, match="has 0 items, expected at least 1 item"):
        load(Plan, read_document("steps: []", source="p.yaml"))


def test_a_document_that_is_no_mapping_is_one_fault() -> None:
    assert told("[1]") == ["h.yaml:1: is a list, expected a mapping"]
    assert told("null") == ["h.yaml:1: is null, expected a mapping"]


def test_faults_of_json_have_their_place_too() -> None:
    document = read_document('{"name": "a",\n\n  "even": "x"}', source="h.json")

    with pytest.raises(InvalidDocument) as refused:
        load(House, document)

    (only,) = refused.value.faults
    assert str(only) == "h.json:3: even: is 'x', expected an integer"


ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "a", "cat", "5m"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["kind", "lives", "most", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*House.model_fields, "title", "other"]), ODD))
def test_any_value_is_the_model_or_is_explained_in_our_words(found: dict[str, object]) -> None:
    document = read_document(json.dumps(found), source="h.json")
    try:
        load(House, document)
    except InvalidDocument as refused:
        explained = str(refused)
        assert explained
        assert "Input should" not in explained
        assert "Value error" not in explained
