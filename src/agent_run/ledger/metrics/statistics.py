"""The few statistics that metrics, evaluations and canaries need, in plain arithmetic.

Every number is given with what it was counted from: a share without its interval, or an
interval without its count, is not evidence.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

Z_95: Final = 1.959963984540054
"""The two-sided 95 % point of the normal distribution."""

LabelT = TypeVar("LabelT", bound=Hashable)
ItemT = TypeVar("ItemT")


@dataclass(frozen=True, slots=True)
class Proportion:
    """A share of a count, with Wilson's 95 % interval."""

    hits: int
    of: int

    @property
    def value(self) -> float | None:
        """`None` means that nothing was counted."""
        return self.hits / self.of if self.of else None

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.hits, self.of)

    def __add__(self, other: "Proportion") -> "Proportion":
        return Proportion(self.hits + other.hits, self.of + other.of)


class Shift(NamedTuple):
    """How later values lie against earlier ones, by Mann and Whitney's rank test."""

    z: float
    """Below zero when the later values are smaller; corrected for ties."""
    smaller: float
    """The chance that a later value is smaller than an earlier one, ties counted half."""


def share_of(hits: Iterable[bool]) -> Proportion:
    """Return how many of `hits` are true."""
    answers = list(hits)
    return Proportion(sum(answers), len(answers))


def wilson(hits: int, of: int, *, z: float = Z_95) -> tuple[float, float]:
    """Return the interval in which the true share lies; everything while nothing is known."""
    if not of:
        return 0.0, 1.0
    share, square = hits / of, z * z
    middle = (share + square / (2 * of)) / (1 + square / of)
    half = z / (1 + square / of) * math.sqrt(share * (1 - share) / of + square / (4 * of * of))
    # At the ends the formula is exact; only rounding would leave a trace.
    low = 0.0 if hits == 0 else max(0.0, middle - half)
    high = 1.0 if hits == of else min(1.0, middle + half)
    return low, high


def difference(one: Proportion, other: Proportion) -> tuple[float, float]:
    """Return the 95 % interval of `other` minus `one`, by Newcombe from Wilson's intervals."""
    if not one.of or not other.of:
        return -1.0, 1.0
    (low_1, high_1), (low_2, high_2) = one.interval, other.interval
    share_1, share_2 = one.hits / one.of, other.hits / other.of
    apart = share_2 - share_1
    below = math.hypot(share_2 - low_2, high_1 - share_1)
    above = math.hypot(high_2 - share_2, share_1 - low_1)
    return max(-1.0, apart - below), min(1.0, apart + above)


def mean(values: Sequence[float]) -> float | None:
    """Return the mean; None of nothing."""
    return math.fsum(values) / len(values) if values else None


def quantile(values: Sequence[float], share: float) -> float | None:
    """Return the value below which `share` of them lie, between neighbours by line."""
    if not values:
        return None
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def median(values: Sequence[float]) -> float | None:
    """Return the middle value; None of nothing."""
    return quantile(values, 0.5)


def kappa(matrix: Mapping[tuple[LabelT, LabelT], int]) -> float | None:
    """Return Cohen's kappa of a confusion matrix: agreement beyond what chance would give.

    `None` when nothing was counted, or when both always said the same one thing, for then
    there is no chance to be beyond.
    """
    whole = sum(matrix.values())
    if not whole:
        return None
    rows: dict[LabelT, int] = {}
    columns: dict[LabelT, int] = {}
    for (row, column), count in matrix.items():
        rows[row] = rows.get(row, 0) + count
        columns[column] = columns.get(column, 0) + count
    seen = sum(count for (row, column), count in matrix.items() if row == column)
    by_chance = sum(count * columns.get(label, 0) for label, count in rows.items())
    left = whole * whole - by_chance
    return (seen * whole - by_chance) / left if left else None


def shift(earlier: Sequence[float], later: Sequence[float]) -> Shift | None:
    """Return how `later` lies against `earlier`; None if one of them is empty."""
    n, m = len(earlier), len(later)
    if not n or not m:
        return None
    ranks, ties = _ranks([*earlier, *later])
    u = sum(ranks[n:]) - m * (m + 1) / 2
    whole = n + m
    spread = n * m / 12 * ((whole + 1) - ties / (whole * (whole - 1)) if whole > 1 else 0)
    z = (u - n * m / 2) / math.sqrt(spread) if spread > 0 else 0.0
    return Shift(z, 1 - u / (n * m))


def sign_test(better: int, worse: int) -> float:
    """Return the exact two-sided chance of a split at least this uneven, if both are alike.

    For pairs that changed from wrong to right and back this is McNemar's exact test.
    """
    whole = better + worse
    if not whole:
        return 1.0
    tail = sum(math.comb(whole, k) for k in range(min(better, worse) + 1))
    return min(1.0, 2 * tail / (1 << whole))


def tail_of(z: float) -> float:
    """Return the chance of a normal value below `z`."""
    return 0.5 * math.erfc(-z / math.sqrt(2))


def interval_of(values: Sequence[float], *, mass: float = 0.95) -> tuple[float, float] | None:
    """Return where the middle `mass` of resampled values lies."""
    low, high = quantile(values, (1 - mass) / 2), quantile(values, (1 + mass) / 2)
    return None if low is None or high is None else (low, high)


def grouped(items: Iterable[ItemT], key: Callable[[ItemT], str]) -> dict[str, list[ItemT]]:
    """Return the items by their key, keys in the order of their first item."""
    groups: defaultdict[str, list[ItemT]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return dict(groups)


def _ranks(values: Sequence[float]) -> tuple[list[float], float]:
    """Return the rank of each value, equal ones sharing theirs, and the sum of t³ - t."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    ties = 0.0
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and values[order[end + 1]] == values[order[start]]:
            end += 1
        for place in range(start, end + 1):
            ranks[order[place]] = (start + end) / 2 + 1
        same = end - start + 1
        ties += same**3 - same
        start = end + 1
    return ranks, ties
