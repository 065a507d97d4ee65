"""Crashed checkouts go, live ones never, and another process can go on where one stopped."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent_run.errors import WorkspaceError
from agent_run.workspace.removal import remove_tree
from agent_run.workspace.trees import open_workspace
from tests.workspace.world import World, put, stamp

CHILD = """
import sys
from pathlib import Path
from agent_run.workspace.trees import open_workspace
trees = open_workspace(Path(sys.argv[1]), Path(sys.argv[2]))
checkout = trees.prepare(trees.base(), task_id="child", claim=int(sys.argv[3]))
if sys.argv[4] == "park":
    trees.park(checkout)
print("ready", flush=True)
sys.stdin.read()
"""


def child(world: World, claim: int, how: str) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(world.repo), str(world.state), str(claim), how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def kill(process: "subprocess.Popen[str]") -> None:
    with process:
        process.kill()


def test_a_live_checkout_is_never_swept_and_a_crashed_one_is(world: World) -> None:
    process = child(world, 1, "hold")
    home = world.state / "runs" / "child@1"

    assert world.trees.sweep().live == ("child@1",)
    assert (home / "tree/src/app.py").is_file()
    with pytest.raises(WorkspaceError, match="in use"):
        world.trees.prepare(world.trees.base(), task_id="child", claim=1)

    kill(process)
    assert world.trees.sweep().removed == ("child@1",)
    assert not home.exists()
    assert list((world.state / "trash").iterdir()) == []


def test_a_parked_checkout_outlives_its_process(world: World) -> None:
    kill(child(world, 1, "park"))
    assert world.trees.sweep().live == ("child@1",)

    checkout = world.trees.reopen("child", 1)
    put(checkout.path, "src/app.py", "by hand\n")
    candidate = world.trees.collect(checkout, allowed=("src/**",))

    assert [one.path for one in candidate.changes] == ["src/app.py"]
    world.trees.discard(checkout)
    assert world.trees.sweep().live == ()


def test_another_process_can_judge_and_promote_what_was_collected(world: World) -> None:
    base, checkout = world.start()
    put(checkout.path, "src/app.py", "good\n")
    put(checkout.path, "evil.py", "x")
    candidate = world.trees.collect(checkout, allowed=("src/**",))
    world.trees.park(checkout)

    other = open_workspace(world.repo, world.state)
    again = other.reopen("repo-142", 2)

    assert again == checkout
    assert other.candidate("repo-142", 2) == candidate
    assert other.promote(base, candidate, stamp=stamp(), message="x").tree == candidate.tree


def test_a_claim_without_a_checkout_cannot_be_reopened(world: World) -> None:
    with pytest.raises(WorkspaceError, match="no checkout for claim 7"):
        world.trees.reopen("repo-142", 7)
    assert world.trees.candidate("repo-142", 7) is None


def test_a_result_that_is_gone_cannot_be_promoted(world: World) -> None:
    base, checkout = world.start()
    candidate = world.trees.collect(checkout, allowed=())
    world.trees.discard(checkout)

    with pytest.raises(WorkspaceError, match="is gone"):
        world.trees.promote(base, candidate, stamp=stamp(), message="x")


def test_a_torn_lease_does_not_keep_a_checkout(world: World) -> None:
    home = world.state / "runs" / "torn@1"
    put(home, "lease", '{"pid":')
    put(home, "tree/x", "x")

    assert world.trees.sweep().removed == ("torn@1",)


def test_a_hostile_tree_can_be_removed(tmp_path: Path) -> None:
    top = tmp_path / "top"
    outside = put(tmp_path, "outside/keep", "keep")
    put(top, "a/b/file", "x").chmod(0)
    (top / "a/link").symlink_to(tmp_path / "outside")
    os.mkfifo(top / "a/pipe")
    folder = os.open(top, os.O_RDONLY)
    for _ in range(1_500):
        os.mkdir("d" * 50, dir_fd=folder)
        inner = os.open("d" * 50, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)
    (top / "a/b").chmod(0)
    (top / "a").chmod(0o500)

    remove_tree(top)

    assert not top.exists()
    assert outside.read_text() == "keep"


def test_old_bases_are_forgotten_but_not_those_in_use(world: World) -> None:
    _, checkout = world.start()
    for number in range(6):
        put(world.repo, "README.md", f"{number}\n")
        world.trees.base(dirty="carry")

    world.trees.sweep()

    kept = [one.name for one in (world.state / "bases").iterdir() if one.is_dir()]
    assert len(kept) == 5
    assert checkout.base.commit in kept


def test_what_a_dead_process_left_in_scratch_goes_and_the_rest_stays(world: World) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    dead = put(world.state, f"scratch/carry-{gone.pid}-1/x", "x").parent
    ours = put(world.state, f"scratch/carry-{os.getpid()}-1/x", "x").parent

    world.trees.sweep()

    assert (dead.exists(), ours.exists()) == (False, True)


@pytest.mark.parametrize("task_id", ["../x", "a/b", "", ".hidden", "x.lock", "a..b", "a b"])
def test_a_task_id_that_is_no_name_is_refused(world: World, task_id: str) -> None:
    with pytest.raises(WorkspaceError, match="task id"):
        world.trees.prepare(world.trees.base(), task_id=task_id, claim=1)
    with pytest.raises(WorkspaceError, match="task id"):
        world.trees.result(task_id)
