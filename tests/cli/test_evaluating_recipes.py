"""Shipped recipes by their names: the drafts of a dataset are checked and scored."""

import json
from pathlib import Path

import pytest

from tests.support.command_line import Ask

CLEAN = "# A kettle\n\nIt boils a litre of water in four minutes.\n"
FLAWED = "# A letter\n\nWe recieved it. Read [more](nowhere.md).\n"


def line(name: str, given: object, **steps: str) -> str:
    expected = {"steps": {step.replace("_", "-"): outcome for step, outcome in steps.items()}}
    return json.dumps({"case_id": name, "input": given, "expected": expected}) + "\n"


@pytest.fixture
def drafts(folder: Path) -> Path:
    (folder / "data").mkdir()
    (folder / "data" / "letter.md").write_text(FLAWED)
    (folder / "data" / "checklist.yaml").write_text("- Check spelling\n- Check every link\n")
    own = {"draft": "letter.md", "checklist": "checklist.yaml", "offline": True}
    (folder / "data" / "own.jsonl").write_text(
        line("letter", own, spelling_check="fail", link_check="fail")
    )
    (folder / "data" / "docs.jsonl").write_text(
        line("letter", "letter.md", spelling="fail", links="fail")
        + line("kettle", {"text": CLEAN}, spelling="pass", links="pass", voice="pass")
    )
    return folder


def run(recipe: str, dataset: str = "docs", out: str = "one") -> tuple[str, ...]:
    return ("eval", "run", f"data/{dataset}.jsonl", "--recipe", recipe, "--out", out, "--json")


@pytest.mark.slow
def test_drafts_are_measured_by_the_name_of_a_recipe(drafts: Path, start: Ask) -> None:
    docs = start(*run("documentation-review"))
    own = start(*run("qa", "own", "two"))
    mail = start(*run("email-qa", out="three"))

    assert docs.json["scores"]["step_accuracy"]["value"] == 1, docs.err
    assert own.json["scores"]["step_accuracy"]["value"] == 1, own.err
    assert mail.json["scores"]["errors"]["value"] == 0, mail.err
    assert not (drafts / ".agent-run").exists()


def test_a_draft_that_changed_is_measured_again_and_no_other(drafts: Path, ask: Ask) -> None:
    ask(*run("documentation-review"))
    (drafts / "data" / "letter.md").write_text(CLEAN)

    again = ask(*run("documentation-review"))

    assert "letter pass" in again.err
    assert "kettle" not in again.err
    assert again.json["scores"]["recall"]["value"] == 0
    assert ask(*run("documentation-review")).err == ""


@pytest.mark.parametrize(
    ("recipe", "dataset", "said"),
    [
        ("qaa", "docs", "recipe 'qaa' is not known, expected code-fix, documentation-review"),
        ("nowhere:f", "docs", "recipe 'nowhere:f' cannot be loaded"),
        ("qa", "docs", "case 'kettle': it names no checklist, which recipe 'qa' needs"),
        ("email-qa", "own", "case 'letter': it names a checklist, and recipe 'email-qa'"),
        ("code-fix", "docs", "case 'kettle': the input of a case of recipe 'code-fix' is a"),
        ("qa", "wrong", "case 'a': its input is wrong at drat, expected the name of a draft"),
        ("qa", "wrong", "case 'b': its input is wrong, expected the name of a draft"),
        ("qa", "wrong", "case 'c': its input names no draft"),
        ("email-qa", "wrong", "case 'd': draft 'absent.md' is not there"),
    ],
)
def test_what_cannot_be_measured_is_said_before_anything_begins(
    drafts: Path, ask: Ask, recipe: str, dataset: str, said: str
) -> None:
    wrong: dict[str, object] = {"a": {"drat": "x"}, "b": 5, "c": {}, "d": "absent.md"}
    (drafts / "data" / "wrong.jsonl").write_text("".join(map(line, wrong, wrong.values())))

    answer = ask(*run(recipe, dataset))

    assert answer.code == 2
    assert said in answer.err
    assert not (drafts / "one" / "results.jsonl").exists()


def test_a_function_beside_the_configuration_needs_no_installation(
    drafts: Path, start: Ask
) -> None:
    (drafts / "agent-run.toml").write_text('[executors.echo]\nfunction = "own_plans:echo"\n')
    (drafts / "own_plans.py").write_text(
        "from agent_run import Plan, Record, executor\n"
        "@executor('echo')\n"
        "def echo(brief):\n    return Record(status='passed', confidence=1.0)\n"
        "def one(given):\n"
        "    step = {'task_id': 'links', 'objective': 'x', 'executor': 'echo'}\n"
        "    return Plan.model_validate({'steps': [step]})\n"
    )

    answer = start(*run("own_plans:one"))

    assert answer.json["scores"]["errors"]["value"] == 0, answer.err
