"""Recorded work as cases: people's word first, and nothing without an input or an outcome."""

from agent_run.contract.envelope import Envelope
from agent_run.evals.collecting import collect
from tests.support.books import TRACE, Book
from tests.support.stories import FAILED, PASSED, claim, judge, post, review, submit


def test_a_task_without_an_input_or_an_outcome_is_no_case() -> None:
    book = Book("run").tell(post("a", input="x"), post("b"), claim(task_id="b"))
    book.tell(submit(3, "b"), judge(PASSED, "b"))

    assert list(collect(book.pages, decided_only=False)) == []
    assert list(collect([], decided_only=False)) == []


def test_what_a_person_decided_counts_before_what_the_machine_came_to() -> None:
    book = Book("run").tell(post("a", input="x", review="human"), claim(task_id="a"))
    book.tell(submit(2, "a", status="passed"), judge(PASSED, "a"), review(FAILED, "a"))

    (case,) = collect(book.pages, decided_only=True)

    assert case.expected.steps == {"a": "fail"}
    assert case.human is not None
    assert (case.human.decision, case.human.by) == ("fail", "eve")


def test_what_was_handed_over_is_the_input_of_who_got_it() -> None:
    book = Book("run").tell(post("a", input="x"), post("b", needs=["a"]), claim(task_id="a"))
    envelope = Envelope(source="a", target="b", payload={"n": 1}, trace_id=TRACE)
    book.tell(submit(3, "a"), judge(PASSED, "a", handoffs=(envelope,)), claim(task_id="b"))
    book.tell(submit(book.claim_of("b"), "b"), judge(PASSED, "b"))

    found = {case.case_id: case.input for case in collect(book.pages, decided_only=False)}

    assert found == {"run.a": "x", "run.b": {"n": 1}}


def test_long_names_stay_names_and_stay_apart() -> None:
    book = Book("r" * 90)
    for end in ("1", "2"):
        name = "t" * 90 + end
        book.tell(post(name, input="x", labels={"step": "not a name!"}), claim(task_id=name))
        book.tell(submit(book.claim_of(name), name), judge(PASSED, name))

    cases = list(collect(book.pages, decided_only=False))

    assert len({case.case_id for case in cases}) == 2
    assert [case.expected.steps for case in cases] == [{}, {}]
