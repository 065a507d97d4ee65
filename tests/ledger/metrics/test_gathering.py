"""Facts agree with the state of the run, however the pages came about and are read."""

import json
from datetime import timedelta
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant
from pydantic import JsonValue

from agent_run.contract.verdict import Finding, Verdict
from agent_run.ledger.events import TaskAccepted
from agent_run.ledger.fold import EMPTY, evolve
from agent_run.ledger.metrics.decoding import passed_plainly
from agent_run.ledger.metrics.facts import posted_since, tasks_of
from agent_run.ledger.metrics.gathering import Gathering, gather
from agent_run.ledger.metrics.report import as_json, measure
from agent_run.ledger.pages import Page, seal
from agent_run.ledger.state import Status
from tests.ledger.test_rules_hold import Ledger
from tests.support.books import Book
from tests.support.stories import (
    FAILED,
    NOON,
    PASSED,
    UNSURE,
    claim,
    finding,
    judge,
    post,
    reserve,
    review,
    settle,
    submit,
)


def _spelled_out(page: Page) -> Page:
    """Return the page as its whole event tells it: every default, spaced, nothing to skip."""
    return page._replace(body=json.dumps(page.event().model_dump(mode="json")))


class Measured(Ledger):
    """The ledger of the rules' own machine, counted after every step."""

    @invariant()
    def facts_agree_with_the_state(self) -> None:
        run = gather(self.pages)
        assert run is not None
        assert (run.pages, run.at, run.opened_at) == (
            self.run.seq,
            self.run.at,
            self.run.opened_at,
        )
        for name, state in self.run.tasks.items():
            task = run.tasks[name]
            waits = state.status in {Status.READY, Status.WAITING}
            assert task.status == ("open" if waits else state.status)
            if state.status is not Status.CLAIMED:
                spent = task.spent
                assert (spent.tokens, spent.cost_usd) == (
                    state.spent.tokens,
                    state.spent.cost_usd,
                )
            assert len(task.attempts) == state.attempt
            assert task.returns == len(state.returned)
            open_waits = [wait for wait in task.waits if wait.until is None]
            expected = state.status in {Status.ASKED, Status.ESCALATED} or not (
                state.approved or state.status in {Status.CANCELLED, Status.SKIPPED}
            )
            assert bool(open_waits) == expected or state.status is Status.FAILED

    @invariant()
    def a_prefix_and_the_rest_are_the_whole(self) -> None:
        half = len(self.pages) // 2
        gathering = Gathering("run")
        for page in self.pages[:half]:
            gathering.add(page.seq, page.task_id, page.kind, page.body)
        gathering.run()
        for page in self.pages[half:]:
            gathering.add(page.seq, page.task_id, page.kind, page.body)

        assert gathering.run() == gather(self.pages)

    @invariant()
    def pages_read_quickly_say_what_their_events_say(self) -> None:
        run = gather(self.pages)

        assert run == gather(map(_spelled_out, self.pages))

    @invariant()
    def metrics_are_plain_json_and_count_each_task_once(self) -> None:
        run = gather(self.pages)
        assert run is not None
        metrics = measure([run])
        json.dumps(as_json(metrics), allow_nan=False)
        assert sum(metrics.quality.statuses.values()) == len(run.tasks)
        assert metrics.costs.total.tokens == sum(t.spent.tokens for t in run.tasks.values())
        by_step = metrics.people.by_step.values()
        assert sum(share.of for share in by_step) == metrics.people.escalated.of


TestMeasured = Measured.TestCase
TestMeasured.settings = settings(max_examples=15, stateful_step_count=30, deadline=None)


def test_two_runs_measured_together_are_the_sum_of_both() -> None:
    first, second = Book("one"), Book("two")
    for book in (first, second):
        book.tell(post("a"), claim(task_id="a"), submit(2, "a", tokens_used=10, confidence=0.9))
    first.tell(judge(PASSED, "a"))
    second.tell(judge(FAILED, "a"))

    both = measure([first.run(), second.run()])
    one, other = measure([first.run()]), measure([second.run()])

    assert both.quality.first_pass == one.quality.first_pass + other.quality.first_pass
    assert both.costs.total.tokens == 20
    assert [step.values for step in both.confidence] == [(0.9, 0.9)]


