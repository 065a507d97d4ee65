"""At a terminal, a person decides with one key; elsewhere nobody is asked."""

import os
import pty
import select
import subprocess
import sys
from pathlib import Path

import pytest

AGENT_RUN = (sys.executable, "-m", "agent_run")
TASK = "task_id: t\nobjective: Make a file\nallowed_paths: [made.txt]\nreview: human\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "agent-run.toml").write_text("")
    (tmp_path / "t.yaml").write_text(TASK)
    command = ("execute", "t.yaml", "--command", "echo hi > made.txt")
    done = subprocess.run(
        [*AGENT_RUN, *command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 7, done.stderr
    return tmp_path


def at_terminal(folder: Path, *typed: tuple[str, str]) -> str:
    """Run `review t` at a terminal; each answer is typed when its question has come."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*AGENT_RUN, "review", "t", "--no-color"],
        cwd=folder,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "dumb", "COLUMNS": "100"},
    )
    os.close(theirs)
    seen, waiting = "", list(typed)
    for _ in range(200):
        # What is typed before the program listens is lost, so it is typed until it is heard.
        ready, _, _ = select.select([ours], [], [], 0.5)
        try:
            piece = os.read(ours, 4_096) if ready else None
        except OSError:  # what Linux says when the other end is closed
            break
        if piece is not None:
            seen += piece.decode()
        if len(waiting) > 1 and waiting[1][0] in seen:
            waiting.pop(0)
        if piece is None and waiting and waiting[0][0] in seen:
            os.write(ours, waiting[0][1].encode())
    os.close(ours)
    process.wait(60)
    return seen


def status(folder: Path) -> str:
    done = subprocess.run(
        [*AGENT_RUN, "show", "t", "--json"], cwd=folder, capture_output=True, check=True
    )
    return done.stdout.decode()


def test_one_key_approves(project: Path) -> None:
    seen = at_terminal(project, ("any other key", "a"))

    assert "[a] approve, [r] reject" in seen
    assert "-> accepted" in seen


def test_a_rejection_takes_its_reason_from_a_list(project: Path) -> None:
    seen = at_terminal(project, ("any other key", "r"), ("your own words", "2\n"))

    assert "2  it breaks a constraint" in seen
    assert "it breaks a constraint" in status(project)


def test_a_number_outside_the_list_is_asked_again(project: Path) -> None:
    seen = at_terminal(
        project,
        ("any other key", "r"),
        ("your own words", "9\n"),
        ("9 is not in the list, expected 1 to 5", "3\n"),
    )

    assert "9 is not in the list, expected 1 to 5, or words" in seen
    assert "a reviewer rejected it: tests are missing or wrong" in status(project)


def test_any_other_key_decides_nothing(project: Path) -> None:
    at_terminal(project, ("any other key", "x"))

    assert '"escalated"' in status(project)


def test_without_a_terminal_nobody_is_asked(project: Path) -> None:
    done = subprocess.run(
        [*AGENT_RUN, "review", "t"],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )

    assert done.returncode == 0
    assert "any other key" not in done.stdout
