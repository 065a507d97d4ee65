"""Rubrics: a sheet tells nothing about its source, and what comes back is checked."""

import csv
import io

import anyio
import pytest

from agent_run.errors import InvalidDocument
from agent_run.evals.rubric import (
    Criterion,
    Rating,
    Rubric,
    agreed,
    ask,
    hand_out,
    means,
    take_in,
)
from tests.evals.test_scoring import result
from tests.support.graders import by_length

RUBRIC = Rubric(
    rubric_id="clarity",
    criteria=(
        Criterion(name="clear", question="Is it clear?"),
        Criterion(name="short", question="Is it short?", lowest=0, highest=2),
    ),
)
RESULTS = [
    result(f"case-{n}", {}, {}, report=f"=cmd|' /C calc'!A{n}" if n == 1 else f"report {n}")
    for n in range(4)
]


def _filled(text: str, answers: list[tuple[str, str]]) -> str:
    rows = list(csv.reader(io.StringIO(text)))
    for row, (clear, short) in zip(rows[1:], answers, strict=True):
        row[2], row[3] = clear, short
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue()


def test_a_sheet_tells_no_case_and_runs_no_formula() -> None:
    sheet = hand_out(RESULTS, RUBRIC, seed="s")

    assert "case-" not in sheet.csv
    assert sorted(sheet.key.values()) == [f"case-{n}" for n in range(4)]
    cells = [cell for row in csv.reader(io.StringIO(sheet.csv)) for cell in row]
    assert not [cell for cell in cells if cell.startswith("=")]
    assert hand_out(RESULTS, RUBRIC, seed="s") == sheet
    assert hand_out(RESULTS, RUBRIC, seed="t").key != sheet.key


def test_what_a_person_fills_in_comes_back_to_its_case() -> None:
    sheet = hand_out(RESULTS, RUBRIC, seed="s")
    text = _filled(sheet.csv, [("5", "2"), ("4", "1"), ("", ""), ("1", "0")])

    ratings = take_in(text, RUBRIC, sheet.key, rater="eve", source="s.csv")

    rows = sorted(sheet.key)
    assert [rating.case_id for rating in ratings] == [sheet.key[rows[n]] for n in (0, 1, 3)]
    assert means(ratings) == {"clear": pytest.approx(10 / 3), "short": 1.0}


def test_every_wrong_cell_is_told_with_its_line() -> None:
    sheet = hand_out(RESULTS, RUBRIC, seed="s")
    text = _filled(sheet.csv, [("6", "2"), ("4", "x"), ("", "1"), ("1", "0")])

    with pytest.raises(InvalidDocument) as refused:
        take_in(text, RUBRIC, sheet.key, rater="eve", source="s.csv")

    assert str(refused.value).splitlines() == [
        "s.csv:2: clear: is 6, expected a whole number from 1 to 5",
        "s.csv:3: short: is 'x', expected a whole number from 0 to 2",
        "s.csv:4: clear: is '', expected a whole number from 1 to 5",
    ]


def test_another_sheet_is_refused() -> None:
    with pytest.raises(InvalidDocument, match="has no column 'row'"):
        take_in("a,b\n1,2\n", RUBRIC, {}, rater="eve", source="s.csv")


def test_a_function_scores_each_report_that_there_is() -> None:
    results = [*RESULTS, result("silent", {}, {})]

    async def main() -> list[Rating]:
        return await ask(results, RUBRIC, by_length, rater="model")

    ratings = anyio.run(main)

    assert [rating.case_id for rating in ratings] == [f"case-{n}" for n in range(4)]
    assert ratings[0].scores == {"clear": 1, "short": 1}


def test_a_function_that_leaves_the_scale_is_refused() -> None:
    async def wild(rubric: Rubric, report: str) -> dict[str, int]:
        return {"clear": 9, "short": 1}

    async def main() -> list[Rating]:
        return await ask(RESULTS[:1], RUBRIC, wild, rater="model")

    with pytest.raises(ExceptionGroup) as refused:
        anyio.run(main)
    assert "model: clear: is 9" in str(refused.value.exceptions[0])


def test_two_raters_are_compared_on_what_both_have_scored() -> None:
    def rated(rater: str, scores: list[int]) -> list[Rating]:
        return [
            Rating(case_id=f"c{n}", rater=rater, scores={"clear": score})
            for n, score in enumerate(scores)
        ]

    (found,) = agreed(rated("eve", [1, 2, 3, 4]), rated("bob", [1, 2, 4, 4, 5]))

    assert (found.both, found.exact, found.apart) == (4, 0.75, 0.25)
    assert found.kappa == pytest.approx((0.75 - 4 / 16) / (1 - 4 / 16))
