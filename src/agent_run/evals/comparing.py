"""Two evaluations of the same cases: what became better, what worse, and whether by chance."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agent_run.errors import ContractError
from agent_run.evals.results import CaseResult
from agent_run.evals.scoring import FEWEST, RESAMPLES, case_pairs, scores
from agent_run.ledger.metrics.statistics import interval_of, sign_test

_PAIRED: Final = ("step_accuracy", "recall", "precision", "cost_usd", "tokens", "seconds")
_SEED: Final = 20_261_116
_CHANCE: Final = 0.05


@dataclass(frozen=True, slots=True)
class Difference:
    """How one score moved from the one evaluation to the other."""

    score: str
    before: float
    after: float
    low: float | None
    high: float | None
    """The 95 % interval of after minus before, drawing the same cases for both.

    `None` means that there were too few cases to say.
    """
    better: str

    @property
    def significant(self) -> bool:
        if self.low is None or self.high is None:
            return False
        return self.low > 0 or self.high < 0

    @property
    def worse(self) -> bool:
        fell = self.after < self.before
        return self.significant and (fell if self.better == "higher" else not fell)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two evaluations of the same cases."""

    cases: int
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    """Cases that only one of them has; they are left out."""
    became_right: tuple[str, ...]
    became_wrong: tuple[str, ...]
    chance: float
    """How likely so uneven a change is if both are alike: McNemar's exact test."""
    differences: tuple[Difference, ...]

    @property
    def worse(self) -> bool:
        """Whether something became worse by more than chance.

        Time is not asked: it tells as much of the machine as of the pipeline.
        """
        fell = self.chance < _CHANCE and len(self.became_wrong) > len(self.became_right)
        return fell or any(one.worse for one in self.differences if one.score != "seconds")

    def sentence(self) -> str:
        """Return what a reader should take home."""
        right, wrong = len(self.became_right), len(self.became_wrong)
        moved = f"{right} of {self.cases} cases became right and {wrong} wrong"
        if self.chance >= _CHANCE:
            return f"{moved}; that may be chance (McNemar p = {self.chance:.3f})"
        better = "better" if right > wrong else "worse"
        return f"{moved}; it became {better} (McNemar p = {self.chance:.2g})"


def compare(before: Mapping[str, CaseResult], after: Mapping[str, CaseResult]) -> Comparison:
    """Compare two evaluations on the cases both have.

    Raises:
        ContractError: They share no case, or the same name stands for different cases.
    """
    both = sorted(name for name in before if name in after)
    if not both:
        msg = "the two evaluations share no case"
        raise ContractError(msg)
    changed = [name for name in both if before[name].case != after[name].case]
    if changed:
        named = ", ".join(repr(name) for name in changed[:5])
        msg = f"{len(changed)} cases are not the same in both evaluations: {named}"
        raise ContractError(msg)
    pairs = [(before[name], after[name]) for name in both]
    gained = [b.case.case_id for a, b in pairs if not _right(a) and _right(b)]
    lost = [b.case.case_id for a, b in pairs if _right(a) and not _right(b)]
    return Comparison(
        cases=len(both),
        only_before=tuple(name for name in before if name not in after),
        only_after=tuple(name for name in after if name not in before),
        became_right=tuple(gained),
        became_wrong=tuple(lost),
        chance=sign_test(len(gained), len(lost)),
        differences=tuple(_differences(pairs)),
    )


def _right(result: CaseResult) -> bool:
    """Whether a case came out as expected; what a person decided counts where nobody said."""
    expected, human = result.case.expected, result.case.human
    if any(result.steps.get(step) != outcome for step, outcome in expected.steps.items()):
        return False
    if expected.outcome is not None:
        return result.outcome == expected.outcome
    return bool(expected.steps) or human is None or result.outcome == human.decision


def _differences(pairs: Sequence[tuple[CaseResult, CaseResult]]) -> Iterator[Difference]:
    known = scores([after for _, after in pairs])
    chance = random.Random(_SEED)  # noqa: S311 - resampling, not secrecy
    draws = [chance.choices(range(len(pairs)), k=len(pairs)) for _ in range(RESAMPLES)]
    for name in _PAIRED:
        pair = case_pairs(name)
        first = [pair(before) for before, _ in pairs]
        second = [pair(after) for _, after in pairs]
        everyone = range(len(pairs))
        before, after = _value(first, everyone), _value(second, everyone)
        if before is None or after is None:
            continue
        telling = sum(a[1] > 0 and b[1] > 0 for a, b in zip(first, second, strict=True))
        moved = [
            two - one
            for draw in (draws if telling >= FEWEST else ())
            if (one := _value(first, draw)) is not None
            and (two := _value(second, draw)) is not None
        ]
        low, high = interval_of(moved) or (None, None)
        yield Difference(name, before, after, low, high, known[name].better)


def _value(pairs: Sequence[tuple[float, float]], draw: Sequence[int]) -> float | None:
    bottom = sum(pairs[index][1] for index in draw)
    return sum(pairs[index][0] for index in draw) / bottom if bottom else None
