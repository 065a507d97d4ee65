"""Strips and their waterfall: what began, what it belongs to, how long it took."""

from datetime import timedelta

import pytest

from agent_run.contract.envelope import Envelope
from agent_run.contract.verdict import Finding, Verdict
from agent_run.ledger.commands import OpenRun
from agent_run.ledger.strips import Strip, strips
from agent_run.ledger.waterfall import drawn, fitted, rows
from tests.support.books import TRACE, Book
from tests.support.stories import claim, judge, post, reserve, review, settle, submit

SECOND = timedelta(seconds=1)
GATES = Verdict(
    findings=(
        Finding(gate="scope", outcome="pass", reason="verified"),
        Finding(gate="commands", outcome="pass", reason="verified", elapsed_ms=2_000),
    )
)


def _book() -> Book:
    book = Book("run")
    book.tell(OpenRun(actor="planner", intent="secret", plan={"plan": {}}))
    book.tell(post("a"), post("b", needs=["a"]))
    book.wait(SECOND).tell(claim(task_id="a"), reserve("x", 9, claim=4, task_id="a"))
    book.wait(SECOND).tell(settle("x", 7, claim=4, task_id="a"))
    book.wait(4 * SECOND).tell(submit(4, "a", output={"text": "hidden"}, confidence=0.9))
    envelope = Envelope(source="a", target="b", payload={"text": "hidden"}, trace_id=TRACE)
    book.wait(4 * SECOND).tell(judge(GATES, "a", handoffs=(envelope,)))
    return book


def _by_kind(found: list[Strip], kind: str) -> list[Strip]:
    return [strip for strip in found if strip.kind == kind]


def test_every_stretch_of_time_is_found_with_what_it_belongs_to() -> None:
    found = strips(_book().pages)

    told = [(strip.kind, strip.name, strip.parent, strip.outcome) for strip in found]
    assert told == [
        ("run", "run", None, "open"),
        ("plan", "run", "run", "planned"),
        ("task", "a", "run", "accepted"),
        ("task", "b", "run", "open"),
        ("attempt", "1 by ada", "task/a", "needs_review"),
        ("call", "x", "attempt/4", "settled"),
        ("gate", "scope", "task/a", "pass"),
        ("gate", "commands", "task/a", "pass"),
        ("handoff", "a to b", "task/b", "handed over"),
    ]
    (_, commands) = _by_kind(found, "gate")
    assert commands.end is not None
    assert commands.end - commands.start == 2 * SECOND


def test_what_people_wrote_is_kept_apart_from_names_and_numbers() -> None:
    found = strips(_book().pages)

    said = str([(strip.name, dict(strip.details)) for strip in found])

    assert "secret" not in said
    assert "hidden" not in said
    assert found[0].content == {"intent": "secret"}


def test_a_wait_for_a_person_lasts_until_the_decision() -> None:
    book = Book("run")
    book.tell(post("a", review="human"), claim(task_id="a"), submit(2, "a"), judge(GATES, "a"))
    book.wait(timedelta(hours=3)).tell(review(GATES, "a"))

    (wait,) = _by_kind(strips(book.pages), "wait")

    assert (wait.name, wait.outcome, wait.details["by"]) == (
        "decision",
        "answered",
        "eve",
    )
    assert wait.end is not None
    assert wait.end - wait.start == timedelta(hours=3)


def test_the_run_ends_with_its_last_task() -> None:
    book = Book("run").tell(post("a"), claim(task_id="a"), submit(2, "a"), judge(GATES, "a"))

    (run,) = _by_kind(strips(book.pages), "run")

    assert (run.outcome, run.end, run.closed_on) == ("accepted", book.now, 4)


def test_a_call_that_was_never_settled_ends_with_its_attempt_unknown() -> None:
    book = Book("run").tell(post(), claim(), reserve("x", 5), submit(2))

    (call,) = _by_kind(strips(book.pages), "call")

    assert (call.outcome, call.closed_on) == ("unknown", 4)


def test_the_waterfall_of_one_task_is_drawn_to_scale() -> None:
    lines = list(drawn(rows(strips(_book().pages), task_id="a"), width=10))

    assert lines == [
        ("task a", "██████████", "10.0s", "accepted"),
        ("  attempt 1 by ada", " █████    ", "5.0s", "needs_review"),
        ("    tool x", " █        ", "1.0s", "settled"),
        ("  gate scope", "      ▏   ", "0ms", "pass"),
        ("  gate commands", "      ██  ", "2.0s", "pass"),
    ]


def test_what_goes_on_is_drawn_as_going_on() -> None:
    book = Book("run").tell(post(), claim()).wait(SECOND).tell(post("later"))

    lines = list(drawn(rows(strips(book.pages)), width=4))

    assert lines[0] == ("run run", "▒▒▒▒", "1.0s+", "open")


def test_what_is_shorter_than_a_cell_is_a_moment_wherever_it_lies() -> None:
    book = Book("run").tell(post("a"), claim(task_id="a")).wait(timedelta(seconds=57))
    book.tell(reserve("x", 9, task_id="a")).wait(SECOND).tell(settle("x", 7, task_id="a"))
    book.wait(timedelta(seconds=42)).tell(submit(2, "a"))

    (line,) = [one for one in drawn(rows(strips(book.pages))) if "tool x" in one[0]]

    assert line[1].strip() == "▏"


@pytest.mark.parametrize("room", [40, 60, 80, 200, 400])
def test_a_waterfall_fits_the_room_that_there_is(room: int) -> None:
    book = Book("run").tell(post("a" * 70), claim(task_id="a" * 70)).wait(SECOND)
    found = rows(strips(book.tell(submit(2, "a" * 70)).pages))

    width, longest = fitted(found, room)

    assert 12 <= width <= 100
    for line in drawn(found, width=width, longest=longest):
        assert sum(map(len, line)) <= max(room, 12 + 12 + len(line[2]) + len(line[3]))


def test_a_name_that_is_too_long_shows_that_something_is_missing() -> None:
    task = "repo-142-rate-limit-backoff"
    found = rows(strips(Book("run").tell(post(task)).pages), task_id=task)

    (line,) = drawn(found, longest=20)

    assert line[0] == "task repo-142…ackoff"


def test_nothing_is_drawn_of_nothing() -> None:
    assert rows(strips([])) == []
    assert list(drawn([])) == []