def test_calls_settled_under_a_claim_are_not_counted_twice() -> None:
    book = Book("run")
    book.tell(post(), claim(), reserve("x", 50), settle("x", 40), reserve("y", 5))
    book.tell(submit(2, tokens_used=45))

    attempt = book.run().tasks["repo-142"].attempts[0]

    assert attempt.spent.tokens == 50
    assert [(call.name, call.error) for call in attempt.calls] == [
        ("x", None),
        ("y", "unknown"),
    ]
    assert book.state.spent.tokens == 50


@given(
    st.lists(
        st.builds(
            finding,
            st.sampled_from(["pass", "fail", "inconclusive"]),
            st.sampled_from(["verified", "low_confidence"]),
            st.sampled_from(["scope", "review", 'a"b', '"gate":"review"', "\\"]),
        ),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from(
        [None, {"outcome": "fail"}, {"outcome": "pass"}, '"outcome":"fail"', {"gate": "review"}]
    ),
)
def test_an_acceptance_is_skipped_only_if_it_says_nothing_else(
    findings: list[Finding], result: JsonValue
) -> None:
    pages = Book("run").tell(post(), claim(), submit(2)).pages
    verdict = Verdict(findings=tuple(findings))
    event = TaskAccepted(
        task_id="repo-142", at=NOON, actor="eve", verdict=verdict, result=result
    )
    last = seal("run", 4, "t", event, previous=pages[-1].digest)

    quick = passed_plainly("repo-142", last.body)

    assert gather([*pages, last]) == gather(map(_spelled_out, [*pages, last]))
    plain = all(one.outcome == "pass" and one.gate != "review" for one in findings)
    assert quick is None or (plain and quick == NOON)
    assert quick == NOON or not plain or isinstance(result, dict)


def test_what_a_person_decides_stands_beside_what_the_machine_thought() -> None:
    book = Book("run")
    book.tell(post("a", min_confidence=0.8), claim(task_id="a"))
    book.tell(submit(2, "a", status="passed", confidence=0.5), judge(UNSURE, "a"))
    book.wait(timedelta(minutes=10))
    book.tell(review(FAILED, "a"))

    task = book.run().tasks["a"]

    (decision,) = task.decisions
    assert (decision.machine, decision.person, decision.by) == (True, False, "eve")
    assert [wait.took for wait in task.waits] == [timedelta(minutes=10)]
    assert (task.first_word, task.overrides) == ("escalated", 1)


def test_model_and_fence_are_what_the_worker_saw() -> None:
    book = Book("run")
    book.tell(post(model="wished"), claim())
    seen = {"model": "really", "fence": {"kind": "landlock+seccomp", "abi": 7}}
    book.submit(2, observed=seen, cost_usd=Decimal("0.10"), requests_made=1)

    attempt = book.run().tasks["repo-142"].attempts[0]

    assert (attempt.model, attempt.fence) == ("really", "landlock+seccomp")
    assert (attempt.spent.cost_usd, attempt.spent.unpriced) == (Decimal("0.10"), 0)


def test_only_tasks_posted_since_a_moment_are_kept() -> None:
    old, new = Book("old"), Book("new")
    old.tell(post("a"))
    old.wait(timedelta(hours=1))
    old.tell(post("b"))
    new.wait(timedelta(hours=2))
    new.tell(post("c"))

    kept = posted_since([old.run(), new.run()], NOON + timedelta(minutes=30))

    assert [task.task_id for task in tasks_of(kept)] == ["b", "c"]


def test_gathering_reads_the_same_book_that_the_fold_reads() -> None:
    book = Book("run")
    book.tell(post(), claim(), submit(2), judge(PASSED))

    state = EMPTY
    for page in book.pages:
        state = evolve(state, page.event())

    assert state.tasks["repo-142"].status is Status.ACCEPTED
    assert book.run().tasks["repo-142"].status == "accepted"
