"""Payloads against schemas that strangers wrote: told fully, fetched never, slow never."""

import time

import pytest
from pydantic import JsonValue

from agent_run.contract.payload import (
    canonical,
    check_schema,
    fingerprint,
    payload_faults,
)
from agent_run.errors import ContractError

SCORE: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"value": {"type": "integer"}, "tags": {"items": {"type": "string"}}},
    "required": ["value"],
}


def test_what_fits_has_no_fault() -> None:
    assert payload_faults({"value": 1, "tags": ["a"]}, SCORE) == []


def test_every_fault_is_told_with_its_place() -> None:
    faults = payload_faults({"value": "1", "tags": ["a", 2]}, SCORE)

    assert len(faults) == 2
    assert any(fault.startswith("['value']: ") for fault in faults)
    assert any(fault.startswith("['tags'][1]: ") for fault in faults)


def test_of_very_many_faults_some_are_told_and_the_rest_is_said_to_be_there() -> None:
    faults = payload_faults({"value": 1, "tags": list(range(1_000))}, SCORE)

    assert len(faults) == 21
    assert faults[-1] == "and more: the first 20 are told"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "strange"},
        {"type": 7},
        {"$ref": "https://example.org/schema.json"},
        {"$ref": "file:///etc/passwd"},
        {"$ref": "#/nowhere"},
        {"pattern": "("},
        {"required": "value"},
    ],
)
def test_what_is_no_schema_by_itself_is_refused_in_a_sentence(
    schema: dict[str, JsonValue],
) -> None:
    with pytest.raises(ContractError, match="the schema is not one that can be used") as caught:
        check_schema(schema)

    assert "\n" not in str(caught.value)


def test_a_pattern_made_to_be_slow_is_not() -> None:
    started = time.process_time()

    faults = payload_faults("a" * 50_000 + "!", {"type": "string", "pattern": "^(a+)+$"})

    assert faults
    assert time.process_time() - started < 5


def test_formats_are_checked() -> None:
    assert payload_faults("tomorrow", {"type": "string", "format": "date"})


def test_two_schemas_that_say_the_same_have_one_fingerprint() -> None:
    turned = dict(reversed(SCORE.items()))

    assert fingerprint(SCORE) == fingerprint(turned)
    assert fingerprint(SCORE) != fingerprint({**SCORE, "title": "Score"})
    assert canonical({"b": 1, "a": "ä"}) == '{"a":"ä","b":1}'
