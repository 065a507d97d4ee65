"""`worker --at-once` and `judge --at-once`: real processes with several tasks in hand."""

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from agent_run.desk import Desk
from agent_run.ledger.state import Status
from agent_run.wiring import open_desk
from tests.cli.executing.conftest import RIGHT, Write
from tests.cli.executing.test_interrupting import alive, until_alive
from tests.support.command_line import Ask

PROGRAM = str(Path(sys.executable).parent / "agent-run")
PATIENCE = 60.0
TASKS = [f"t{number}" for number in range(40)]
WAITING = '''\
"""Waits a little, and leaves a line for each time it was called."""
import os

import anyio

from agent_run import Brief, Record
from agent_run.executors.function import executor

@executor("wait")
async def wait(brief: Brief) -> Record:
    line = f"{os.getpid()} {brief.task_id} {brief.attempt}\\n".encode()
    handle = os.open("calls.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(handle, line)
    os.close(handle)
    await anyio.sleep(0.3)
    return Record(status="done", output=brief.task_id, confidence=1.0)
'''

Worker: TypeAlias = "subprocess.Popen[str]"


@pytest.fixture
def waiting(project: Path) -> Path:
    """A project whose executor is a function, and in which 40 tasks wait for it."""
    (project / ".gitignore").write_text("*\n")
    (project / "waits_a_little.py").write_text(WAITING)
    (project / "agent-run.toml").write_text(
        'executor = "wait"\n[executors.wait]\nfunction = "waits_a_little:wait"\n'
    )
    return project


@pytest.fixture
def desk(waiting: Path, ask: Ask) -> Iterator[Desk]:
    for name in TASKS:
        told = {"task_id": name, "objective": "wait", "budget": {"max_attempts": 3}}
        (waiting / f"{name}.json").write_text(json.dumps(told))
    posted = ask("post", *(f"{name}.json" for name in TASKS), "--run", "r")
    assert posted.code == 0, posted.err
    with closing(open_desk(f"sqlite:///{waiting / '.agent-run/ledger.db'}")) as desk:
        yield desk


@contextmanager
def started(folder: Path, *words: str) -> Iterator[Worker]:
    """A worker process, which is dead at the end whatever happens."""
    line = [PROGRAM, "worker", *words]
    with subprocess.Popen(line, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def count(desk: Desk, kind: str) -> Counter[str]:
    return Counter(page.task_id for page in desk.pages("r") if page.kind == kind)


def in_hand(desk: Desk, owner: str) -> int:
    return sum(task.owner == owner for task in desk.run("r").tasks.values())


@pytest.mark.slow
def test_two_workers_with_four_hands_each_do_every_task_once(desk: Desk, waiting: Path) -> None:
    most = {"ada": 0, "bob": 0}
    with ExitStack() as stack:
        workers = [
            stack.enter_context(
                started(waiting, "--once", "--at-once", "4", "--owner", owner, "--jsonl", "-q")
            )
            for owner in most
        ]
        while any(worker.poll() is None for worker in workers):
            most = {owner: max(seen, in_hand(desk, owner)) for owner, seen in most.items()}
            time.sleep(0.02)
        outputs = [worker.communicate(timeout=PATIENCE)[0] for worker in workers]

    told = [json.loads(line) for output in outputs for line in output.splitlines()]
    assert [worker.returncode for worker in workers] == [0, 0]
    assert sorted(one["task_id"] for one in told) == sorted(TASKS)
    assert {(one["status"], one["attempt"]) for one in told} == {("accepted", 1)}
    calls = Counter(
        line.split()[1] for line in (waiting / "calls.txt").read_text().splitlines()
    )
    assert calls == Counter(TASKS)
    assert count(desk, "task_accepted") == Counter(TASKS)
    assert max(most.values()) == 4


@pytest.mark.slow
def test_what_a_killed_worker_had_in_its_hands_passes_to_the_other(
    desk: Desk, waiting: Path
) -> None:
    words = ("--at-once", "4", "--ttl", "2s", "--jsonl", "-q")
    with (
        started(waiting, *words, "--owner", "doomed") as doomed,
        started(waiting, *words, "--owner", "other") as other,
    ):
        until(lambda: in_hand(desk, "doomed") == 4)
        doomed.kill()
        doomed.wait()
        until(lambda: all(t.status is Status.ACCEPTED for t in desk.run("r").tasks.values()))
        other.send_signal(signal.SIGTERM)
        other.communicate(timeout=PATIENCE)

    assert other.returncode == 130
    assert count(desk, "task_accepted") == count(desk, "record_submitted") == Counter(TASKS)
    expired = count(desk, "claim_expired")
    assert 1 <= len(expired) <= 4
    tasks = desk.run("r").tasks
    assert {name for name, task in tasks.items() if task.attempt == 2} == set(expired)
    assert all(tasks[name].worked_by == "other" for name in expired)


@pytest.mark.slow
def test_what_a_killed_worker_left_unjudged_is_judged_by_another(
    desk: Desk, waiting: Path, ask: Ask
) -> None:
    assert ask("worker", "--once", "--no-judge", "--at-once", "40").code == 0
    assert count(desk, "record_submitted") == Counter(TASKS)

    with started(waiting, "--at-once", "4", "--ttl", "1s", "-q") as worker:
        until(lambda: all(t.status is Status.ACCEPTED for t in desk.run("r").tasks.values()))
        worker.send_signal(signal.SIGTERM)
        worker.communicate(timeout=PATIENCE)

    assert count(desk, "task_accepted") == Counter(TASKS)
    assert count(desk, "task_claimed") == Counter(TASKS)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_gives_back_everything_in_hand(
    ask: Ask, manifest: Write, project: Path, number: signal.Signals
) -> None:
    token = f"6{project.stat().st_ino}"
    (project / "agent-run.toml").write_text(f'[executors.slow]\ncommand = "sleep {token}"\n')
    names = ["t1", "t2", "t3"]
    for name in names:
        ask("post", manifest(name))
    with started(project, "--dirty", "carry", "--at-once", "3") as worker:
        until_alive(token)
        until(lambda: len(alive(token)) == len(names))
        worker.send_signal(number)
        out, _ = worker.communicate(timeout=PATIENCE)

    assert worker.returncode == 130
    assert alive(token) == []
    shown: list[dict[str, Any]] = [ask("show", name, "--json").json for name in names]
    assert {(task["status"], task["owner"]) for task in shown} == {("ready", None)}
    assert all(f"task={name} " in out for name in names)


def test_a_judge_hears_several_records_at_once(
    ask: Ask, manifest: Write, project: Path
) -> None:
    (project / ".gitignore").write_text("*.json\nagent-run.toml\n.gitignore\n")
    (project / "agent-run.toml").write_text(
        f'dirty = "carry"\n[executors.right]\ncommand = "{RIGHT}"\n'
    )
    names = ["t1", "t2", "t3"]
    for name in names:
        ask("post", manifest(name))
    assert ask("worker", "--once", "--no-judge", "--at-once", "3").code == 0

    judged = ask("judge", "--once", "--at-once", "3", "--jsonl")

    told = [json.loads(line) for line in judged.out.splitlines()]
    assert judged.code == 0, judged.err
    assert sorted((one["task_id"], one["status"]) for one in told) == [
        (name, "accepted") for name in names
    ]
    assert "t2: " in judged.err


def test_a_number_of_hands_below_one_is_refused(ask: Ask) -> None:
    answer = ask("worker", "--at-once", "0")

    assert answer.code == 2
    assert "--at-once" in answer.err
