"""`apply` and `rollback` killed after the branch moved and before its page was written."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.cli.executing.conftest import RIGHT, Git, Write
from tests.support.command_line import Ask

Kill: TypeAlias = Callable[..., None]

_DYING = """
import os, signal, sys
from agent_run.cli.app import run
from agent_run.store.sqlite import SqliteStore

def die(self, chapters):
    os.kill(os.getpid(), signal.SIGKILL)

SqliteStore.append = die
sys.exit(run(sys.argv[1:]))
"""


@pytest.fixture
def killed(folder: Path) -> Kill:
    """Run a command line that is killed when it comes to write its page."""

    def run(*arguments: str) -> None:
        done = subprocess.run(
            [sys.executable, "-c", _DYING, *arguments],
            capture_output=True,
            check=False,
            cwd=folder,
            env=dict(os.environ),
            timeout=60,
        )
        assert done.returncode == -signal.SIGKILL, done.stderr

    return run


@pytest.fixture
def accepted(ask: Ask, manifest: Write) -> None:
    """Task `t1`, accepted and not yet applied."""
    assert ask("execute", manifest(), "--command", RIGHT).code == 0


@pytest.mark.usefixtures("accepted")
def test_apply_writes_the_page_that_is_missing(
    ask: Ask, killed: Kill, git: Git, project: Path
) -> None:
    killed("apply", "t1")
    head = git("rev-parse", "HEAD")
    assert (project / "a.py").read_text() == "x = 2\n"
    assert ask("show", "t1", "--json").json["applied"] is None

    answer = ask("apply", "t1", "--json")

    assert (answer.code, answer.json["commit"], answer.json["found"]) == (0, head, True)
    assert (answer.json["branch"], answer.json["paths"]) == ("main", ["a.py"])
    assert "the ledger did not say so, and now does" in answer.err
    assert git("rev-parse", "HEAD") == head
    assert ask("show", "t1", "--json").json["applied"] == head
    again = ask("apply", "t1")
    assert (again.code, "on this branch already" in again.err) == (1, True)


@pytest.mark.usefixtures("accepted")
def test_apply_writes_it_also_when_the_branch_had_gone_on(
    ask: Ask, killed: Kill, git: Git, project: Path
) -> None:
    (project / "b.py").write_text("y = 2\n")
    git("commit", "-q", "-am", "meanwhile")
    killed("apply", "t1")
    head = git("rev-parse", "HEAD")
    (project / "b.py").write_text("y = 3\n")
    git("commit", "-q", "-am", "and on")

    answer = ask("apply", "t1", "--json")

    assert (answer.code, answer.json["commit"]) == (0, head)
    assert ask("show", "t1", "--json").json["applied"] == head


@pytest.mark.usefixtures("accepted")
def test_rollback_writes_the_page_that_is_missing(
    ask: Ask, killed: Kill, git: Git, project: Path
) -> None:
    assert ask("apply", "t1").code == 0
    killed("rollback", "t1")
    head = git("rev-parse", "HEAD")
    assert (project / "a.py").read_text() == "x = 1\n"
    assert ask("show", "t1", "--json").json["applied"] is not None

    answer = ask("rollback", "t1", "--json")

    assert (answer.code, answer.json["commit"], answer.json["found"]) == (0, head, True)
    assert git("rev-parse", "HEAD") == head
    assert ask("show", "t1", "--json").json["applied"] is None
    assert ask("rollback", "t1").code == 1


@pytest.mark.usefixtures("accepted")
def test_what_a_killed_apply_brought_can_be_taken_back_at_once(
    ask: Ask, killed: Kill, project: Path
) -> None:
    killed("apply", "t1")

    answer = ask("rollback", "t1", "--json")

    assert (answer.code, answer.json["found"]) == (0, False)
    assert (project / "a.py").read_text() == "x = 1\n"
    assert ask("show", "t1", "--json").json["applied"] is None
    assert ask("ledger", "verify").code == 0


@pytest.mark.usefixtures("accepted")
def test_what_a_killed_rollback_took_back_can_be_applied_again(
    ask: Ask, killed: Kill, git: Git, project: Path
) -> None:
    ask("apply", "t1")
    killed("rollback", "t1")

    answer = ask("apply", "t1", "--json")

    assert (answer.code, answer.json["found"]) == (0, False)
    assert (project / "a.py").read_text() == "x = 2\n"
    assert ask("show", "t1", "--json").json["applied"] == git("rev-parse", "HEAD")


@pytest.mark.usefixtures("accepted")
def test_a_dry_run_writes_no_page(ask: Ask, killed: Kill) -> None:
    killed("apply", "t1")

    assert ask("apply", "t1", "--dry-run").code == 0
    assert ask("rollback", "t1", "--dry-run").code == 0
    assert ask("show", "t1", "--json").json["applied"] is None


@pytest.mark.parametrize("command", ["apply", "rollback"])
def test_a_plain_folder_is_caught_up_too(
    ask: Ask, killed: Kill, folder: Path, command: str
) -> None:
    (folder / "a.py").write_text("x = 1\n")
    (folder / "t1.yaml").write_text(
        "task_id: t1\nobjective: Set x to 2\nallowed_paths: [a.py]\n"
        "verification: [\"grep -q 'x = 2' a.py\"]\n"
    )
    assert ask("execute", "t1.yaml", "--command", RIGHT).code == 0
    if command == "rollback":
        assert ask("apply", "t1").code == 0
    killed(command, "t1")

    answer = ask(command, "t1", "--json")

    assert (answer.code, answer.json["found"]) == (0, True)
    assert answer.json["paths"] == ["a.py"]
    applied = ask("show", "t1", "--json").json["applied"]
    assert (applied is not None) is (command == "apply")
