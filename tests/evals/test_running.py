"""Evaluations are resumed: what is known is not done again, what broke is."""

from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from agent_run.errors import InvalidDocument, Unfit
from agent_run.evals.cases import EvalCase
from agent_run.evals.results import FILE, CaseResult, read_results
from agent_run.evals.running import Errand, Evaluation, evaluate
from agent_run.ledger.pages import Page
from tests.support.books import Book
from tests.support.stories import PASSED, claim, judge, post, submit

CASES = [EvalCase(case_id=f"c{n}", input=n) for n in range(5)]


class Conducting:
    """Plays a run for each case, and breaks where it is told to."""

    def __init__(self, breaks: frozenset[str] = frozenset()) -> None:
        self.asked: list[str] = []
        self.breaks = breaks
        self.at_once = self.most = 0

    async def __call__(self, errand: Errand) -> Sequence[Page]:
        self.asked.append(errand.case.case_id)
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await anyio.lowlevel.checkpoint()
        self.at_once -= 1
        if errand.case.case_id in self.breaks:
            msg = "no such machine"
            raise Unfit(msg)
        book = Book(errand.run_id).tell(post("tone"), claim(task_id="tone"))
        book.tell(submit(2, "tone", status="passed", output="fine"), judge(PASSED, "tone"))
        return book.pages


def _evaluate(
    folder: Path, conduct: Conducting, *, pipeline: str = "one", at_once: int = 2
) -> tuple[list[CaseResult], list[int]]:
    told: list[int] = []

    async def main() -> list[CaseResult]:
        evaluation = Evaluation(folder, {"plan": pipeline}, conduct, at_once)
        return await evaluate(evaluation, CASES, lambda done, of, result: told.append(done))

    return anyio.run(main), told


def test_every_case_is_put_through_and_told_as_it_ends(tmp_path: Path) -> None:
    conduct = Conducting()

    results, told = _evaluate(tmp_path, conduct)

    assert [one.case.case_id for one in results] == [case.case_id for case in CASES]
    assert {one.outcome for one in results} == {"pass"}
    assert (results[0].steps, results[0].report) == ({"tone": "pass"}, "fine")
    assert told == [1, 2, 3, 4, 5]
    assert conduct.most == 2


def test_a_second_time_nothing_is_done_again(tmp_path: Path) -> None:
    first, _ = _evaluate(tmp_path, Conducting())
    again = Conducting()

    second, told = _evaluate(tmp_path, again)

    assert (again.asked, told) == ([], [])
    assert second == first


def test_what_broke_is_written_down_and_tried_again(tmp_path: Path) -> None:
    broken, _ = _evaluate(tmp_path, Conducting(frozenset({"c2"})))
    again = Conducting()

    mended, _ = _evaluate(tmp_path, again)

    assert (broken[2].outcome, broken[2].note) == ("error", "no such machine")
    assert again.asked == ["c2"]
    assert mended[2].outcome == "pass"


def test_another_pipeline_does_everything_again(tmp_path: Path) -> None:
    _evaluate(tmp_path, Conducting())
    other = Conducting()

    _evaluate(tmp_path, other, pipeline="two")

    assert sorted(other.asked) == [case.case_id for case in CASES]


def test_a_line_cut_short_by_a_crash_is_done_again(tmp_path: Path) -> None:
    _evaluate(tmp_path, Conducting())
    file = tmp_path / FILE
    file.write_bytes(file.read_bytes()[:-40])
    again = Conducting()

    _evaluate(tmp_path, again)

    assert len(again.asked) == 1
    assert len(read_results(tmp_path)) == 5


def test_a_broken_line_in_the_middle_is_refused(tmp_path: Path) -> None:
    _evaluate(tmp_path, Conducting())
    file = tmp_path / FILE
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([lines[0], "{}\n", *lines[1:]]))

    with pytest.raises(InvalidDocument, match=r"results\.jsonl:2: is no result"):
        read_results(tmp_path)
