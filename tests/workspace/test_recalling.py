"""An accepted change is read back from its commit as the judge saw it."""

from pathlib import Path

from agent_run.workspace.trees import open_workspace
from tests.workspace.world import World, commit_all, git, put, stamp

ALLOWED = ("src/**", "docs/**")
EDITS = {"src/app.py": "good\n", "src/new/x.py": "x\n", "src/util.py": None}


def _commit(world: World) -> str:
    result = world.trees.result("repo-142")
    assert result is not None
    return result.commit


def test_the_same_tree_and_the_same_changes_come_back(world: World) -> None:
    made = world.accept(EDITS)

    found = world.trees.accepted(_commit(world), allowed=ALLOWED)

    assert found is not None
    _, candidate = found
    assert (candidate.tree, candidate.changes) == (made.tree, made.changes)
    assert candidate.refused == ()


def test_its_files_can_be_written_long_after_the_checkout_is_gone(world: World) -> None:
    world.accept(EDITS)
    commit = _commit(world)
    put(world.repo, "src/app.py", "later\n")
    commit_all(world.repo, "later")
    later = open_workspace(world.repo, world.place / "another state")

    found = later.accepted(commit, allowed=ALLOWED)

    assert found is not None
    base, candidate = found
    result = later.materialize(base, candidate, into=world.place / "result", repository=True)
    before = later.materialize(base, None, into=world.place / "base")
    assert (result / "src/app.py").read_text() == "good\n"
    assert not (result / "src/util.py").exists()
    assert "41" in (before / "src/app.py").read_text()


def test_what_today_would_not_be_allowed_is_named(world: World) -> None:
    world.accept({"src/app.py": "good\n", "docs/guide.md": "new\n"})

    found = world.trees.accepted(_commit(world), allowed=("src/**",), protected=("src/app.py",))

    assert found is not None
    assert {(one.path, one.reason) for one in found[1].refused} == {
        ("src/app.py", "tampered"),
        ("docs/guide.md", "out_of_scope"),
    }


def test_a_change_of_mode_and_a_binary_file_are_told_apart(world: World) -> None:
    base, checkout = world.start()
    (checkout.path / "src/util.py").chmod(0o755)
    put(checkout.path, "src/data.bin", b"\0\3")
    made = world.trees.collect(checkout, allowed=ALLOWED)
    world.trees.promote(base, made, stamp=stamp(), message="x")

    found = world.trees.accepted(_commit(world), allowed=ALLOWED)

    assert found is not None
    assert found[1].changes == made.changes
    assert {one.path: (one.kind, one.added) for one in found[1].changes} == {
        "src/data.bin": ("changed", None),
        "src/util.py": ("mode", 0),
    }


def test_a_commit_that_is_gone_is_nothing(world: World) -> None:
    assert world.trees.accepted("0" * 40, allowed=ALLOWED) is None


def test_the_first_commit_of_a_project_is_no_accepted_change(world: World) -> None:
    first = git(world.repo, "rev-list", "--max-parents=0", "HEAD").splitlines()[0]

    assert world.trees.accepted(first, allowed=ALLOWED) is None


def test_paths_are_told_from_the_folder_that_is_the_root(world: World, tmp_path: Path) -> None:
    inner = open_workspace(world.repo / "src", tmp_path / "state")
    base = inner.base()
    checkout = inner.prepare(base, task_id="repo-142", claim=2)
    put(checkout.path, "app.py", "good\n")
    made = inner.collect(checkout, allowed=("app.py",))
    result = inner.promote(base, made, stamp=stamp(), message="x")

    found = inner.accepted(result.commit, allowed=("app.py",))

    assert found is not None
    assert [one.path for one in found[1].changes] == ["app.py"]
    assert found[1].refused == ()
