"""A ledger of every release stays readable: shapes and defaults of events are for ever."""

import json
from pathlib import Path

import pytest

from agent_run.ledger.events import KINDS
from agent_run.ledger.fold import fold
from agent_run.ledger.pages import Page, breaks

LEDGERS = sorted((Path(__file__).parents[1] / "fixtures" / "ledgers").glob("*.jsonl"))


def pages_of(file: Path) -> list[Page]:
    return [Page(**json.loads(line)) for line in file.read_text().splitlines()]


def test_the_first_release_is_among_them() -> None:
    assert LEDGERS[0].stem == "0.1.0"


@pytest.mark.parametrize("file", LEDGERS, ids=lambda file: file.stem)
def test_every_page_is_as_it_was_written_and_can_be_read(file: Path) -> None:
    pages = pages_of(file)

    assert not list(breaks(pages))
    for page in pages:
        event = page.event()
        written = event.model_dump_json(exclude_defaults=True, exclude_computed_fields=True)
        assert json.loads(written) == json.loads(page.body)


def test_what_release_0_1_0_wrote_means_the_same_today() -> None:
    run = fold(page.event() for page in pages_of(LEDGERS[0]))

    assert {name: str(task.status) for name, task in run.tasks.items()} == {
        "a": "accepted",
        "b": "cancelled",
        "c": "failed",
        "d": "failed",
        "e": "skipped",
        "f": "accepted",
        "g": "cancelled",
        "h": "cancelled",
    }
    assert (run.spent.tokens, run.spent.unpriced_requests, run.cancelled) == (120, 1, True)
    assert run.tasks["b"].inbox[0].payload == {"n": [1, 2.5, "x", None]}
    assert run.tasks["c"].manifest.allowed_paths == ("src/x.py",)
    assert run.tasks["a"].manifest.verification[1].min_passed == 3


def test_the_newest_ledger_holds_every_kind_of_event() -> None:
    assert {page.kind for page in pages_of(LEDGERS[-1])} == set(KINDS)
