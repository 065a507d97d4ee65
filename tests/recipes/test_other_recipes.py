"""Documentation review, customer e-mail, code fixes: each does what its file describes."""

import re
from pathlib import Path

import pytest

from agent_run.cli.work.recipes import NAMES
from agent_run.errors import ContractError
from agent_run.recipes import documentation_review, email_qa
from agent_run.recipes.catalogue import RECIPES, PlanRecipe
from agent_run.recipes.code_fix import code_fix
from agent_run.recipes.qa.planning import Wanted
from agent_run.recipes.qa.rules import Rules
from agent_run.wiring.opening import wall_clock
from tests.recipes.support import check, draft, opened, outcomes

GOOD_MAIL = """\
Hello Ms Tamm,

The parcel left our store on Monday. The carrier expects to bring it on Thursday.

Kind regards,
Ruta
"""
BAD_MAIL = """\
You should have read the terms. The parcel will definitely arrive on Thursday, and we
recieved your letter.
"""


def test_the_names_that_can_be_run_are_the_recipes_there_are() -> None:
    assert set(NAMES) == set(RECIPES)


def test_a_page_with_a_dead_link_and_a_slip_fails_its_review(tmp_path: Path) -> None:
    pages = [
        draft(tmp_path, "index.md", "# Start\n\nRead [the guide](guide.md#begin).\n"),
        draft(tmp_path, "guide.md", "# Begin\n\nSee [more](more.md), which we recieved.\n"),
    ]
    rules = Rules(offline=True)
    today = wall_clock().date()
    wanted = Wanted(documentation_review.CHECKLIST, tmp_path, rules, today)

    with opened(tmp_path) as desk:
        report = check(tmp_path, desk, pages, wanted)

    assert [page.status for page in report.drafts] == ["pass", "fail"]
    assert outcomes(report) == {"links": "failed", "spelling": "failed", "voice": "passed"}


def test_a_mail_is_checked_and_a_person_says_whether_it_answers(tmp_path: Path) -> None:
    mails = [draft(tmp_path, "good.txt", GOOD_MAIL), draft(tmp_path, "bad.txt", BAD_MAIL)]
    wanted = Wanted(email_qa.CHECKLIST, tmp_path, email_qa.RULES, wall_clock().date())

    with opened(tmp_path) as desk:
        report = check(tmp_path, desk, mails, wanted)

    good, bad = report.drafts
    assert good.status == "person"
    assert [step.step.id for step in good.steps if step.outcome == "person"] == ["answered"]
    assert bad.status == "fail"
    promises = next(step for step in bad.steps if step.step.id == "promises")
    said = {remark["message"] for remark in promises.remarks}
    assert "This blames the customer" in said
    assert "An answer begins with a greeting" in said


def test_each_fix_must_keep_what_was_mended_before_it() -> None:
    plan = code_fix(["pytest tests/a", "pytest tests/b"], ["src/**"])

    first, second = plan.manifests()
    assert [check.run for check in second.verification] == ["pytest tests/a", "pytest tests/b"]
    assert second.needs == (first.task_id,)
    assert "tests/**" in first.protected_paths
    assert first.review == "human-if-risky"


def test_a_code_fix_without_a_path_is_refused() -> None:
    recipe = RECIPES["code-fix"]
    assert isinstance(recipe, PlanRecipe)

    with pytest.raises(ContractError, match="takes the command that fails"):
        recipe.plan(["pytest"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("", "x.py"), "the command that fails is empty"),
        (("x" * 4_000, "x.py"), "the command has 4000 characters, expected at most 3900"),
        (("false", "x" * 1_001), "a path is 1001 characters long, expected at most 1000"),
        (("false", ""), "a path is empty"),
        (("false", "../x.py"), "path '../x.py' has a part that is empty, '.' or '..'"),
        (("false", "/etc/passwd"), "path '/etc/passwd' is not a relative path below the root"),
    ],
)
def test_a_code_fix_that_cannot_be_is_refused_in_one_sentence(
    arguments: tuple[str, ...], said: str
) -> None:
    recipe = RECIPES["code-fix"]
    assert isinstance(recipe, PlanRecipe)

    with pytest.raises(ContractError, match=re.escape(said)):
        recipe.plan(arguments)
