"""Ctrl-C: the claim is given back, and nothing that was started is still alive."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.cli.executing.conftest import Write
from tests.support.command_line import Ask

PROGRAM = str(Path(sys.executable).parent / "agent-run")
PATIENCE = 30.0


def alive(token: str) -> list[int]:
    found = []
    for process in psutil.process_iter():
        try:
            words = process.cmdline()
        except psutil.Error:
            continue
        if words[:1] == ["sleep"] and token in words:
            found.append(process.pid)
    return found


def until_alive(token: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not alive(token):
        assert time.monotonic() < deadline, "the executor was never started"
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_every_process_and_gives_the_claim_back(
    ask: Ask, manifest: Write, project: Path, number: signal.Signals
) -> None:
    token = f"9{project.stat().st_ino}"
    command = f"(setsid sleep {token} &) ; trap '' INT TERM; sleep {token}"
    words = [PROGRAM, "execute", manifest(), "--command", command]
    with subprocess.Popen(words, cwd=project, stdout=subprocess.PIPE) as process:
        until_alive(token)
        process.send_signal(number)
        out, _ = process.communicate(timeout=PATIENCE)

    task = ask("show", "t1", "--json").json
    assert process.returncode == 130
    assert b"[claim]   task=t1" in out
    assert alive(token) == []
    assert (task["status"], task["owner"]) == ("ready", None)
    assert task["attempts"] == task["attempt"] + 3
    assert list((project / ".agent-run/work/jobs").glob("*")) == []


def test_a_worker_that_is_interrupted_gives_its_claim_back(
    ask: Ask, manifest: Write, project: Path
) -> None:
    token = f"8{project.stat().st_ino}"
    (project / "agent-run.toml").write_text(f'[executors.slow]\ncommand = "sleep {token}"\n')
    ask("post", manifest())
    words = [PROGRAM, "worker", "--dirty", "carry"]
    with subprocess.Popen(words, cwd=project, stdout=subprocess.PIPE) as process:
        until_alive(token)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)

    assert process.returncode == 130
    assert alive(token) == []
    assert ask("show", "t1", "--json").json["status"] == "ready"


def test_a_task_that_is_cancelled_is_stopped_at_once(
    ask: Ask, manifest: Write, project: Path
) -> None:
    token = f"7{project.stat().st_ino}"
    words = [PROGRAM, "execute", manifest(), "--command", f"sleep {token}", "--json", "-q"]
    with subprocess.Popen(words, cwd=project, stdout=subprocess.PIPE) as process:
        until_alive(token)
        cancelled = ask("cancel", "t1")
        out, _ = process.communicate(timeout=PATIENCE)

    assert cancelled.code == 0
    assert (process.returncode, json.loads(out)["status"]) == (1, "cancelled")
    assert alive(token) == []


def test_a_task_that_someone_took_over_is_lost(
    ask: Ask, manifest: Write, project: Path
) -> None:
    token = f"6{project.stat().st_ino}"
    words = [PROGRAM, "execute", manifest(), "--command", f"sleep {token}"]
    with subprocess.Popen(
        words, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        until_alive(token)
        ask("release", "t1", "--claim", "2", "--reason", "taken away")
        ask("claim", "t1", "--owner", "bob")
        out, err = process.communicate(timeout=PATIENCE)

    assert process.returncode == 5
    assert "[claim]   lost: " in out
    assert "of 'bob' counts now" in err
    assert alive(token) == []
    assert ask("show", "t1", "--json").json["owner"] == "bob"
