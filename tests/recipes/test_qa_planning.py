"""What is planned for a draft: one plan each, in order, on a budget, and never for no draft."""

import os
from pathlib import Path

import pytest

from agent_run.errors import InvalidDocument
from agent_run.ledger.metrics.budgets import budgets
from agent_run.ledger.metrics.gathering import gather
from agent_run.ledger.metrics.report import measure
from agent_run.recipes.qa.running import plans_for
from tests.recipes.support import CLEAN, FLAWED, FOUR, check, draft, opened, outcomes, wanted

TIGHT = {
    "steps": [
        {"id": "tone", "goal": "brand tone", "time_budget_sec": 20},
        {"id": "links", "goal": "every link", "time_budget_sec": 60},
        {"id": "spell", "goal": "spelling", "time_budget_sec": 90},
        {"id": "comp", "goal": "compliance phrases", "time_budget_sec": 120},
    ],
    "overall_budget": {"max_attempts": 2, "max_tokens": 6_000, "time_budget_sec": 240},
}


def test_two_spellings_of_one_draft_are_one_draft(tmp_path: Path) -> None:
    name = draft(tmp_path, "a.md", CLEAN)
    (tmp_path / "link.md").symlink_to(name)
    other = str(tmp_path / "x" / ".." / "a.md")
    (tmp_path / "x").mkdir()

    with opened(tmp_path) as desk:
        report = check(
            tmp_path, desk, [name, other, str(tmp_path / "link.md")], wanted(tmp_path)
        )

    assert [one.name for one in report.drafts] == [name]


def test_a_folder_is_no_draft(tmp_path: Path) -> None:
    with pytest.raises(InvalidDocument, match="is a folder, expected a file"):
        plans_for([str(tmp_path)], wanted(tmp_path))


def test_a_pipe_is_no_draft(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")

    with pytest.raises(InvalidDocument, match="is not a regular file"):
        plans_for([str(tmp_path / "pipe.md")], wanted(tmp_path))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_no_draft(tmp_path: Path) -> None:
    name = draft(tmp_path, "a.md", CLEAN)
    Path(name).chmod(0)

    with pytest.raises(InvalidDocument, match=r"cannot be read: Permission denied"):
        plans_for([name], wanted(tmp_path))


def test_a_name_that_is_not_utf_8_is_refused_in_one_sentence(tmp_path: Path) -> None:
    name = os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff.md")
    Path(name).write_text(CLEAN)

    with pytest.raises(InvalidDocument, match="has a name that is not UTF-8"):
        plans_for([name], wanted(tmp_path))


def test_every_task_says_which_draft_it_is_about(tmp_path: Path) -> None:
    name = draft(tmp_path, "a.md", CLEAN)

    plan = plans_for([name], wanted(tmp_path))[0].plan

    assert {step.labels["about"] for step in (*plan.steps, *plan.final)} == {name}


def test_a_tight_budget_is_used_in_the_order_of_the_checklist(tmp_path: Path) -> None:
    drafts = [draft(tmp_path, "clean.md", CLEAN)]

    with opened(tmp_path) as desk:
        report = check(tmp_path, desk, drafts, wanted(tmp_path, TIGHT))

    assert outcomes(report) == {
        "tone": "passed",
        "links": "passed",
        "spell": "person",
        "comp": "person",
    }


def test_metrics_see_the_overall_budget_and_the_final_region_still_runs(tmp_path: Path) -> None:
    drafts = [draft(tmp_path, "clean.md", CLEAN)]

    with opened(tmp_path) as desk:
        report = check(tmp_path, desk, drafts, wanted(tmp_path, TIGHT))
        run = gather(desk.pages(report.drafts[0].run_id))

    assert run is not None
    line = budgets([run]).runs[0]
    assert (line.attempts, line.limits.attempts) == (4, 2)
    assert line.over == ("attempts",)
    assert "overall attempts: 4 > 2" in report.drafts[0].over
    assert (tmp_path / "state" / "qa" / f"{run.run_id}.json").exists()


def test_a_run_within_its_budget_is_not_over_it_by_the_work_of_the_recipe(
    tmp_path: Path,
) -> None:
    four = {"steps": list(FOUR), "overall_budget": {"max_attempts": 4}}
    drafts = [draft(tmp_path, "flawed.md", FLAWED)]

    with opened(tmp_path) as desk:
        report = check(tmp_path, desk, drafts, wanted(tmp_path, four))
        run = gather(desk.pages(report.drafts[0].run_id))

    assert run is not None
    assert budgets([run]).runs[0].over == ()
    escalated = measure([run]).people.escalated
    assert (escalated.hits, escalated.of) == (3, 4)
