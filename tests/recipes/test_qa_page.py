"""The QA page: the verdict first, what to mend and how to decide, whatever a draft says."""

from pathlib import Path
from typing import Any

import pytest

from agent_run.contract.verdict import Finding, Verdict
from agent_run.ledger.commands import Decide
from agent_run.recipes.qa.example import example_folder, qa_act
from agent_run.recipes.qa.page import to_html
from agent_run.recipes.qa.reporting import Report
from tests.recipes.support import CLEAN, FLAWED, check, draft, opened, wanted
from tests.support.page_reading import PageReader
from tests.support.page_samples import HOSTILE, LONG


@pytest.fixture
def two(tmp_path: Path) -> Report:
    """One draft that passes and one that fails."""
    drafts = [draft(tmp_path, "clean.md", CLEAN), draft(tmp_path, "flawed.md", FLAWED)]
    with opened(tmp_path) as desk:
        return check(tmp_path, desk, drafts, wanted(tmp_path))


def test_the_verdict_comes_first_and_then_how_many_drafts_have_which(two: Report) -> None:
    read = PageReader(to_html(two, None))

    assert read.faults == []
    assert read.text.index("Content QA: FAIL agent-run") == 0
    for told in ("1 fail of 2 drafts", "0 need a person of 2 drafts", "1 pass of 2 drafts"):
        assert told in read.text


def test_colour_is_never_the_only_sign(two: Report) -> None:
    text = PageReader(to_html(two, None)).text

    assert "flawed.md FAIL tone-check: FAILED link-check: FAILED spelling-check: FAILED" in text
    assert "clean.md pass 4 of 4 checks passed" in text


def test_the_folder_is_said_once_and_not_in_every_name(two: Report, tmp_path: Path) -> None:
    text = PageReader(to_html(two, None)).text

    assert text.count(str(tmp_path)) == 1
    assert f"Folder: {tmp_path} " in text


def test_a_remark_stands_with_its_place_its_words_and_what_is_better(two: Report) -> None:
    page = to_html(two, None)

    assert '<th scope="row" class="n">3:4</th>' in page
    assert "recieved" in page
    assert "received" in page


def test_what_waits_has_the_command_that_decides_it(two: Report) -> None:
    page = to_html(two, None)
    run_id = two.drafts[1].run_id

    assert "3 checks stand in the inbox" in page
    assert f"<code>agent-run review {run_id}/link-check --approve</code>" in page
    assert f"<code>agent-run resume {run_id}</code> writes this report again" in page
    assert "compliance-check --approve" not in page


def test_checks_that_passed_are_folded_away(two: Report) -> None:
    page = to_html(two, None)

    assert "<details><summary>4 checks passed</summary>" in page
    assert "<details><summary>1 check passed</summary>" in page


def test_what_a_person_decided_stands_open_with_their_words(tmp_path: Path) -> None:
    drafts = [draft(tmp_path, "clean.md", CLEAN)]
    asked = wanted(tmp_path, ("Would a child understand it",))
    said = Finding(
        gate="review", outcome="fail", reason="review_rejected", evidence="too <b>dry"
    )
    with opened(tmp_path) as desk:
        run_id = check(tmp_path, desk, drafts, asked).drafts[0].run_id
        decided: Any = Decide(task_id="goal-1", actor="ada", verdict=Verdict(findings=(said,)))
        desk.handle(run_id, decided)
        report = check(tmp_path, desk, drafts, asked)

    read = PageReader(to_html(report, None))

    assert read.faults == []
    assert "by ada" in read.text
    assert "too <b>dry" in read.text
    assert "agent-run review" not in read.text


def test_a_hostile_draft_is_only_words(tmp_path: Path) -> None:
    text = f"# {LONG}\n\n{HOSTILE} recieved [a](no/{LONG}.md) the the. 😀\n".replace("\x00", "")
    drafts = [draft(tmp_path, f"<b>{'x' * 200}\u202e.md", text)]
    goals = (f"Is it true {LONG[:3_000]} {HOSTILE[:60]}", "links", "spelling", "brand tone")

    with opened(tmp_path) as desk:
        report = check(tmp_path, desk, drafts, wanted(tmp_path, goals, reflect=True))
    page = to_html(report, None)

    assert PageReader(page).faults == []
    assert "<script" not in page
    assert "\u202e" not in page
    assert "\x1b" not in page


def test_the_score_is_a_table_of_its_own(tmp_path: Path) -> None:
    folder = example_folder()
    assert folder is not None
    with opened(tmp_path) as desk:
        act = qa_act(desk, tmp_path / "state", folder)

    read = PageReader(to_html(act.report, act.score))

    assert read.faults == []
    assert "precision 1.000 11 of 11 failed rightly" in read.text
    assert read.headings.count(2) == 10


def test_no_draft_at_all_is_still_a_page() -> None:
    assert PageReader(to_html(Report(()), None)).faults == []
