"""Rubrics: what a report is scored for, by a person who does not know its source, or a model.

Whoever scores sees a report and the questions, and nothing else. A sheet for a person has
rows in a shuffled order under names that say nothing; which row is which case stands in a
key of its own.
"""

import csv
import hashlib
import io
from collections import Counter
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, Self

from pydantic import Field, JsonValue, model_validator

from agent_run.contract.base import Contract, Line, Name, Whole
from agent_run.contract.faults import Fault, refusal
from agent_run.evals.results import CaseResult
from agent_run.evals.side_by_side import each_of
from agent_run.ledger.metrics.statistics import kappa, mean

NOTE: Final = "note"
"""Beside the scores: what a rater had to say about them."""

_ID, _REPORT = "row", "report"
_LONGEST_NOTE: Final = 10_000
_MOST_STEPS: Final = 100
_AT_ONCE: Final = 4
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


class Criterion(Contract):
    """One question about a report, answered by a whole number."""

    name: Name
    question: Line
    lowest: Whole = 1
    highest: Whole = 5

    @model_validator(mode="after")
    def _scale(self) -> Self:
        if not 0 < self.highest - self.lowest <= _MOST_STEPS:
            scale = f"the scale is {self.lowest} to {self.highest}"
            msg = f"{scale}, expected 1 to {_MOST_STEPS} steps"
            raise ValueError(msg)
        if self.name == NOTE:
            msg = f"{NOTE!r} is the name of the remark beside the scores"
            raise ValueError(msg)
        return self


class Rubric(Contract):
    """What reports are scored for."""

    rubric_id: Name
    criteria: tuple[Criterion, ...] = Field(min_length=1, max_length=50)


class Rating(Contract):
    """What one rater thought of one report."""

    case_id: Name
    rater: str = Field(max_length=200)
    scores: dict[Name, Whole]
    note: str = Field(default="", max_length=_LONGEST_NOTE)


