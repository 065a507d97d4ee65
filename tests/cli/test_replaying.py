"""Accepted changes judged again on their files, through the door."""

import subprocess
from pathlib import Path

import pytest

from tests.support.command_line import Ask

MANIFEST = """\
task_id: fix-answer
objective: Make the answer right
allowed_paths: [app.py]
verification: [grep -q 42 app.py]
budget: {max_attempts: 1}
"""


def _git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.invalid")
    return subprocess.run(
        ["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture
def accepted(ask: Ask, folder: Path) -> Path:
    """A repository in which one change was accepted."""
    (folder / "agent-run.toml").write_text("")
    (folder / "app.py").write_text("ANSWER = 41\n")
    (folder / "task.yaml").write_text(MANIFEST)
    _git(folder, "init", "-q")
    _git(folder, "add", "agent-run.toml", "app.py", "task.yaml")
    _git(folder, "commit", "-q", "-m", "begin")
    done = ask("execute", "task.yaml", "--command", "sed -i s/41/42/ app.py", "--json")
    assert done.code == 0, done.err
    return folder


def test_an_accepted_change_passes_again_on_its_files(ask: Ask, accepted: Path) -> None:
    answer = ask("replay", "fix-answer", "--json")

    (record,) = answer.json["records"]
    assert answer.code == 0
    assert (record["then"], record["now"]) == ("pass", "pass")
    assert {gate["gate"]: gate["how"] for gate in record["gates"]} == {
        "scope": "same",
        "record": "same",
        "commands": "same",
    }


def test_a_new_command_can_refuse_what_was_accepted(ask: Ask, accepted: Path) -> None:
    answer = ask("replay", "fix-answer", "--verification", "grep -q 43 app.py")

    assert answer.code == 4
    assert "grep -q 43 app.py: exit 1" in answer.out
    assert "1 verdict again, 1 differ" in answer.err


def test_the_repository_and_the_ledger_stay_as_they_were(ask: Ask, accepted: Path) -> None:
    refs = _git(accepted, "for-each-ref")
    pages = ask("ledger", "fix-answer", "--json").out

    ask("replay", "fix-answer", "--verification", "touch here; false")

    assert _git(accepted, "for-each-ref") == refs
    assert ask("ledger", "fix-answer", "--json").out == pages
    assert _git(accepted, "status", "--porcelain", "app.py", "here") == ""
    assert list((accepted / ".agent-run" / "work" / "rooms").iterdir()) == []


def test_files_that_are_gone_leave_what_was_found_then(ask: Ask, accepted: Path) -> None:
    _git(accepted, "update-ref", "-d", "refs/agent-run/fix-answer")
    _git(accepted, "reflog", "expire", "--expire=now", "--all")
    _git(accepted, "gc", "-q", "--prune=now")

    answer = ask("replay", "fix-answer", "--json")

    (record,) = answer.json["records"]
    assert answer.code == 0
    assert {gate["gate"]: gate["how"] for gate in record["gates"]} == {
        "scope": "kept",
        "record": "same",
        "commands": "kept",
    }


def test_a_new_command_that_no_file_is_there_for_is_said(ask: Ask, folder: Path) -> None:
    (folder / "agent-run.toml").write_text("")
    (folder / "task.yaml").write_text("task_id: look\nobjective: Look\n")
    said = 'echo \'{"status": "done", "confidence": 0.9}\''
    ask("execute", "task.yaml", "--command", said, "--json")

    answer = ask("replay", "look", "--verification", "false")

    assert answer.code == 0
    assert "--verification was not run" in answer.err
