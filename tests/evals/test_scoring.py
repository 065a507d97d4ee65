"""Scores, limits and comparisons, each against numbers worked out by hand."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_run.errors import ContractError
from agent_run.evals.cases import EvalCase, Expected, Human
from agent_run.evals.comparing import compare
from agent_run.evals.limits import missed, read_limits, refuse_unknown
from agent_run.evals.results import CaseResult, outcome_of
from agent_run.evals.scoring import scores


def result(
    name: str, seen: dict[str, str], expected: dict[str, str], **more: Any
) -> CaseResult:
    human = more.pop("human", None)
    case = EvalCase(
        case_id=name,
        expected=Expected.model_validate({"steps": expected}),
        human=Human(decision=human) if human else None,
    )
    fields = {
        "case": case,
        "fingerprint": "0" * 64,
        "run_id": name,
        "ledger": "x.db",
        "outcome": outcome_of(seen.values()),  # type: ignore[arg-type]  # plain words
        "steps": seen,
        "tokens": 10,
        "cost_usd": Decimal("0.1"),
        "seconds": 1.0,
        **more,
    }
    return CaseResult.model_validate(fields)


def test_scores_are_those_worked_out_by_hand() -> None:
    found = scores(
        [
            result("a", {"t": "pass", "l": "fail"}, {"t": "pass", "l": "fail"}, human="fail"),
            result("b", {"t": "fail"}, {"t": "pass", "l": "fail"}, human="pass"),
            result("c", {"t": "escalate"}, {"t": "fail"}, human="fail"),
        ]
    )

    value = {name: score.value for name, score in found.items()}
    assert value["step_accuracy"] == pytest.approx(2 / 5)
    assert value["plan_completeness"] == pytest.approx(4 / 5)
    assert value["precision"] == pytest.approx(1 / 2)
    assert value["recall"] == pytest.approx(1 / 3)
    assert value["decided"] == pytest.approx(2 / 3)
    assert value["agreement"] == pytest.approx(1 / 2)
    assert value["cost_usd"] == pytest.approx(0.1)
    assert value["case_accuracy"] is None
    assert found["recall"].counted == 3


def test_the_same_results_have_the_same_intervals() -> None:
    results = [
        result(str(n), {"t": "pass" if n % 3 else "fail"}, {"t": "pass"}) for n in range(30)
    ]

    one, other = scores(results), scores(results)

    assert one == other
    accuracy = one["step_accuracy"]
    assert accuracy.low is not None
    assert accuracy.high is not None
    assert 0.4 < accuracy.low < 20 / 30 < accuracy.high < 0.9


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from(["pass", "fail", "escalate", "error"]), max_size=12))
def test_every_score_lies_in_its_interval(outcomes: list[str]) -> None:
    found = scores(
        [result(f"c{n}", {"t": one}, {"t": "pass"}) for n, one in enumerate(outcomes)]
    )

    for score in found.values():
        if score.value is not None and score.low is not None and score.high is not None:
            assert score.low - 1e-9 <= score.value <= score.high + 1e-9


def test_a_limit_that_is_missed_is_said_and_one_about_nothing_is_refused() -> None:
    found = scores([result("a", {"t": "fail"}, {"t": "pass"})])

    limits = read_limits(["step_accuracy=0.9", "plan_completeness=1"], ["cost_usd=0.01"])

    assert missed(limits, found) == [
        "step_accuracy is 0, wanted min 0.9",
        "cost_usd is 0.1, wanted max 0.01",
    ]
    assert missed(read_limits(["case_accuracy=0"], []), found) == [
        "case_accuracy was not counted, wanted min 0"
    ]
    with pytest.raises(ContractError, match="no score 'accuracy', expected one of"):
        refuse_unknown(read_limits(["accuracy=1"], []), found)


@pytest.mark.parametrize("text", ["", "x", "x=", "=1", "x=one", "x=nan"])
def test_what_is_no_limit_is_refused(text: str) -> None:
    with pytest.raises(ContractError, match=r"is not like 'step_accuracy=0\.9'"):
        read_limits([text], [])


def test_a_comparison_says_what_became_right_and_wrong_and_whether_by_chance() -> None:
    before = {str(n): result(str(n), {"t": "fail"}, {"t": "pass"}) for n in range(12)}
    after = {str(n): result(str(n), {"t": "pass"}, {"t": "pass"}) for n in range(12)}

    better, worse = compare(before, after), compare(after, before)

    assert better.chance == pytest.approx(2 / 2**12)
    assert better.sentence() == (
        "12 of 12 cases became right and 0 wrong; it became better (McNemar p = 0.00049)"
    )
    assert (better.worse, worse.worse) == (False, True)


def test_a_small_difference_may_be_chance() -> None:
    before = {
        str(n): result(str(n), {"t": "pass" if n else "fail"}, {"t": "pass"}) for n in range(6)
    }
    after = {str(n): result(str(n), {"t": "pass"}, {"t": "pass"}) for n in range(6)}

    found = compare(before, after)

    assert found.sentence().endswith("that may be chance (McNemar p = 1.000)")
    assert not found.worse


def test_cases_that_only_one_has_are_named_and_different_ones_refused() -> None:
    one = {"a": result("a", {}, {}), "b": result("b", {}, {})}
    other = {"a": result("a", {}, {}), "c": result("c", {}, {})}

    found = compare(one, other)

    assert (found.only_before, found.only_after) == (("b",), ("c",))
    with pytest.raises(ContractError, match="share no case"):
        compare({"a": one["a"]}, {"c": other["c"]})
    with pytest.raises(ContractError, match="1 cases are not the same"):
        compare({"a": one["a"]}, {"a": result("a", {}, {"t": "pass"})})
