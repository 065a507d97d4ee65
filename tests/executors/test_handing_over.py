"""What strangers leave behind, read without being fooled or kept waiting."""

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


def test_the_file_counts_more_than_the_output(tmp_path: Path) -> None:
    papers = papers_for(job(tmp_path))
    papers.record.write_text('{"status": "done"}')

    record, _ = record_of(papers, b'{"status": "failed"}')

    assert record is not None
    assert record.status == "done"
