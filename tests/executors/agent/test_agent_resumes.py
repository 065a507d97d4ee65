"""A killed run goes on where it stopped: nothing that was finished is done or paid again."""

import base64
import json
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agent_run.ledger.state import Status
from tests.executors.agent.killed import desk_at
from tests.executors.agent.working import EDITED, RIGHT, bench, final, turn

ROOT = Path(__file__).parents[3]
# The book of an unharmed run has seven settlings: model and tool in turn, the model first.


def attempt(root: Path, store: str, kill_at: str, on_crash: str = "retry") -> Any:
    """Run one attempt; None if it was killed."""
    program = [sys.executable, "-m", "tests.executors.agent.killed"]
    done = subprocess.run(
        [*program, str(root), store, kill_at, on_crash],
        capture_output=True,
        cwd=ROOT,
        check=False,
        timeout=60,
    )
    if done.returncode == -signal.SIGKILL:
        return None
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def asked(root: Path) -> list[str]:
    return (root / "asked").read_text().split()


def stamps(root: Path) -> list[str]:
    """Return what the command left behind, each time that it finished."""
    lines = map(json.loads, (root / "purse").read_text().splitlines())
    results = [line.get("result") or {} for line in lines]
    changes = [one for kept in results for one in kept.get("changes", {}).get("files", ())]
    kept = [one["content"] for one in changes if one["path"] == "stamp.txt"]
    return [base64.b64decode(content).decode() for content in kept]


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 4, 6])
def test_what_was_settled_is_never_done_again(number: int, tmp_path: Path) -> None:
    assert attempt(tmp_path, "file", f"after:{number}") is None
    before = asked(tmp_path)

    work = attempt(tmp_path, "file", "never")

    assert work["record"]["status"] == "done"
    assert sorted(asked(tmp_path)) == ["step-1", "step-2", "step-3", "step-4"]
    assert len(before) == (number + 1) // 2
    assert (tmp_path / "workspace" / "calc.py").read_text() == RIGHT
    assert [(tmp_path / "workspace" / "stamp.txt").read_text()] == stamps(tmp_path)
    assert not any("settled" in line for line in work["told"])


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2, 4, 6])
def test_a_call_cut_off_before_it_was_settled_is_done_again_alone(
    number: int, tmp_path: Path
) -> None:
    assert attempt(tmp_path, "file", f"before:{number}") is None

    work = attempt(tmp_path, "file", "never")

    steps = ["step-1", "step-2", "step-3", "step-4"]
    again = [f"step-{(number + 1) // 2}"] if number % 2 else []
    assert work["record"]["status"] == "done"
    assert sorted(asked(tmp_path)) == sorted(steps + again)
    assert [(tmp_path / "workspace" / "stamp.txt").read_text()] == stamps(tmp_path)
    # A look without effect may be done again in silence; all else is told.
    assert any("never settled" in line for line in work["told"]) is (number != 2)


@pytest.mark.slow
@pytest.mark.parametrize("number", [4, 6])
def test_a_tool_call_with_effects_goes_to_a_person_if_so_agreed(
    number: int, tmp_path: Path
) -> None:
    assert attempt(tmp_path, "file", f"before:{number}", "escalate") is None

    work = attempt(tmp_path, "file", "never", "escalate")

    assert (work["record"]["status"], work["record"]["next_action"]) == ("blocked", "escalate")
    assert "never settled" in work["record"]["error"]
    assert asked(tmp_path) == [f"step-{n}" for n in range(1, number // 2 + 1)]


@pytest.mark.slow
@pytest.mark.parametrize("kill_at", ["after:3", "before:5", "before:6"])
def test_a_real_ledger_carries_the_run_over_the_crash(kill_at: str, tmp_path: Path) -> None:
    assert attempt(tmp_path, "desk", kill_at) is None

    work = attempt(tmp_path, "desk", "never")

    desk = desk_at(tmp_path, datetime(2026, 1, 1, 3, tzinfo=UTC))
    run = desk.run("r-1")
    task = run.tasks["t-1"]
    desk.close()
    extra = 1 if kill_at == "before:5" else 0
    assert work["record"]["status"] == "done"
    assert (task.status, task.attempt) == (Status.SUBMITTED, 2)
    assert len(asked(tmp_path)) == 4 + extra
    assert task.spent.requests == 4 + extra  # what was begun counts as spent
    assert task.calls == ()


def test_another_course_of_the_work_finds_no_old_results(tmp_path: Path) -> None:
    place = bench(tmp_path)
    read = turn("read", path="calc.py")
    place.work([read, final()])
    (place.workspace / "calc.py").write_text("changed meanwhile\n")

    same = place.seen(read)
    other = place.seen(read, handoff_notes=["Something new is known."])

    assert "return a - b" in same[0]
    assert other == ["changed meanwhile"]


def test_changes_too_large_to_keep_are_made_again(tmp_path: Path) -> None:
    place = bench(tmp_path)
    big = turn("run", command="head -c 600000 /dev/zero | tr '\\0' x > big.txt")
    allowed = ["calc.py", "big.txt"]
    place.work([big, EDITED, final()], allowed_paths=allowed)
    place.fresh()

    place.work([big, EDITED, final()], allowed_paths=allowed)

    assert (place.workspace / "big.txt").stat().st_size == 600_000
    assert (place.workspace / "calc.py").read_text() == RIGHT
    assert any("was not kept" in line and "done again" in line for line in place.told)


def test_changes_too_large_to_keep_go_to_a_person_if_so_agreed(tmp_path: Path) -> None:
    place = bench(tmp_path)
    script = [turn("run", command="head -c 600000 /dev/zero > calc.py"), final()]
    place.work(script, on_crash="escalate")
    place.fresh()

    work = place.work(script, on_crash="escalate")

    assert work.record is not None
    assert work.record.status == "blocked"
    assert "was not kept" in work.record.error


def test_deleted_files_and_modes_are_carried_over(tmp_path: Path) -> None:
    place = bench(tmp_path)
    script = [turn("run", command="rm tests/test_calc.py; chmod +x calc.py"), final()]
    place.work(script)
    place.fresh()

    place.work(script)

    assert not (place.workspace / "tests" / "test_calc.py").exists()
    assert (place.workspace / "calc.py").stat().st_mode & 0o100
