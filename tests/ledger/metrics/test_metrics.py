"""Metrics of small stories, each number as a person would count it."""

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal

import pytest

from agent_run.contract.verdict import Verdict
from agent_run.ledger.commands import NoteApplied, NoteRolledBack
from agent_run.ledger.metrics.confidence import confidence_by_step
from agent_run.ledger.metrics.exposition import _number, exposition
from agent_run.ledger.metrics.facts import Task, tasks_of
from agent_run.ledger.metrics.plots import Plot, bar, line_plot
from agent_run.ledger.metrics.report import Metrics, as_json, measure
from agent_run.ledger.metrics.sparks import sparkline
from agent_run.ledger.metrics.tables import (
    agreement_table,
    answering_table,
    budget_table,
    over_table,
    quality_table,
    step_table,
)
from agent_run.ledger.metrics.web_page import web_page
from tests.support.books import Book
from tests.support.stories import (
    FAILED,
    PASSED,
    UNSURE,
    answer,
    claim,
    finding,
    judge,
    open_run,
    post,
    review,
    submit,
)

MINUTE = timedelta(minutes=1)
REVIEWED = Verdict(findings=(finding("pass", "verified", "review"),))


def _story() -> Metrics:
    """Three tasks: accepted at once, rejected by a person, accepted at the second try."""
    book = Book("run").tell(open_run(max_tokens=100))
    book.tell(post("good", labels={"step": "tone"}), claim(task_id="good")).wait(MINUTE)
    book.submit(
        book.claim_of("good"),
        "good",
        observed={"model": "acme:m1", "fence": {"kind": "landlock+seccomp"}},
        status="passed",
        confidence=0.9,
        tokens_used=60,
        requests_made=1,
        cost_usd=Decimal("0.25"),
    )
    book.tell(judge(PASSED, "good"))
    book.tell(post("doubt", min_confidence=0.8, labels={"step": "tone"}))
    book.tell(claim(task_id="doubt"))
    book.tell(submit(book.claim_of("doubt"), "doubt", confidence=0.4), judge(UNSURE, "doubt"))
    book.wait(4 * MINUTE).tell(review(FAILED, "doubt"))
    book.tell(post("again", budget={"time_budget_sec": 30}), claim(task_id="again"))
    book.wait(MINUTE).tell(submit(book.claim_of("again"), "again"), judge(FAILED, "again"))
    book.tell(claim(task_id="again"))
    # This takes the run over its budget, so a person has to decide.
    book.tell(submit(book.claim_of("again"), "again", tokens_used=50))
    book.wait(2 * MINUTE).tell(review(REVIEWED, "again"))
    return measure([book.run()])


def test_the_work_is_counted_as_a_person_would_count_it() -> None:
    metrics = _story()

    quality = metrics.quality
    assert quality.statuses == {"accepted": 2, "open": 1}
    assert (quality.first_pass.hits, quality.first_pass.of) == (1, 3)
    assert (quality.rework.hits, quality.rework.of) == (1, 4)
    assert quality.fences == {"landlock+seccomp": 1}
    assert quality.refusals == {
        ("commands", "fail", "verification_failed"): 2,
        ("confidence", "fail", "low_confidence"): 1,
    }


def test_people_are_counted_with_how_long_they_took_and_whether_they_agreed() -> None:
    people = _story().people

    assert (people.escalated.hits, people.escalated.of) == (2, 3)
    (decisions,) = people.answering
    assert (decisions.kind, decisions.answered, decisions.open) == ("decision", 2, 0)
    assert (decisions.mean, decisions.p50, decisions.p90) == (180.0, 180.0, 228.0)
    assert people.agreement.matrix == {(True, True): 1, (True, False): 1}
    assert (people.agreement.agreed.value, people.agreement.kappa) == (0.5, 0.0)


def test_budgets_are_held_against_the_plan_of_task_and_run() -> None:
    metrics = _story()

    over = {(line.run_id, line.task_id): line.over for line in metrics.budgets.over}
    assert over == {("run", ""): ("tokens",), ("run", "again"): ("seconds",)}
    assert over_table(metrics).rows == (
        ("run", "", "tokens", "110", "100"),
        ("run", "again", "seconds", "60", "30"),
    )


