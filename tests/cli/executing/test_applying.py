"""`apply`, `rollback` and `cancel` on real repositories."""

import json
from pathlib import Path

import pytest

from tests.cli.executing.conftest import RIGHT, Git, Write, saying
from tests.support.command_line import Ask


@pytest.fixture
def accepted(ask: Ask, manifest: Write) -> None:
    """Task `t1`, accepted and not yet applied."""
    assert ask("execute", manifest(), "--command", RIGHT).code == 0


@pytest.mark.usefixtures("accepted")
def test_nothing_is_applied_by_itself(project: Path, git: Git) -> None:
    assert (project / "a.py").read_text() == "x = 1\n"
    assert git("status", "--porcelain") == ""


@pytest.mark.usefixtures("accepted")
def test_a_change_comes_to_the_branch_and_goes_again(
    start: Ask, project: Path, git: Git
) -> None:
    applied = start("apply", "t1", "--json")
    assert (project / "a.py").read_text() == "x = 2\n"
    noted = start("show", "t1", "--json").json["applied"]

    back = start("rollback", "t1")

    assert (applied.code, applied.json["branch"], applied.json["paths"]) == (
        0,
        "main",
        ["a.py"],
    )
    assert noted == applied.json["commit"]
    assert back.code == 0
    assert back.out.startswith("[rollback] task=t1 rolled back on main as ")
    assert (project / "a.py").read_text() == "x = 1\n"
    assert git("status", "--porcelain") == ""
    assert git("log", "--format=%s").splitlines()[0] == 'Revert "Set x to 2"'
    assert start("show", "t1", "--json").json["applied"] is None
    assert start("ledger", "verify").code == 0


@pytest.mark.usefixtures("accepted")
def test_uncommitted_work_is_never_touched(ask: Ask, project: Path) -> None:
    (project / "a.py").write_text("x = 1  # mine\n")

    answer = ask("apply", "t1")

    assert answer.code == 1
    assert "a.py" in answer.err
    assert "not committed" in answer.err
    assert (project / "a.py").read_text() == "x = 1  # mine\n"
    assert ask("show", "t1", "--json").json["applied"] is None


@pytest.mark.usefixtures("accepted")
def test_a_change_that_is_there_is_not_applied_twice(ask: Ask) -> None:
    assert ask("apply", "t1").code == 0

    again = ask("apply", "t1")

    assert again.code == 1
    assert "on this branch already" in again.err


@pytest.mark.usefixtures("accepted")
def test_a_dry_run_changes_nothing(ask: Ask, project: Path) -> None:
    answer = ask("apply", "t1", "--dry-run")

    assert answer.code == 0
    assert (project / "a.py").read_text() == "x = 1\n"
    assert ask("rollback", "t1").code == 1


def test_only_accepted_work_is_applied(ask: Ask, manifest: Write) -> None:
    ask("post", manifest())

    answer = ask("apply", "t1")

    assert answer.code == 1
    assert "task 't1' is ready, expected it to be accepted" in answer.err
    assert ask("apply", "nothing").code == 2


def test_a_cancelled_task_is_not_worked_on(ask: Ask, manifest: Write) -> None:
    file = manifest()
    ask("post", file)

    rehearsed = ask("cancel", "t1", "--dry-run")
    cancelled = ask("cancel", "t1", "--reason", "changed my mind")
    after = ask("execute", file, "--command", RIGHT, "--json")

    assert (rehearsed.code, cancelled.code) == (0, 0)
    assert (after.code, after.json["status"]) == (1, "cancelled")
    assert "changed my mind" in after.err
    assert ask("cancel", "t1").code == 1


def test_a_finished_run_is_not_cancelled_and_its_resume_is_not_harmed(
    ask: Ask, project: Path
) -> None:
    steps = [{"task_id": "s1", "objective": "one"}, {"task_id": "s2", "objective": "two"}]
    (project / "p.json").write_text(json.dumps({"plan_id": "p", "steps": steps}))
    says = saying("true", status="done")
    assert ask("run", "p.json", "--command", says).code == 0
    before = ask("ledger", "--jsonl").out

    answer = ask("cancel", "p/")

    assert (answer.code, answer.out) == (
        0,
        "[cancel]  run=p is finished: nothing is left to cancel\n",
    )
    assert ask("cancel", "p/", "--json").json["cancelled"] == []
    assert ask("ledger", "--jsonl").out == before
    assert ask("resume", "p", "--command", says).code == 0


def test_a_whole_run_is_cancelled_with_a_slash(ask: Ask, manifest: Write) -> None:
    ask("post", manifest("t1"), manifest("t2"), "--run", "r1")

    answer = ask("cancel", "r1/", "--json")

    assert answer.json["cancelled"] == ["t1", "t2"]
    assert ask("cancel", "nothing").code == 2
