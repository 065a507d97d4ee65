"""Confidence by step over time, and the steps whose confidence fell.

A step has regressed when its newest values lie below the earlier ones by Mann and Whitney's
rank test (one-sided, below 0.01) and the median fell by at least 0.05. Ranks do not care how
confidence is distributed, and one wild value moves neither ranks nor medians much.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from agent_run.ledger.metrics.facts import STEP, Task
from agent_run.ledger.metrics.statistics import grouped, mean, median, shift, tail_of

STATISTIC: Final = (
    "Mann-Whitney rank test of the newest values against all earlier ones, "
    "one-sided p < 0.01, and the median at least 0.05 lower"
)
FEWEST: Final = 15
"""With fewer values nothing is said."""
_MOST_RECENT: Final = 20
_CHANCE: Final = 0.01
_SMALLEST_FALL: Final = 0.05


class Regression(NamedTuple):
    """A step whose executor has become less sure."""

    earlier: float
    """Median before."""
    recent: float
    """Median of the newest values."""
    counted: int
    """How many values are the newest."""
    chance: float
    """How likely such a fall is if nothing changed."""
    since: datetime
    """Time of the first of the newest values."""


class StepConfidence(NamedTuple):
    """What executors of one step said about their own work."""

    step: str
    values: tuple[float, ...]
    """In the order of time."""
    times: tuple[datetime, ...]
    unstated: int
    """Records without a confidence."""
    mean: float | None
    median: float | None
    regression: Regression | None


def confidence_by_step(tasks: Sequence[Task]) -> tuple[StepConfidence, ...]:
    """Return the confidence of each step that anything was submitted for."""
    return tuple(_steps(tasks))


def _steps(tasks: Sequence[Task]) -> Iterator[StepConfidence]:
    for step, inside in grouped(tasks, STEP).items():
        said = [
            (one.ended_at, one.confidence)
            for task in inside
            for one in task.attempts
            if one.said and one.ended_at is not None
        ]
        if not said:
            continue
        stated = sorted((at, value) for at, value in said if value is not None)
        values = tuple(value for _, value in stated)
        times = tuple(at for at, _ in stated)
        yield StepConfidence(
            step=step,
            values=values,
            times=times,
            unstated=len(said) - len(stated),
            mean=mean(values),
            median=median(values),
            regression=_regression(values, times),
        )


def _regression(values: Sequence[float], times: Sequence[datetime]) -> Regression | None:
    if len(values) < FEWEST:
        return None
    counted = min(_MOST_RECENT, len(values) // 3)
    earlier, recent = values[:-counted], values[-counted:]
    before, now = median(earlier), median(recent)
    moved = shift(earlier, recent)
    if before is None or now is None or moved is None:
        return None
    chance = tail_of(moved.z)
    if chance >= _CHANCE or before - now < _SMALLEST_FALL:
        return None
    return Regression(before, now, counted, chance, times[-counted])
