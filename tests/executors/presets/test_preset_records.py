"""The record that agents are asked for, and how it is found in what they say."""

import json
from collections.abc import Iterator

import pytest
from pydantic import JsonValue

from agent_run.contract.record import Record
from agent_run.executors.presets import RECORD_SCHEMA
from agent_run.executors.presets.record import record_in

GIVEN = '{"status": "done", "notes": "ok"}'


def schemas(value: JsonValue) -> Iterator[dict[str, JsonValue]]:
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from schemas(inner)


@pytest.mark.parametrize(
    "text",
    [
        GIVEN,
        f"  \n{GIVEN}\n",
        f"I am done.\n{GIVEN}",
        f"I am done.\n```json\n{GIVEN}\n```",
        f"```\n{GIVEN}\n```\nThat is all.",
        f'```json\n{{"status": "failed"}}\n```\nNo, better:\n```json\n{GIVEN}\n```\n',
    ],
)
def test_a_record_is_found_where_agents_put_it(text: str) -> None:
    assert record_in(text) == {"status": "done", "notes": "ok"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "All done.",
        "{}",
        "[]",
        '{"name": "package"}',
        '{"status": 3}',
        '{"status": "done", "confidence_percent": NaN}',
        '{"status": "done", "notes": "\\ud800"}',
        '{"status": "done"',
        '{"status": "done"} trailing words',
        "{" * 50_000,
        '{"status": ' + "[" * 50_000,
    ],
)
def test_other_text_is_no_record(text: str) -> None:
    assert record_in(text) is None


def test_the_schema_suits_strict_decoders() -> None:
    properties = RECORD_SCHEMA["properties"]

    assert isinstance(properties, dict)
    assert RECORD_SCHEMA["required"] == list(properties)
    assert RECORD_SCHEMA["additionalProperties"] is False
    for schema in schemas(dict(RECORD_SCHEMA)):
        assert not {"minimum", "maximum", "exclusiveMinimum"} & set(schema)


def test_a_record_of_the_schema_is_one_of_the_contract() -> None:
    said = {
        "status": "needs_review",
        "files_changed": ["a.py"],
        "commands_run": ["pytest -q"],
        "risks": ["none seen"],
        "next_step": "review",
        "notes": "done",
        "confidence_percent": 80,
        "next_action": "continue",
    }

    record: Record[object] = Record.model_validate(json.loads(json.dumps(said)))

    assert record.confidence == 0.8
