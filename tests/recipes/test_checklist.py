"""Checklists: every way of writing one, and what is refused."""

from pathlib import Path

import pytest

from agent_run.errors import InvalidDocument
from agent_run.recipes.qa.checklist import Checklist, known_checks, read_checklist
from agent_run.recipes.qa.rules import Rules, rules_for


@pytest.mark.parametrize(
    ("goal", "checks"),
    [
        ("Verify tone matches brand voice", ("tone",)),
        ("Check compliance phrases", ("compliance",)),
        ("No broken links", ("links",)),
        ("No typos", ("spelling",)),
        ("Brand tone and every link", ("tone", "links")),
        ("Would a child understand it", ()),
    ],
)
def test_the_words_of_a_goal_say_who_can_do_it(goal: str, checks: tuple[str, ...]) -> None:
    assert known_checks(goal) == checks


def test_a_list_of_goals_is_a_checklist_with_the_usual_limits() -> None:
    checklist = Checklist.model_validate(["Check brand tone", "Check links", "Is it true"])

    assert [step.id for step in checklist.steps] == ["tone-check", "link-check", "goal-3"]
    assert checklist.steps[0].max_attempts == 2
    assert checklist.overall_budget.max_tokens == 6_000


def test_two_goals_for_one_checker_have_two_names() -> None:
    checklist = Checklist.model_validate(["Check links of the text", "Check links again"])

    assert [step.id for step in checklist.steps] == ["link-check", "goal-2"]


def test_a_checklist_that_is_none_is_refused_with_every_fault(tmp_path: Path) -> None:
    place = tmp_path / "checklist.yaml"
    place.write_text("steps:\n  - {id: a, goal: x, max_attempts: 0, colour: red}\n")

    with pytest.raises(InvalidDocument) as refused:
        read_checklist(place)

    assert "max_attempts" in str(refused.value)
    assert "colour" in str(refused.value)


@pytest.mark.parametrize("name", ["qa.save", "same"])
def test_a_name_stands_once_and_is_not_one_of_ours(tmp_path: Path, name: str) -> None:
    place = tmp_path / "checklist.yaml"
    place.write_text(f"steps:\n  - {{id: {name}, goal: x}}\n  - {{id: same, goal: y}}\n")

    with pytest.raises(InvalidDocument, match="stands twice"):
        read_checklist(place)


def test_a_rule_file_named_in_the_context_is_gone_by(tmp_path: Path) -> None:
    (tmp_path / "lexicon.yaml").write_text("version: 1\n")
    step = Checklist.model_validate(
        {"steps": [{"id": "a", "goal": "legal phrases", "context": "Use lexicon.yaml."}]}
    ).steps[0]

    found = rules_for(step, tmp_path, Rules())

    assert found.lexicon == str((tmp_path / "lexicon.yaml").resolve())
    assert rules_for(step, tmp_path, Rules(lexicon="given")).lexicon == "given"


def test_a_rule_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    step = Checklist.model_validate(
        {"steps": [{"id": "a", "goal": "legal phrases", "context": "Use lexicon.yaml."}]}
    ).steps[0]

    with pytest.raises(InvalidDocument, match=r"step 'a' names 'lexicon.yaml'"):
        rules_for(step, tmp_path, Rules())
