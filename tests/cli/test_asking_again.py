"""Recorded questions put to another model, through the door."""

import fcntl
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import AGENTS_RECORD, Ask

RECORD = {**AGENTS_RECORD, "commands_run": []}
EDIT = {"name": "edit", "arguments": {"path": "app.py", "old": "41", "new": "42"}}
MANIFEST = """\
task_id: fix-answer
objective: Make the answer right
allowed_paths: [app.py]
executor: agent:scripted:careful.json
verification: [grep -q 42 app.py]
budget: {max_tokens: 200000, max_attempts: 1}
"""


def _script(folder: Path, name: str, *calls: dict[str, Any]) -> str:
    turns = [{"calls": [call]} for call in calls]
    (folder / name).write_text(json.dumps(turns))
    return f"scripted:{name}"


def _ending(**changed: str) -> dict[str, Any]:
    return {"name": "final_result", "arguments": {**RECORD, **changed}}


@pytest.fixture
def run(ask: Ask, folder: Path) -> str:
    (folder / "agent-run.toml").write_text("")
    (folder / "app.py").write_text("ANSWER = 41\n")
    (folder / "task.yaml").write_text(MANIFEST)
    _script(folder, "careful.json", EDIT, _ending())
    done = ask("execute", "task.yaml", "--json")
    assert done.code == 0, done.err
    return "fix-answer"


def test_a_model_that_chooses_the_same_in_other_words_is_the_same(
    ask: Ask, folder: Path, run: str
) -> None:
    other = _script(folder, "other.json", EDIT, _ending(notes="made it 42"))

    answer = ask("replay", run, "--model", other, "--min", "same=1", "--json")

    assert answer.code == 0
    assert [call["outcome"] for call in answer.json["calls"]] == ["same", "same"]
    assert "2/2" in answer.err


def test_a_limit_that_is_missed_fails_the_build_and_names_the_field(
    ask: Ask, folder: Path, run: str
) -> None:
    unsure = _script(folder, "unsure.json", EDIT, _ending(next_action="escalate"))

    answer = ask("replay", run, "--model", unsure, "--min", "same=0.9")

    assert answer.code == 1
    assert "final_result.next_action" in answer.out
    assert "same is 0.5, wanted min 0.9" in answer.err


def test_questions_over_the_budget_are_not_asked(ask: Ask, folder: Path, run: str) -> None:
    other = _script(folder, "other.json", EDIT, _ending())

    answer = ask("replay", run, "--model", other, "--max-tokens", "10", "--json")

    assert answer.code == 6
    assert {call["outcome"] for call in answer.json["calls"]} == {"not asked"}
    assert "2 questions not asked: the budget does not allow it" in answer.err


def test_answers_are_kept_and_not_paid_for_twice(ask: Ask, folder: Path, run: str) -> None:
    other = _script(folder, "other.json", EDIT, _ending())
    asked = ("replay", run, "--model", other, "--keep", "kept.jsonl", "--json")
    first = ask(*asked)
    kept = (folder / "kept.jsonl").read_text()

    again = ask(*asked)

    assert (folder / "kept.jsonl").read_text() == kept
    assert [call["seconds"] for call in again.json["calls"]] == [None, None]
    assert [call["tokens"] for call in again.json["calls"]] == [
        call["tokens"] for call in first.json["calls"]
    ]


def test_two_replays_do_not_write_to_one_file(ask: Ask, folder: Path, run: str) -> None:
    other = _script(folder, "other.json", EDIT, _ending())
    with (folder / "kept.jsonl").open("wb") as busy:
        fcntl.flock(busy, fcntl.LOCK_EX)

        answer = ask("replay", run, "--model", other, "--keep", "kept.jsonl")

    assert answer.code == 2
    assert "another process is keeping answers in 'kept.jsonl'" in answer.err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--model", "nonsense"), "model 'nonsense' has no provider"),
        (("--min", "same=1"), "--min says something about --model, which is missing"),
        (("--model", "test", "--min", "beauty=1"), "no score 'beauty'"),
        (("--model", "test", "--min-confidence", "1"), "only one of them"),
        (("--model", "test", "--keep", "app.py/x"), "cannot be written"),
    ],
)
def test_a_wish_that_cannot_be_met_is_one_sentence(
    ask: Ask, run: str, flags: tuple[str, ...], said: str
) -> None:
    answer = ask("replay", run, *flags)

    assert answer.code == 2
    assert said in answer.err
    assert len(answer.err.splitlines()) == 1
