"""`--dry-run` says what would happen, and nothing happens."""

from pathlib import Path

import pytest

from tests.support.command_line import Ask

DONE = ("--command", "true")


def _everything(folder: Path) -> dict[str, bytes]:
    return {str(one): one.read_bytes() for one in folder.rglob("*") if one.is_file()}


@pytest.fixture
def posted(ask: Ask, folder: Path) -> Path:
    (folder / "plan.yaml").write_text(
        "steps: [{task_id: a, objective: x, executor: x, review: human}]\n"
    )
    (folder / "agent-run.toml").write_text('[executors.x]\ncommand = "true"\n')
    ask("run", "plan.yaml", "--run", "r", "-q")
    ask("post", "repo-142.yaml")
    ask("claim", "repo-142")
    ask("submit", "repo-142", "--claim", "2", "--record", "record.json")
    return folder


def test_execute_says_who_would_work_on_a_file(ask: Ask, folder: Path) -> None:
    before = _everything(folder)

    answer = ask("execute", "repo-142.yaml", *DONE, "--dry-run", "--json")

    assert answer.code == 0
    assert answer.json["task_id"] == "repo-142"
    assert (answer.json["status"], answer.json["dry_run"]) == ("new", True)
    assert _everything(folder) == before


def test_execute_refuses_who_is_not_there_before_anything_is_claimed(
    ask: Ask, folder: Path
) -> None:
    answer = ask("execute", "repo-142.yaml", "--executor", "nobody", "--dry-run")

    assert answer.code == 2
    assert "'nobody'" in answer.err


def test_verify_says_what_would_be_judged(ask: Ask, posted: Path) -> None:
    answer = ask("verify", "repo-142", "--dry-run")

    assert answer.code == 0
    assert "would judge claim 2 of repo-142 and run 1 command" in answer.out
    assert ask("show", "repo-142", "--json").json["status"] == "submitted"


def test_verify_refuses_what_was_not_handed_in(ask: Ask, posted: Path) -> None:
    answer = ask("verify", "r/a", "--dry-run")

    assert "expected it to be submitted" in answer.err


def test_resume_says_what_stands_open(ask: Ask, posted: Path) -> None:
    pages = ask("ledger", "--json").out

    answer = ask("resume", "r", "--dry-run", "--json")

    assert (answer.code, answer.json["open"]) == (0, {"a": "escalated"})
    assert ask("ledger", "--json").out == pages
