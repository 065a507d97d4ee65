"""`worker` and `judge`: several processes, each task done once."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.executing.conftest import RIGHT, WRONG, Write
from tests.support.command_line import Ask

PROGRAM = str(Path(sys.executable).parent / "agent-run")


@pytest.fixture
def settled(project: Path) -> Path:
    """A project whose settings name executors."""
    (project / ".gitignore").write_text("*.json\nagent-run.toml\n.gitignore\n")
    text = f'[executors.right]\ncommand = "{RIGHT}"\n[executors.wrong]\ncommand = "{WRONG}"\n'
    (project / "agent-run.toml").write_text(f'executor = "right"\ndirty = "carry"\n{text}')
    return project


@pytest.mark.usefixtures("settled")
def test_a_worker_does_what_is_there_and_ends(ask: Ask, manifest: Write) -> None:
    ask("post", manifest("t1"))
    ask("post", manifest("t2", executor="right"))

    answer = ask("worker", "--once", "--json")

    assert answer.code == 0
    assert answer.json == {"done": 2, "status": {"accepted": 2}}
    assert ask("worker", "--once").code == 0


@pytest.mark.usefixtures("settled")
def test_a_worker_takes_only_what_its_executors_are_asked_for(
    ask: Ask, manifest: Write
) -> None:
    ask("post", manifest("t1", executor="right"))
    ask("post", manifest("t2", executor="wrong", budget={"max_attempts": 2}))

    answer = ask("worker", "--once", "--executor", "wrong", "--jsonl")

    told = [json.loads(line) for line in answer.out.splitlines()]
    assert answer.code == 4
    assert [(one["task_id"], one["status"]) for one in told] == [
        ("t2", "returned"),
        ("t2", "escalated"),
    ]
    assert ask("show", "t1", "--json").json["status"] == "ready"


@pytest.mark.usefixtures("settled")
def test_the_verdict_may_be_left_to_another_process(ask: Ask, manifest: Write) -> None:
    ask("post", manifest())

    worked = ask("worker", "--once", "--no-judge")
    between = ask("show", "t1", "--json").json["status"]
    judged = ask("judge", "--once", "--jsonl")

    assert (worked.code, between) == (0, "submitted")
    assert (judged.code, judged.json["status"]) == (0, "accepted")
    assert "[summary] status=needs_review" in worked.out


@pytest.mark.usefixtures("settled")
def test_verify_judges_what_was_submitted(ask: Ask, manifest: Write) -> None:
    ask("post", manifest())
    ask("worker", "--once", "--no-judge")

    answer = ask("verify", "t1")

    assert answer.code == 0
    assert answer.out.splitlines()[-1].endswith("-> accepted  agent-run apply t1")
    assert ask("verify", "t1").code == 1


@pytest.mark.slow
def test_two_workers_do_each_task_once(ask: Ask, manifest: Write, settled: Path) -> None:
    names = [f"t{number}" for number in range(6)]
    for name in names:
        ask("post", manifest(name))

    workers = [
        subprocess.Popen(
            [PROGRAM, "worker", "--once", "--owner", owner, "--jsonl", "-q"],
            cwd=settled,
            stdout=subprocess.PIPE,
            text=True,
        )
        for owner in ("ada", "bob")
    ]
    outputs = [worker.communicate(timeout=90)[0] for worker in workers]

    told = [json.loads(line) for output in outputs for line in output.splitlines()]
    assert [worker.returncode for worker in workers] == [0, 0]
    assert sorted(one["task_id"] for one in told) == names
    assert {one["status"] for one in told} == {"accepted"}
    assert {one["attempt"] for one in told} == {1}


@pytest.mark.usefixtures("settled")
def test_a_worker_lets_go_of_claims_and_questions_that_ran_out(
    ask: Ask, manifest: Write
) -> None:
    ask("post", manifest("t1", on_crash="escalate"))
    ask("claim", "t1", "--owner", "ghost", "--ttl", "0.001s")

    ask("judge", "--once")

    task = ask("show", "t1", "--json").json
    assert (task["status"], task["reason"]) == ("escalated", "crashed")


def test_a_worker_must_know_who_takes_tasks_for_anybody(ask: Ask, project: Path) -> None:
    (project / "agent-run.toml").write_text(
        '[executors.a]\ncommand = "true"\n[executors.b]\ncommand = "true"\n'
    )

    answer = ask("worker", "--once")

    assert answer.code == 2
    assert "no executor is named for tasks that name none" in answer.err
    assert ask("worker", "--once", "--executor", "nobody").code == 2
