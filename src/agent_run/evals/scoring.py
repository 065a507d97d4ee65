"""Scores of an evaluation, each with a 95 % interval and what it was counted from.

Steps of one case are not independent, so intervals of step scores come from drawing whole
cases again; shares of cases have Wilson's interval.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Final, Literal, TypeAlias

from agent_run.evals.results import CaseResult
from agent_run.ledger.metrics.statistics import Proportion, interval_of, kappa

Better: TypeAlias = Literal["higher", "lower"]
Pair: TypeAlias = tuple[float, float]
"""What one case adds to the top and to the bottom of a ratio."""

RESAMPLES: Final = 1_000
FEWEST: Final = 10
"""Drawing fewer cases again would promise more than is known, so there is no interval."""
_SEED: Final = 20_261_115


@dataclass(frozen=True, slots=True)
class Score:
    """One number about a pipeline."""

    name: str
    value: float | None
    """`None` means that there was nothing to count."""
    low: float | None
    high: float | None
    """`None` means that there were too few cases to say."""
    counted: int
    """Steps, decisions or cases that it was counted from."""
    better: Better
    says: str


def case_pairs(name: str) -> Callable[[CaseResult], Pair]:
    """Return what each case adds to the score called `name`."""
    return _RATIOS[name].pair


def scores(results: Sequence[CaseResult]) -> dict[str, Score]:
    """Return all scores of an evaluation, by name."""
    draws = list(_draws(len(results)))
    found = [_ratio(name, ratio, results, draws) for name, ratio in _RATIOS.items()]
    found += list(_shares(results))
    found.append(_agreement(results))
    return {score.name: score for score in found}


def _ratio(
    name: str, ratio: "_Ratio", results: Sequence[CaseResult], draws: Sequence[Sequence[int]]
) -> Score:
    pairs = [ratio.pair(result) for result in results]
    # Exact sums: cases end in any order, and the score must not depend on it.
    top, bottom = fsum(pair[0] for pair in pairs), fsum(pair[1] for pair in pairs)
    again: list[float] = []
    telling = sum(pair[1] > 0 for pair in pairs)
    for draw in draws if telling >= FEWEST else ():
        below = sum(pairs[index][1] for index in draw)
        if below:
            again.append(sum(pairs[index][0] for index in draw) / below)
    low, high = interval_of(again) or (None, None)
    value = top / bottom if bottom else None
    return Score(name, value, low, high, int(bottom), ratio.better, ratio.says)


def _shares(results: Sequence[CaseResult]) -> Iterator[Score]:
    expected = [one for one in results if one.case.expected.outcome is not None]
    right = sum(one.outcome == one.case.expected.outcome for one in expected)
    said = "cases that came to the expected outcome"
    yield wilson_score("case_accuracy", Proportion(right, len(expected)), "higher", said)
    decided = sum(one.outcome in {"pass", "fail"} for one in results)
    said = "cases that needed no person"
    yield wilson_score("decided", Proportion(decided, len(results)), "higher", said)
    errors = sum(one.outcome == "error" for one in results)
    said = "cases that broke the pipeline"
    yield wilson_score("errors", Proportion(errors, len(results)), "lower", said)
    pairs = _decisions(results)
    same = sum(ours == theirs for ours, theirs in pairs)
    said = "decided cases on which a person decided the same"
    yield wilson_score("agreement", Proportion(same, len(pairs)), "higher", said)


def wilson_score(name: str, share: Proportion, better: Better, says: str) -> Score:
    """Return a share of cases as a score, with its interval."""
    low, high = share.interval if share.of else (None, None)
    return Score(name, share.value, low, high, share.of, better, says)


def _agreement(results: Sequence[CaseResult]) -> Score:
    pairs = _decisions(results)
    value = kappa(Counter(pairs))
    draws = _draws(len(pairs)) if len(pairs) >= FEWEST else ()
    drawn = (kappa(Counter(pairs[index] for index in draw)) for draw in draws)
    again = [one for one in drawn if one is not None]
    low, high = interval_of(again) or (None, None)
    says = "agreement with people beyond chance"
    return Score("kappa", value, low, high, len(pairs), "higher", says)


def _decisions(results: Sequence[CaseResult]) -> list[tuple[str, str]]:
    return [
        (one.outcome, one.case.human.decision)
        for one in results
        if one.case.human is not None and one.outcome in {"pass", "fail"}
    ]


def _draws(count: int) -> Iterator[list[int]]:
    # The same cases give the same interval on every machine, so a score is reproducible.
    chance = random.Random(_SEED)  # noqa: S311 - resampling, not secrecy
    if count:
        for _ in range(RESAMPLES):
            yield chance.choices(range(count), k=count)


@dataclass(frozen=True, slots=True)
class _Ratio:
    """A score that is a ratio of sums over cases."""

    pair: Callable[[CaseResult], Pair]
    better: Better
    says: str


def _right_steps(result: CaseResult) -> Pair:
    wanted = result.case.expected.steps
    return sum(result.steps.get(step) == outcome for step, outcome in wanted.items()), len(
        wanted
    )


def _present_steps(result: CaseResult) -> Pair:
    wanted = result.case.expected.steps
    return sum(step in result.steps for step in wanted), len(wanted)


def _precision(result: CaseResult) -> Pair:
    wanted = result.case.expected.steps
    found = [step for step in wanted if result.steps.get(step) == "fail"]
    return sum(wanted[step] == "fail" for step in found), len(found)


def _recall(result: CaseResult) -> Pair:
    wanted = [step for step, outcome in result.case.expected.steps.items() if outcome == "fail"]
    return sum(result.steps.get(step) == "fail" for step in wanted), len(wanted)


_RATIOS: Final[Mapping[str, _Ratio]] = {
    "step_accuracy": _Ratio(_right_steps, "higher", "steps that came to what was expected"),
    "plan_completeness": _Ratio(
        _present_steps, "higher", "expected steps that were in the plan"
    ),
    "precision": _Ratio(_precision, "higher", "steps that failed and should have"),
    "recall": _Ratio(_recall, "higher", "steps that should have failed and did"),
    "cost_usd": _Ratio(lambda one: (float(one.cost_usd), 1), "lower", "known cost of a case"),
    "tokens": _Ratio(lambda one: (one.tokens, 1), "lower", "tokens of a case"),
    "seconds": _Ratio(lambda one: (one.seconds, 1), "lower", "time of a case"),
    "attempts": _Ratio(lambda one: (one.attempts, 1), "lower", "attempts of a case"),
}
"""Name -> how each case adds to it."""
