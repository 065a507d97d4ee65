"""The cost math, against numbers worked out by hand and measured elsewhere."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_run.errors import ContractError
from agent_run.topology.advise import Price, TaskShape, advise, together


def test_five_agents_of_95_percent_in_series_succeed_77_percent_of_the_time() -> None:
    product, _ = together(0.95, 5, 0.0)

    assert round(product, 2) == 0.77


def test_correlated_failures_make_the_product_too_dark() -> None:
    """One agent passes 0.42 of a published benchmark; four runs all pass 0.20, not 0.03."""
    product, correlated = together(0.42, 4, 0.43)

    assert round(product, 2) == 0.03
    assert round(correlated, 2) == 0.20


def test_finding_one_fact_is_work_for_one_agent() -> None:
    advice = advise(TaskShape(steps=1))

    assert advice.topology == "single"
    assert "one agent with good tools" in advice.reasons[0]


def test_independent_analyses_are_fanned_out_and_the_price_is_told() -> None:
    advice = advise(TaskShape(steps=15, independent=5))

    assert advice.topology == "orchestrator-workers"
    split, one = advice.estimate("orchestrator-workers"), advice.estimate("single")
    assert split.seconds < one.seconds / 2
    assert split.agents == 6
    assert any("x those of one exchange" in reason for reason in advice.reasons)


def test_a_predictable_pipeline_is_planned_once() -> None:
    advice = advise(TaskShape(steps=8, predictability=0.9))

    assert advice.topology == "plan-execute"
    assert advice.estimate("plan-execute").calls == 3
    assert advice.estimate("single").calls == 9


def test_an_uncertain_chain_stays_with_one_agent() -> None:
    assert advise(TaskShape(steps=8, predictability=0.2)).topology == "single"


def test_specialists_of_which_one_is_needed_are_routed_to() -> None:
    assert advise(TaskShape(specialists=3, predictability=0.2)).topology == "routing"


def test_a_task_worth_less_than_its_price_is_not_split() -> None:
    prices = {"flagship": Price(Decimal(5), Decimal(25))}
    shape = TaskShape(steps=15, independent=5, predictability=0.2, value_usd=0.01)

    advice = advise(shape, prices)

    assert advice.topology == "single"
    assert "splitting would take" in advice.reasons[1]


def test_cost_is_told_for_each_model() -> None:
    prices = {"cheap": Price(Decimal(1), Decimal(5)), "dear": Price(Decimal(5), Decimal(25))}

    cost = advise(TaskShape(steps=1), prices).estimate("single").cost_usd

    assert cost["dear"] == 5 * cost["cheap"]


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"predictability": 1.5}, {"independent": 0}])
def test_a_shape_that_cannot_be_is_refused(wrong: dict[str, float]) -> None:
    (name,) = wrong

    with pytest.raises(ContractError, match=f"{name} is"):
        TaskShape(**wrong)  # type: ignore[arg-type]  # that is what is tested


@given(st.integers(1, 60), st.integers(1, 20), st.floats(0, 1), st.floats(0, 1))
def test_estimates_are_sane_for_every_shape(
    steps: int, independent: int, predictability: float, correlation: float
) -> None:
    shape = TaskShape(
        steps=steps,
        independent=independent,
        predictability=predictability,
        correlation=correlation,
    )

    advice = advise(shape)

    assert advice.reasons
    for estimate in advice.estimates:
        assert estimate.calls >= 1
        assert estimate.tokens > 0
        assert 0 <= estimate.reliability <= estimate.reliability_correlated + 1e-9 <= 1 + 1e-9
