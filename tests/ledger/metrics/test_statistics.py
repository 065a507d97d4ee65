"""Statistics, against published and hand-made numbers, and what must always hold."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_run.ledger.metrics.statistics import (
    Proportion,
    difference,
    kappa,
    mean,
    median,
    quantile,
    shift,
    sign_test,
    tail_of,
    wilson,
)

FLOATS = st.lists(st.floats(0, 1), min_size=1, max_size=30)


def test_wilsons_interval_is_the_published_one() -> None:
    low, high = wilson(81, 263)  # Newcombe 1998, table I

    assert (round(low, 4), round(high, 4)) == (0.2553, 0.3662)
    assert wilson(0, 20)[1] == pytest.approx(0.1611, abs=1e-4)
    assert wilson(0, 0) == (0.0, 1.0)


def test_newcombes_interval_of_a_difference_is_the_published_one() -> None:
    low, high = difference(Proportion(48, 80), Proportion(56, 70))  # Newcombe 1998, table II

    assert (round(low, 4), round(high, 4)) == (0.0524, 0.3339)


def test_kappa_is_agreement_beyond_chance() -> None:
    assert kappa({("y", "y"): 20, ("y", "n"): 5, ("n", "y"): 10, ("n", "n"): 15}) == (
        pytest.approx(0.4)
    )
    assert kappa({(True, True): 7}) is None
    assert kappa({}) is None


def test_the_rank_test_finds_a_fall_and_no_difference_where_there_is_none() -> None:
    fell = shift([0.9] * 20, [0.5] * 10)
    same = shift([0.5, 0.6, 0.7] * 5, [0.5, 0.6, 0.7] * 5)

    assert fell is not None
    assert same is not None
    assert (fell.smaller, same.z) == (1.0, 0.0)
    assert tail_of(fell.z) < 1e-6
    assert shift([], [1.0]) is None


def test_the_rank_test_agrees_with_a_worked_example() -> None:
    moved = shift([1, 2, 4], [3, 5, 6])

    assert moved is not None
    assert moved.z == pytest.approx((8 - 4.5) / math.sqrt(3 * 3 * 7 / 12))


def test_mcnemars_exact_test_is_a_coin_tossed() -> None:
    assert sign_test(0, 0) == 1.0
    assert sign_test(5, 0) == pytest.approx(2 / 32)
    assert sign_test(3, 3) == 1.0
    assert sign_test(3_000, 2_000) < 1e-40


def test_quantiles_lie_between_neighbours() -> None:
    assert quantile([1, 2, 3, 4], 0.5) == 2.5
    assert (quantile([5], 0.99), median([]), mean([])) == (5, None, None)


@given(st.integers(0, 500), st.integers(0, 500))
def test_a_share_lies_in_its_interval(hits: int, misses: int) -> None:
    share = Proportion(hits, hits + misses)

    low, high = share.interval

    assert 0 <= low <= high <= 1
    assert share.value is None or low <= share.value <= high


@given(FLOATS, FLOATS)
def test_the_rank_test_turns_around_with_its_sides(
    one: list[float], other: list[float]
) -> None:
    there, back = shift(one, other), shift(other, one)

    assert there is not None
    assert back is not None
    assert there.z == pytest.approx(-back.z)
    assert there.smaller == pytest.approx(1 - back.smaller)


@given(st.dictionaries(st.tuples(st.booleans(), st.booleans()), st.integers(0, 50)))
def test_kappa_never_exceeds_one(matrix: dict[tuple[bool, bool], int]) -> None:
    found = kappa(matrix)

    assert found is None or -1 - 1e-9 <= found <= 1 + 1e-9
