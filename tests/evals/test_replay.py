"""Replay: the same records before today's gates, and no gate that is silent is a pass."""

from typing import Any

import anyio
from pydantic import JsonValue

from agent_run.contract.verdict import Finding, Verdict
from agent_run.evals.replay import Hearing, NoFiles, Replayed, exhibits, replay
from agent_run.gates.changes import ScopeGate
from agent_run.gates.record import ConfidenceGate, RecordGate
from agent_run.ports.gate import Gate
from tests.support.books import Book
from tests.support.stories import FAILED, PASSED, claim, finding, judge, post, review, submit


class _NoCache:
    def get(self, key: str) -> JsonValue:
        return None

    def put(self, key: str, value: JsonValue) -> None:
        """Keep nothing."""


GATES: tuple[Gate, ...] = (ScopeGate(), RecordGate(), ConfidenceGate())


def _verdict(**outcomes: Any) -> Verdict:
    reasons = {"pass": "verified", "fail": "out_of_scope", "inconclusive": "timeout"}
    return Verdict.model_validate(
        {
            "findings": [
                {"gate": gate, "outcome": how, "reason": reasons[how]}
                for gate, how in outcomes.items()
            ]
        }
    )


def _again(book: Book) -> list[Replayed]:
    found = list(exhibits(book.pages))

    async def main() -> list[Replayed]:
        hearing = Hearing(GATES, _NoCache(), NoFiles())
        return await replay(hearing, found, lambda *_: None)

    return anyio.run(main)


def test_gates_that_say_the_same_change_nothing() -> None:
    book = Book().tell(post(), claim(), submit(2), judge(_verdict(record="pass")))

    (one,) = _again(book)

    assert (one.then, one.now, one.differs) == ("pass", "pass", False)
    assert [(gate.gate, gate.how) for gate in one.gates] == [("record", "same")]


def test_a_gate_that_is_new_can_turn_a_verdict() -> None:
    book = Book().tell(post(min_confidence=0.9), claim(), submit(2, confidence=0.5))
    book.tell(judge(_verdict(record="pass")))

    (one,) = _again(book)

    assert (one.then, one.now) == ("pass", "fail")
    new = next(gate for gate in one.gates if gate.gate == "confidence")
    assert (new.how, new.evidence) == ("new", "confidence 0.5, wanted at least 0.9")


def test_what_needs_files_is_kept_and_said_to_be_kept() -> None:
    book = Book().tell(post(), claim(), submit(2))
    book.tell(judge(_verdict(scope="fail", record="pass")))

    (one,) = _again(book)

    assert (one.then, one.now) == ("fail", "fail")
    scope = next(gate for gate in one.gates if gate.gate == "scope")
    assert (scope.how, scope.now) == ("kept", None)
    assert "needs the files" in scope.evidence


def test_what_was_held_against_files_still_counts() -> None:
    mismatch = Finding(
        gate="record",
        outcome="fail",
        reason="record_mismatch",
        evidence="named, but the same as before",
        paths=("a.py",),
    )
    book = Book().tell(post(), claim(), submit(2), judge(Verdict(findings=(mismatch,))))

    (one,) = _again(book)

    assert (one.now, one.differs) == ("fail", False)


def test_every_attempt_is_judged_again_and_people_are_not() -> None:
    book = Book().tell(post(budget={"max_attempts": 2}), claim(), submit(2), judge(FAILED))
    book.tell(claim(), submit(5), judge(FAILED), review(_verdict(review="pass")))

    again = _again(book)

    assert [one.claim for one in again] == [2, 5]


def test_a_run_that_was_never_judged_has_nothing_to_replay() -> None:
    assert _again(Book().tell(post(), claim(), submit(2))) == []
    assert _again(Book().tell(post(), claim(), submit(2), judge(PASSED)))[0].then == "pass"


def test_what_a_model_thought_of_the_change_is_no_persons_decision() -> None:
    book = Book().tell(post(), claim(), submit(2))
    book.tell(judge(Verdict(findings=(finding("pass", "verified", "model review"),))))

    assert len(list(exhibits(book.pages))) == 1
