"""Limits that a score must keep, so that a build fails when a pipeline gets worse."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from agent_run.errors import ContractError
from agent_run.evals.scoring import Score


@dataclass(frozen=True, slots=True)
class Limit:
    """The least or the most that a score may be."""

    score: str
    side: Literal["min", "max"]
    value: float

    def missed_by(self, score: Score) -> str:
        """Return what is wrong, or nothing. What was never counted keeps no limit."""
        if score.value is None:
            return f"{self.score} was not counted, wanted {self.side} {self.value:g}"
        kept = score.value >= self.value if self.side == "min" else score.value <= self.value
        if kept:
            return ""
        return f"{self.score} is {score.value:.4g}, wanted {self.side} {self.value:g}"


def read_limits(least: Iterable[str], most: Iterable[str]) -> tuple[Limit, ...]:
    """Return the limits that `name=number` says, each for one side.

    Raises:
        ContractError: One of them is none.
    """
    return (*(_read(text, "min") for text in least), *(_read(text, "max") for text in most))


def refuse_unknown(limits: Iterable[Limit], names: Collection[str]) -> None:
    """Refuse a limit about a score that does not exist, before anything is spent.

    Raises:
        ContractError: There is one.
    """
    for limit in limits:
        if limit.score not in names:
            known = ", ".join(sorted(names))
            msg = f"no score {limit.score!r}, expected one of {known}"
            raise ContractError(msg)


def missed(limits: Iterable[Limit], scores: Mapping[str, Score]) -> list[str]:
    """Return a sentence for each limit that is not kept."""
    said = (limit.missed_by(scores[limit.score]) for limit in limits)
    return [problem for problem in said if problem]


def _read(text: str, side: Literal["min", "max"]) -> Limit:
    name, equals, number = text.partition("=")
    try:
        value = float(number)
    except ValueError:
        equals = ""
        value = 0.0
    if not equals or not name or value != value:  # noqa: PLR0124 - NaN is no limit
        msg = f"limit {text!r} is not like 'step_accuracy=0.9'"
        raise ContractError(msg)
    return Limit(name.strip(), side, value)
