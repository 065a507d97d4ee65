"""What strangers leave behind, read without being fooled or kept waiting."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_run.errors import InvalidDocument
from agent_run.executors.handing_over import (
    papers_for,
    read_left_behind,
    record_from,
    record_of,
)
from tests.executors.jobs import job


def test_nothing_is_none(tmp_path: Path) -> None:
    assert read_left_behind(tmp_path / "record.json") is None


def sparse(place: Path) -> None:
    with place.open("wb") as file:
        file.truncate(1 << 40)


@pytest.mark.parametrize("kind", ["link", "dangling", "pipe", "folder", "large", "sparse"])
def test_what_is_no_small_regular_file_is_refused(tmp_path: Path, kind: str) -> None:
    place, target = tmp_path / "record.json", tmp_path / "secret"
    target.write_text("secret")
    ways: dict[str, Callable[[], object]] = {
        "link": lambda: place.symlink_to(target),
        "dangling": lambda: place.symlink_to("nowhere"),
        "pipe": lambda: os.mkfifo(place),
        "folder": place.mkdir,
        "large": lambda: place.write_bytes(b"x" * 11),
        "sparse": lambda: sparse(place),
    }
    ways[kind]()

    with pytest.raises(InvalidDocument, match=r"record\.json"):
        read_left_behind(place, most=10)


def test_a_wish_for_more_room_becomes_a_question() -> None:
    record = record_from({"wider_scope": ["src/**"]})

    assert record.question is not None
    assert record.question.wider_scope == ("src/**",)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "no json",
        "{}" * 10,
        '\n{"a": 1}' * 200,
        "[" * 5_000,
        '{"status":' * 5_000,
        "\x00{\n",
    ],
)
def test_output_without_a_record_has_none(tmp_path: Path, text: str) -> None:
    papers = papers_for(job(tmp_path))

    assert record_of(papers, text.encode()) == (None, "")


@pytest.mark.parametrize(
    "said",
    [
        '{"question": "Which?"}',
        '{"question": {"text": "Which?"}}',
        '{"wider_scope": ["src/**"]}',
        '{"confidence": 0.4}',
        '{"confidence_percent": 40}',
        '{"output": {"n": 1}}',
        '{"notes": "nothing to do"}',
        '{"error": "no key"}',
        '{"evidence": []}',
        '{"risks": ["none"], "tokens_used": 5}',
        '{"step_id": "t1", "status": "passed"}',
    ],
)
@pytest.mark.parametrize("before", ["", "working\n", "The record:\n", '{"a": 1}\n', "[1,\n"])
def test_any_key_of_a_record_makes_the_last_object_one(
    tmp_path: Path, said: str, before: str
) -> None:
    record, why = record_of(papers_for(job(tmp_path)), f"{before}{said}\nbye\n".encode())

    assert (record, why) == (record_from(json.loads(said)), "")


@pytest.mark.parametrize(
    "said",
    [
        '{"level": "error", "error": "boom", "at": 3}',
        '{"status": "ok", "uptime": 3}',
        '{"status": 200, "url": "/"}',
        '{"status": "passed", "name": "test_a", "seconds": 1.5}',
        '{"task_id": "somebody-elses", "event": "started"}',
        '{"output": "a.out", "target": "all"}',
        '{"question": "Which?", "answer": "this"}',
        '[\n{"question": "Which?"}\n]',
        '{"quiz": [\n{"question": "Which?"},\n{"question": "Why?"}\n], "n": 2}',
    ],
)
def test_the_output_of_another_program_is_no_record(tmp_path: Path, said: str) -> None:
    papers = papers_for(job(tmp_path))

    assert record_of(papers, said.encode()) == (None, "")
    earlier, _ = record_of(papers, f'{{"status": "done"}}\n{said}'.encode())
    assert earlier is not None
    assert earlier.status == "done"


def test_a_part_of_a_record_is_not_taken_for_the_whole(tmp_path: Path) -> None:
    whole = {
        "status": "done",
        "evidence": [{"type": "x", "notes": "a"}],
        "output": {"notes": "b"},
    }
    said = json.dumps(whole, indent=0)

    record, _ = record_of(papers_for(job(tmp_path)), said.encode())

    assert record is not None
    assert record.output == {"notes": "b"}


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ('{"status": "dun"}', "status: is 'dun'"),
        ('{"status": "done", "file_changed": []}', "file_changed: is not a known key"),
        ('{"files_changed": 3, "a": 1, "b": 2}', "files_changed: is 3"),
    ],
)
def test_a_record_that_is_wrong_is_said_to_be_wrong(
    tmp_path: Path, said: str, fault: str
) -> None:
    record, why = record_of(papers_for(job(tmp_path)), said.encode())

    assert record is None
    assert fault in why


def test_the_file_counts_more_than_the_output(tmp_path: Path) -> None:
    papers = papers_for(job(tmp_path))
    papers.record.write_text('{"status": "done"}')

    record, _ = record_of(papers, b'{"status": "failed"}')

    assert record is not None
    assert record.status == "done"
