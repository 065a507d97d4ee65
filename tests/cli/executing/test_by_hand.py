"""A person as executor: claim, a copy to work in, submit, verify."""

from pathlib import Path

import pytest

from tests.cli.executing.conftest import Git, Write
from tests.support.command_line import Ask


@pytest.fixture
def copy(ask: Ask, manifest: Write) -> Path:
    """The copy that belongs to claim 2 on task `t1`."""
    ask("post", manifest())
    ask("claim", "t1", "--owner", "grace")
    answer = ask("checkout", "t1", "--claim", "2")
    assert answer.code == 0
    return Path(answer.out.strip())


def submit(ask: Ask, project: Path, *changed: str) -> None:
    named = ", ".join(f'"{name}"' for name in changed)
    (project / "r.json").write_text(f'{{"task_id": "t1", "files_changed": [{named}]}}')
    assert ask("submit", "t1", "--claim", "2", "--record", "r.json").code == 0


def test_work_by_hand_is_judged_like_any_other(
    ask: Ask, copy: Path, project: Path, git: Git
) -> None:
    (copy / "a.py").write_text("x = 2\n")
    submit(ask, project, "a.py")

    answer = ask("verify", "t1", "--json")

    assert (answer.code, answer.json["status"]) == (0, "accepted")
    assert answer.json["observed"]["files_changed"] == ["a.py"]
    assert answer.json["observed"]["executor"] == "by hand"
    assert git("show", "refs/agent-run/t1:a.py") == "x = 2"
    assert (project / "a.py").read_text() == "x = 1\n"
    assert "+x = 2" in ask("show", "t1", "--diff").out


def test_what_changes_after_submit_does_not_count(
    ask: Ask, copy: Path, project: Path, git: Git
) -> None:
    (copy / "a.py").write_text("x = 2\n")
    submit(ask, project, "a.py")
    (copy / "a.py").write_text("x = 666\n")

    assert ask("verify", "t1").code == 0
    assert git("show", "refs/agent-run/t1:a.py") == "x = 2"


def test_a_hand_is_held_to_the_scope(ask: Ask, copy: Path, project: Path) -> None:
    (copy / "a.py").write_text("x = 2\n")
    (copy / "b.py").write_text("y = 2\n")
    submit(ask, project, "a.py")

    answer = ask("verify", "t1", "--json")

    assert answer.code == 4
    assert answer.json["verdict"]["findings"][0]["reason"] == "out_of_scope"


def test_a_copy_is_for_the_owner_of_the_claim_only(ask: Ask, copy: Path) -> None:
    assert copy.is_dir()

    again = ask("checkout", "t1", "--claim", "2")
    other = ask("checkout", "t1", "--claim", "7")

    assert (again.code, other.code) == (3, 5)
    assert "has a checkout that is in use" in again.err
    assert "claim 7 on task 't1' is not held" in other.err


def test_files_that_were_only_talked_about_are_not_accepted(
    ask: Ask, manifest: Write, project: Path
) -> None:
    ask("post", manifest())
    ask("claim", "t1")
    submit(ask, project, "a.py")

    answer = ask("verify", "t1", "--json")

    assert answer.code in {4, 7}
    assert answer.json["status"] != "accepted"
    assert answer.json["verdict"]["passed"] is False


def test_a_task_without_files_needs_only_its_record(
    ask: Ask, manifest: Write, project: Path
) -> None:
    ask("post", manifest(allowed_paths=[], verification=[]))
    ask("claim", "t1")
    submit(ask, project)

    answer = ask("verify", "t1", "--json")

    assert (answer.code, answer.json["status"]) == (0, "accepted")
    assert answer.json["result"] is None


def test_execute_first_judges_what_was_handed_in(ask: Ask, copy: Path, project: Path) -> None:
    (copy / "a.py").write_text("x = 2\n")
    submit(ask, project, "a.py")

    answer = ask("execute", "t1", "--command", "false", "--json")

    assert (answer.code, answer.json["status"], answer.json["attempt"]) == (0, "accepted", 1)