class Scorer(Protocol):
    """Scores one report; for example by asking a model."""

    def __call__(self, rubric: Rubric, report: str) -> Awaitable[Mapping[str, JsonValue]]:
        """Return a whole number for each criterion, by its name, and perhaps a `note`."""
        ...


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table for a person, and what its rows stand for."""

    csv: str
    key: dict[str, str]
    """Row -> case."""


@dataclass(frozen=True, slots=True)
class Agreed:
    """How far two raters agree on one criterion."""

    criterion: str
    both: int
    exact: float | None
    """Share of reports with the same score."""
    kappa: float | None
    apart: float | None
    """Mean distance between their scores."""


def hand_out(results: Sequence[CaseResult], rubric: Rubric, *, seed: str) -> Sheet:
    """Return a sheet in which nothing tells where a report is from.

    The order is shuffled by `seed`, the same for the same seed. Cases without a report are
    left out, because there is nothing to score.
    """
    named = {
        hashlib.sha256(f"{seed}\n{one.case.case_id}".encode()).hexdigest()[:10]: one
        for one in results
        if one.report
    }
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([_ID, _REPORT, *(_heading(one) for one in rubric.criteria), NOTE])
    for row in sorted(named):
        blanks = [""] * (len(rubric.criteria) + 1)
        writer.writerow([row, _harmless(named[row].report), *blanks])
    return Sheet(text.getvalue(), {row: one.case.case_id for row, one in named.items()})


def take_in(
    text: str, rubric: Rubric, key: Mapping[str, str], *, rater: str, source: str
) -> list[Rating]:
    """Return what a person filled in; rows that were left empty are not there.

    Raises:
        InvalidDocument: A row is not of this sheet, or a score not of its scale; names all.
    """
    faults: list[Fault] = []
    ratings: list[Rating] = []
    headings = {_heading(one): one for one in rubric.criteria}
    reader = csv.DictReader(io.StringIO(text))
    missing = [name for name in (_ID, *headings) if name not in (reader.fieldnames or ())]
    if missing:
        told = f"has no column {missing[0]!r}, expected the sheet as it was handed out"
        raise refusal([Fault(source, 1, None, "", told)])
    for row in reader:
        filled = {one: (row[heading] or "").strip() for heading, one in headings.items()}
        if not any(filled.values()):
            continue
        note = row.get(NOTE) or ""
        found = [*_row_faults(row[_ID] or "", filled, key), *_note_faults(note)]
        faults += [Fault(source, reader.line_num, None, name, told) for name, told in found]
        if not found:
            scores = {one.name: int(answer) for one, answer in filled.items()}
            ratings.append(Rating(case_id=key[row[_ID]], rater=rater, scores=scores, note=note))
    if faults:
        raise refusal(faults)
    return ratings


async def ask(
    results: Sequence[CaseResult], rubric: Rubric, scorer: Scorer, *, rater: str
) -> list[Rating]:
    """Return what `scorer` thinks of each report that there is.

    Raises:
        InvalidDocument: It gave something that is not on the scale.
    """

    async def one(result: CaseResult) -> Rating:
        given = await scorer(rubric, result.report)
        return _checked(result, rubric, given, rater)

    with_report = [result for result in results if result.report]
    return await each_of(with_report, one, at_once=_AT_ONCE)


def means(ratings: Sequence[Rating]) -> dict[str, float]:
    """Return the mean score of each criterion."""
    names = dict.fromkeys(name for rating in ratings for name in rating.scores)
    found = {
        name: mean([rating.scores[name] for rating in ratings if name in rating.scores])
        for name in names
    }
    return {name: value for name, value in found.items() if value is not None}


def agreed(one: Sequence[Rating], other: Sequence[Rating]) -> list[Agreed]:
    """Return how far two raters agree on the reports both have scored."""
    theirs = {rating.case_id: rating for rating in other}
    both = [(mine, theirs[mine.case_id]) for mine in one if mine.case_id in theirs]
    names = dict.fromkeys(name for mine, _ in both for name in mine.scores)
    found: list[Agreed] = []
    for name in names:
        pairs = [
            (mine.scores[name], your.scores[name])
            for mine, your in both
            if name in mine.scores and name in your.scores
        ]
        found.append(
            Agreed(
                criterion=name,
                both=len(pairs),
                exact=mean([float(a == b) for a, b in pairs]),
                kappa=kappa(Counter(pairs)),
                apart=mean([float(abs(a - b)) for a, b in pairs]),
            )
        )
    return found


def _row_faults(
    row: str, filled: Mapping[Criterion, str], key: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    if row not in key:
        yield _ID, f"is {row!r}, which the key does not know"
    for criterion, answer in filled.items():
        problem = _off_scale(criterion, answer)
        if problem:
            yield criterion.name, problem


def _note_faults(note: str) -> Iterator[tuple[str, str]]:
    if len(note) > _LONGEST_NOTE:
        yield NOTE, f"is {len(note)} characters long, expected at most {_LONGEST_NOTE}"


def _checked(
    result: CaseResult, rubric: Rubric, given: Mapping[str, JsonValue], rater: str
) -> Rating:
    scores: dict[str, int] = {}
    faults: list[Fault] = []
    for criterion in rubric.criteria:
        answer = given.get(criterion.name)
        problem = _off_scale(criterion, answer)
        if problem:
            faults.append(Fault(rater, None, None, criterion.name, problem))
        elif isinstance(answer, int | str):
            scores[criterion.name] = int(answer)
    note = str(given.get(NOTE) or "")
    faults += [Fault(rater, None, None, name, told) for name, told in _note_faults(note)]
    if faults:
        raise refusal(faults)
    return Rating(case_id=result.case.case_id, rater=rater, scores=scores, note=note)


def _off_scale(criterion: Criterion, answer: JsonValue) -> str:
    wanted = f"a whole number from {criterion.lowest} to {criterion.highest}"
    if isinstance(answer, str) and answer.strip().lstrip("-").isdecimal():
        answer = int(answer)
    if isinstance(answer, bool) or not isinstance(answer, int):
        return f"is {answer!r}, expected {wanted}"
    if not criterion.lowest <= answer <= criterion.highest:
        return f"is {answer}, expected {wanted}"
    return ""


def _heading(criterion: Criterion) -> str:
    scale = f"{criterion.lowest} to {criterion.highest}"
    return _harmless(f"{criterion.name} ({scale}): {criterion.question}")


def _harmless(text: str) -> str:
    """Return text that a spreadsheet takes for text, and not for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text
