"""The canary: who gets the new version, and what the ledger says about it."""

from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agent_run.contract.manifest import Manifest
from agent_run.contract.plan import Plan
from agent_run.ledger.metrics.facts import Task, tasks_of
from agent_run.topology.canary import (
    Canary,
    assign_plan,
    assigned,
    gets_new_version,
    judge,
    stopped,
)
from tests.support.books import Book
from tests.support.stories import FAILED, PASSED, claim, post, review, submit
from tests.support.stories import judge as verdict

NAMES = st.text("abcdefgh0123456789-", min_size=1, max_size=20)


def canary(**fields: object) -> Canary:
    known = {"name": "new-model", "share": 0.5, "changes": {"model": "acme:m2"}}
    return Canary.model_validate(known | fields)


def low(task_id: str, **more: object) -> Manifest:
    fields = {"task_id": task_id, "objective": "x", "labels": {"risk": "low"}, **more}
    return Manifest.model_validate(fields)


@given(NAMES, st.floats(0, 1), st.floats(0, 1))
def test_a_larger_share_keeps_every_task_of_a_smaller_one(
    name: str, one: float, other: float
) -> None:
    small, large = sorted((one, other))

    if gets_new_version(canary(share=small), name):
        assert gets_new_version(canary(share=large), name)
    assert not gets_new_version(canary(share=0.0), name)
    assert gets_new_version(canary(share=1.0), name)


def test_about_the_share_that_was_asked_for_gets_the_new_version() -> None:
    tenth = canary(share=0.1)

    hits = sum(gets_new_version(tenth, f"task-{n}") for n in range(10_000))

    assert 900 < hits < 1_100


def test_two_canaries_choose_independently() -> None:
    one, other = canary(), canary(name="another")

    both = sum(
        gets_new_version(one, f"t{n}") and gets_new_version(other, f"t{n}")
        for n in range(4_000)
    )

    assert 900 < both < 1_100


def test_only_low_risk_work_is_touched() -> None:
    everything = canary(share=1.0)
    risky = Manifest(task_id="a", objective="x")
    asked = low("b", approve_before_claim=True)

    assert assigned(everything, risky) is risky
    assert assigned(everything, asked) is asked
    assert assigned(everything, low("c")).model == "acme:m2"


def test_both_versions_are_labelled_and_only_one_is_changed() -> None:
    plan = Plan(steps=tuple(low(f"t{n}") for n in range(40)), final=(low("end"),))

    divided = assign_plan(canary(), plan)

    labels = {step.labels["variant"] for step in divided.steps}
    assert labels == {"new-model", "not-new-model"}
    for step in divided.steps:
        assert (step.model == "acme:m2") == (step.labels["variant"] == "new-model")
    assert divided.final == plan.final
    assert assign_plan(canary(), divided) == divided


def test_a_canary_may_not_change_what_a_task_is_about() -> None:
    with pytest.raises(ValidationError, match="allowed_paths: may not differ"):
        canary(changes={"allowed_paths": ["**"]})


def _work(
    variant: str, count: int, *, wrong: int = 0, overridden: int = 0, cost: str = "0.10"
) -> list[Task]:
    """Return tasks of one version, some of which went wrong or were overridden."""
    runs = []
    for number in range(count):
        name = f"{variant}-{number}"
        book = Book(name)
        book.tell(post(name, labels={"variant": variant}, budget={"max_attempts": 1}))
        book.wait(timedelta(seconds=30)).tell(claim(task_id=name))
        book.tell(submit(2, name, cost_usd=Decimal(cost), requests_made=1))
        if number < wrong:
            book.tell(verdict(FAILED, name), review(FAILED, name))
        elif number < wrong + overridden:
            book.tell(verdict(FAILED, name), review(PASSED, name))
        else:
            book.tell(verdict(PASSED, name))
        runs.append(book.run())
    return tasks_of(runs)


def test_with_few_tasks_nothing_is_recommended() -> None:
    tasks = _work("new-model", 3) + _work("not-new-model", 30)

    found = judge(canary(), tasks)

    assert found.action == "wait"
    assert found.why == ("at least 20 settled tasks of each are wanted; new-model has 3",)


def test_a_version_that_is_clearly_no_worse_is_promoted() -> None:
    tasks = _work("new-model", 120, cost="0.05") + _work("not-new-model", 120, wrong=20)

    found = judge(canary(), tasks)

    assert found.action == "promote"
    assert found.why[0].startswith("error rate 20 of 120 before, 0 of 120 now; difference -")
    assert "median cost of a task 0.1 before, 0.05 now (p = " in found.why[2]
    assert found.canary.per_hour == pytest.approx(120)


def test_a_version_that_is_worse_is_rolled_back_with_the_evidence() -> None:
    tasks = _work("new-model", 40, wrong=20) + _work("not-new-model", 40)

    found = judge(canary(), tasks)

    assert found.action == "roll back"
    assert "error rate 0 of 40 before, 20 of 40 now" in found.why[0]


def test_what_cannot_be_told_apart_waits_for_more() -> None:
    tasks = _work("new-model", 25, wrong=1) + _work("not-new-model", 25, wrong=1)

    assert judge(canary(), tasks).action == "wait"


@pytest.mark.parametrize(
    ("stop_at", "work", "said"),
    [
        ({"max_errors": 3}, {"wrong": 3}, "3 errors, the limit is 3"),
        (
            {"max_error_rate": 0.1},
            {"wrong": 5},
            "error rate 5 of 8 is above the limit of 10.0%",
        ),
        ({"max_override_rate": 0.1}, {"overridden": 5}, "override rate 5 of 8 is above"),
        ({"max_cost_ratio": 2}, {"cost": "0.30"}, "a task costs 3.00 times as much"),
    ],
)
def test_a_limit_stops_it_however_few_there_are(
    stop_at: dict[str, float], work: dict[str, int], said: str
) -> None:
    tasks = _work("new-model", 8, **work) + _work("not-new-model", 8)  # type: ignore[arg-type]

    found = judge(canary(stop_at=stop_at), tasks)

    assert found.action == "stop"
    assert said in found.why[0]
    assert not gets_new_version(stopped(canary(share=1.0)), "anything")


def test_one_unlucky_task_breaks_no_rate() -> None:
    tasks = _work("new-model", 1, wrong=1) + _work("not-new-model", 8)

    assert judge(canary(stop_at={"max_error_rate": 0.1}), tasks).action == "wait"
