"""From a score to a probability that means what it says: Platt's curve.

Fitted by Newton steps on scores of held-out examples, with his softened targets, so that even
a perfect split does not become a certainty.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_STEPS: Final = 100
_ENOUGH: Final = 1e-10
_RIDGE: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Curve:
    """A logistic curve over scores."""

    slope: float
    offset: float

    def probability(self, score: float) -> float:
        """Return the probability that `score` stands for."""
        at = self.slope * score + self.offset
        if at >= 0:
            return 1 / (1 + math.exp(-min(at, 700)))
        power = math.exp(max(at, -700))
        return power / (1 + power)


def fitted(scores: Sequence[tuple[float, bool]]) -> Curve:
    """Return the curve that fits held-out `scores` and their labels best."""
    positive = sum(label for _, label in scores)
    negative = len(scores) - positive
    targets = {True: (positive + 1) / (positive + 2), False: 1 / (negative + 2)}
    # Scores are brought to a common scale, or the steps would overshoot.
    scale = max((abs(score) for score, _ in scores), default=1.0) or 1.0
    points = [(score / scale, targets[label]) for score, label in scores]
    curve = Curve(1.0, 0.0)
    for _ in range(_STEPS):
        slope, offset = _step(curve, points)
        moved = _best(curve, slope, offset, points)
        if moved is None or abs(_loss(curve, points) - _loss(moved, points)) < _ENOUGH:
            break
        curve = moved
    return Curve(round(curve.slope / scale, 6), round(curve.offset, 6))


def _step(curve: Curve, points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    a = b = c = d = e = 0.0
    for score, target in points:
        p = curve.probability(score)
        spread, off = p * (1 - p), p - target
        a += score * score * spread
        b += score * spread
        c += spread
        d += score * off
        e += off
    a, c = a + _RIDGE, c + _RIDGE
    size = a * c - b * b
    return -(c * d - b * e) / size, -(a * e - b * d) / size


def _best(
    curve: Curve, slope: float, offset: float, points: Sequence[tuple[float, float]]
) -> Curve | None:
    before = _loss(curve, points)
    share = 1.0
    while share > _ENOUGH:
        moved = Curve(curve.slope + share * slope, curve.offset + share * offset)
        if _loss(moved, points) < before:
            return moved
        share /= 2
    return None


def _loss(curve: Curve, points: Sequence[tuple[float, float]]) -> float:
    total = 0.0
    for score, target in points:
        p = min(max(curve.probability(score), 1e-15), 1 - 1e-15)
        total -= target * math.log(p) + (1 - target) * math.log(1 - p)
    return total
