"""What several tasks have brought becomes one base, or the conflict is named."""

import pytest

from agent_run.errors import WorkspaceError
from agent_run.ports.workspace import Result, Stamp
from tests.workspace.world import NOON, World, commit_all, git, put

ALLOWED = ("src/**", "docs/**")


def _brought(world: World, task_id: str, edits: dict[str, str]) -> Result:
    """Accept the change of one of several tasks that all start from the same state."""
    base = world.trees.base()
    checkout = world.trees.prepare(base, task_id=task_id, claim=2)
    for path, content in edits.items():
        put(checkout.path, path, content)
    candidate = world.trees.collect(checkout, allowed=ALLOWED)
    stamp = Stamp(task_id, NOON, "trace-1", 2, 1)
    return world.trees.promote(base, candidate, stamp=stamp, message=task_id)


def test_changes_of_different_files_are_joined(world: World) -> None:
    one = _brought(world, "one", {"src/app.py": "good\n"})
    two = _brought(world, "two", {"docs/guide.md": "new\n"})
    three = _brought(world, "three", {"src/new.py": "x\n"})

    base = world.trees.base_at((one.commit, two.commit, three.commit))

    root = world.files(base, None)
    assert (root / "src/app.py").read_text() == "good\n"
    assert (root / "docs/guide.md").read_text() == "new\n"
    assert (root / "src/new.py").read_text() == "x\n"


def test_the_same_results_give_the_same_base(world: World) -> None:
    one = _brought(world, "one", {"src/app.py": "good\n"})
    two = _brought(world, "two", {"docs/guide.md": "new\n"})

    bases = {world.trees.base_at((one.commit, two.commit)).commit for _ in range(2)}

    assert len(bases) == 1


def test_changes_of_the_same_lines_are_refused_by_name(world: World) -> None:
    one = _brought(world, "one", {"src/app.py": "this\n"})
    two = _brought(world, "two", {"src/app.py": "that\n"})

    with pytest.raises(WorkspaceError, match=r"conflict in 'src/app\.py'"):
        world.trees.base_at((one.commit, two.commit))


def test_what_was_built_on_a_join_is_promoted_whole(world: World) -> None:
    one = _brought(world, "one", {"src/app.py": "good\n"})
    two = _brought(world, "two", {"docs/guide.md": "new\n"})
    base = world.trees.base_at((one.commit, two.commit))
    checkout = world.trees.prepare(base, task_id="both", claim=5)
    put(checkout.path, "src/util.py", "y = 2\n")
    candidate = world.trees.collect(checkout, allowed=ALLOWED)
    stamp = Stamp("both", NOON, "trace-1", 5, 1)

    both = world.trees.promote(base, candidate, stamp=stamp, message="both")

    shown = git(world.repo, "show", f"{both.commit}:src/app.py")
    assert shown == "good"
    assert git(world.repo, "fsck", "--strict") == ""
    for part in (one, two):
        git(world.repo, "merge-base", "--is-ancestor", part.commit, both.commit)


def test_the_users_repository_has_nothing_of_a_join_before_its_result(world: World) -> None:
    one = _brought(world, "one", {"src/app.py": "good\n"})
    two = _brought(world, "two", {"docs/guide.md": "new\n"})
    before = git(world.repo, "count-objects", "-v")

    world.trees.base_at((one.commit, two.commit))

    assert git(world.repo, "count-objects", "-v") == before


def test_a_task_of_another_run_is_not_applied_in_its_place(world: World) -> None:
    first = _of_run(world, "trace-a", "src/app.py")
    second = _of_run(world, "trace-b", "src/util.py")
    git(world.repo, "reflog", "expire", "--expire=now", "--all")
    git(world.repo, "gc", "-q", "--prune=now")

    applied = world.trees.apply(Stamp("f", NOON, "trace-a", 2, 1, first.commit))

    assert applied.paths == ("src/app.py",)
    assert first.commit != second.commit


def test_who_takes_back_one_run_leaves_the_other(world: World) -> None:
    first = _of_run(world, "trace-a", "src/app.py")
    world.trees.apply(Stamp("f", NOON, "trace-a", 2, 1, first.commit))
    second = _of_run(world, "trace-b", "src/util.py")
    world.trees.apply(Stamp("f", NOON, "trace-b", 2, 1, second.commit))

    undone = world.trees.rollback(Stamp("f", NOON, "trace-a", 2, 1, first.commit))

    assert undone.paths == ("src/app.py",)
    assert (world.repo / "src/util.py").read_text() == "trace-b\n"


def _of_run(world: World, trace: str, path: str) -> Result:
    base = world.trees.base()
    checkout = world.trees.prepare(base, task_id=f"f.{trace}", claim=2)
    put(checkout.path, path, f"{trace}\n")
    candidate = world.trees.collect(checkout, allowed=ALLOWED)
    return world.trees.promote(
        base, candidate, stamp=Stamp("f", NOON, trace, 2, 1), message=trace
    )


def test_a_result_that_is_not_here_is_said(world: World) -> None:
    head = commit_all(world.repo, "x") if git(world.repo, "status", "--porcelain") else ""

    with pytest.raises(WorkspaceError, match="is not in this project"):
        world.trees.base_at(("0" * 40, head or "1" * 40))