def test_cost_is_told_by_the_model_that_was_really_asked() -> None:
    costs = _story().costs

    assert [(one.name, one.cost_usd, one.tokens) for one in costs.by_model] == [
        ("acme:m1", Decimal("0.25"), 60),
        ("(not stated)", Decimal(0), 50),
    ]
    assert costs.total.tokens == 110


def test_a_question_and_a_rollback_are_counted() -> None:
    book = Book("run").tell(post("a"), claim(task_id="a"))
    book.tell(submit(2, "a", question="Which one?")).wait(MINUTE).tell(answer("b", "a"))
    book.tell(claim(task_id="a"))
    book.tell(submit(book.claim_of("a"), "a"), judge(PASSED, "a"))
    book.tell(NoteApplied(task_id="a", actor="eve", onto="main", commit="c1"))
    book.tell(NoteRolledBack(task_id="a", actor="eve", commit="c2"))

    metrics = measure([book.run()])

    assert answering_table(metrics).rows == (
        ("question", "1", "0", "~60.0s", "~60.0s", "~60.0s", "~60.0s"),
    )
    assert metrics.quality.rollbacks == 1
    assert metrics.budgets.tasks[0].attempts == 1


def _series(values: Sequence[float]) -> list[Task]:
    runs = []
    for number, value in enumerate(values):
        book = Book(f"run-{number}").wait(number * MINUTE)
        book.tell(post("tone"), claim(task_id="tone"), submit(2, "tone", confidence=value))
        runs.append(book.run())
    return tasks_of(runs)


def test_a_fall_in_confidence_is_named() -> None:
    steady, falling = [0.9, 0.85, 0.88] * 10, [0.9, 0.85, 0.88] * 7 + [0.6, 0.55, 0.7] * 3

    (calm,) = confidence_by_step(_series(steady))
    (fell,) = confidence_by_step(_series(falling))

    assert calm.regression is None
    assert fell.regression is not None
    assert (fell.regression.earlier, fell.regression.recent) == (0.88, 0.6)
    assert fell.regression.counted == 10
    assert fell.regression.chance < 0.01


def test_one_wild_value_or_a_handful_is_no_regression() -> None:
    (wild,) = confidence_by_step(_series([0.9] * 29 + [0.0]))
    (few,) = confidence_by_step(_series([0.9] * 8 + [0.1] * 4))

    assert wild.regression is None
    assert few.regression is None


def test_small_pictures_are_exact() -> None:
    assert sparkline([0, 0.5, 1]) == "▁▅█"
    assert sparkline([0.0] * 50 + [1.0] * 50, width=4) == "▁▁██"
    assert sparkline([]) == ""
    assert 'width="50.0"' in bar(0.5)
    assert "<circle" in line_plot(Plot("p", "t", "d", [0.5], first="noon", last="noon"))


def test_what_few_cases_say_is_marked_and_what_none_say_is_no_zero() -> None:
    few, none = _story(), measure([Book("run").tell(post("a")).run()])

    told = {row[0]: row[1] for row in quality_table(few).rows}
    assert told["first-pass acceptance"] == "~33.3%"
    told = {row[0]: row[1] for row in quality_table(none).rows}
    shares = ("first-pass acceptance", "rework", "escalation rate", "agreement with people")
    assert {told[name] for name in shares} == {"no data"}
    assert step_table(none).rows == (
        ("a", "1", "no data", "no data", "no data", "", "too few values"),
    )


def test_what_was_used_stands_beside_what_was_granted() -> None:
    metrics = _story()

    assert budget_table(metrics).rows == (
        ("tone", "2", "0", "2 of 6", "60", "$0.25", "60.0s"),
        ("again", "1", "1", "2 of 3", "50", "$0", "60.0s of 30.0s"),
    )
    assert agreement_table(metrics).rows[-1][-2:] == ("~50.0%", "~0.00")


def test_an_empty_ledger_has_metrics_too() -> None:
    metrics = measure([])

    assert as_json(metrics)["tasks"] == 0
    assert step_table(metrics).rows == ()
    assert "0 tasks in 0 runs" in web_page(metrics, title="t")
    assert exposition(metrics).startswith("# HELP agent_run_runs")


@pytest.mark.parametrize("value", [0.0, 0.123456789, 1e9, 3.0])
def test_numbers_are_written_as_prometheus_reads_them(value: float) -> None:
    assert float(_number(value)) == pytest.approx(value)
