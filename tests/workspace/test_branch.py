"""An accepted change comes to the branch on request, and never at the cost of other work."""

from pathlib import Path

import pytest

from agent_run.errors import ApplyRefused, StaleClaim
from agent_run.workspace.trees import open_workspace
from tests.workspace.world import World, commit_all, fingerprint, git, put, stamp

REF = "refs/agent-run/repo-142"


def unchanged(world: World) -> dict[str, str]:
    """Return all that a refusal must leave as it is; the index's cache of times may differ."""
    seen = fingerprint(world.repo)
    return {path: what for path, what in seen.items() if "/.git/objects" not in path}


def test_a_result_is_one_commit_at_one_ref(world: World) -> None:
    base = world.trees.base()
    before = git(world.repo, "for-each-ref", "--format=%(refname) %(objectname)")

    candidate = world.accept({"src/app.py": "good\n"})

    after = git(world.repo, "for-each-ref", "--format=%(refname) %(objectname)")
    result = world.trees.result("repo-142")
    assert result is not None
    assert set(after.splitlines()) - set(before.splitlines()) == {f"{REF} {result.commit}"}
    assert git(world.repo, "rev-parse", f"{REF}^{{tree}}") == candidate.tree == result.tree
    assert git(world.repo, "rev-parse", f"{REF}^") == base.commit
    trailers = git(world.repo, "log", "-1", "--format=%(trailers)", REF).split("\n")
    assert trailers[:4] == ["Task: repo-142", "Trace: trace-1", "Claim: 2", "Attempt: 1"]
    assert git(world.repo, "fsck", "--strict") == ""
    assert git(world.repo, "status", "--porcelain") == ""


def test_promoting_twice_gives_the_same_result(world: World) -> None:
    base, checkout = world.start()
    put(checkout.path, "src/app.py", "good\n")
    candidate = world.trees.collect(checkout, allowed=("src/**",))

    first = world.trees.promote(base, candidate, stamp=stamp(), message="x")
    again = world.trees.promote(base, candidate, stamp=stamp(), message="other words")

    assert first == again


def test_an_older_claim_does_not_replace_a_later_one(world: World) -> None:
    world.accept({"src/app.py": "late\n"}, claim=9)
    base, checkout = world.start(claim=2)
    put(checkout.path, "src/app.py", "early\n")
    candidate = world.trees.collect(checkout, allowed=("src/**",))

    with pytest.raises(StaleClaim, match="older than claim 9"):
        world.trees.promote(base, candidate, stamp=stamp(claim=2), message="x")


def test_another_run_of_the_task_replaces_the_ref_and_leaves_a_trace(world: World) -> None:
    world.accept({"src/app.py": "one\n"})
    old = git(world.repo, "rev-parse", REF)
    base, checkout = world.start(claim=1)
    put(checkout.path, "src/app.py", "two\n")
    candidate = world.trees.collect(checkout, allowed=("src/**",))

    world.trees.promote(base, candidate, stamp=stamp(claim=1, trace="trace-2"), message="x")

    assert old in git(world.repo, "reflog", "show", "--format=%H", REF)


def test_apply_moves_an_unmoved_branch_to_the_very_commit(world: World) -> None:
    world.accept({"src/app.py": "good\n", "src/new/x.py": "x\n", "src/util.py": None})

    applied = world.trees.apply(stamp())

    assert applied.commit == git(world.repo, "rev-parse", REF, "main").split()[0]
    assert git(world.repo, "rev-parse", "HEAD") == applied.commit
    assert (applied.branch, applied.paths) == (
        "main",
        ("src/app.py", "src/new/x.py", "src/util.py"),
    )
    assert (world.repo / "src/app.py").read_text() == "good\n"
    assert not (world.repo / "src/util.py").exists()
    assert git(world.repo, "status", "--porcelain") == ""


def test_apply_makes_a_new_commit_where_the_branch_moved(world: World) -> None:
    world.accept({"src/app.py": "good\n"})
    put(world.repo, "README.md", "moved\n")
    moved = commit_all(world.repo, "moved")

    applied = world.trees.apply(stamp())

    assert git(world.repo, "rev-parse", "HEAD^") == moved == applied.before
    assert (world.repo / "README.md").read_text() == "moved\n"
    assert (world.repo / "src/app.py").read_text() == "good\n"
    assert "Task: repo-142" in git(world.repo, "log", "-1", "--format=%B")
    assert git(world.repo, "status", "--porcelain") == ""


def test_apply_works_after_the_base_was_rewritten(world: World) -> None:
    world.accept({"src/app.py": "good\n"})
    git(world.repo, "commit", "-q", "--amend", "-m", "rewritten")

    world.trees.apply(stamp())

    assert git(world.repo, "rev-list", "--count", "HEAD") == "2"
    assert git(world.repo, "fsck", "--strict") == ""


def test_a_conflict_is_refused_and_leaves_everything(world: World) -> None:
    world.accept({"src/app.py": "mine\n"})
    put(world.repo, "src/app.py", "theirs\n")
    commit_all(world.repo, "moved")
    before = unchanged(world)

    with pytest.raises(ApplyRefused, match=r"conflicts with this branch in 'src/app\.py'"):
        world.trees.apply(stamp())

    assert unchanged(world) == before


@pytest.mark.parametrize("staged", [False, True])
def test_uncommitted_work_in_a_touched_file_is_refused(world: World, *, staged: bool) -> None:
    world.accept({"src/app.py": "good\n"})
    put(world.repo, "src/app.py", "my own work\n")
    if staged:
        git(world.repo, "add", "src/app.py")
    before = unchanged(world)

    with pytest.raises(ApplyRefused, match=r"'src/app\.py' has changes that are not committed"):
        world.trees.apply(stamp())

    assert unchanged(world) == before


def test_uncommitted_work_elsewhere_stays_as_it_is(world: World) -> None:
    world.accept({"src/app.py": "good\n"})
    put(world.repo, "README.md", "my own work\n")
    put(world.repo, "docs/guide.md", "staged\n")
    git(world.repo, "add", "docs/guide.md")
    put(world.repo, "notes.txt", "untracked\n")

    world.trees.apply(stamp())
    world.trees.rollback(stamp())

    assert git(world.repo, "status", "--porcelain").splitlines() == [
        " M README.md",
        "M  docs/guide.md",
        "?? notes.txt",
    ]
    assert (world.repo / "README.md").read_text() == "my own work\n"


@pytest.mark.parametrize("ignored", [False, True])
def test_a_file_in_the_way_of_a_new_one_is_refused(world: World, *, ignored: bool) -> None:
    world.accept({"src/new.py": "good\n"})
    put(world.repo, "src/new.py", "my own\n")
    if ignored:
        put(world.repo, ".git/info/exclude", "src/new.py\n")

    with pytest.raises(ApplyRefused, match=r"src/new\.py"):
        world.trees.apply(stamp())

    assert (world.repo / "src/new.py").read_text() == "my own\n"


@pytest.mark.parametrize("kind", ["file", "link"])
def test_what_stands_where_a_folder_must_be_is_refused(world: World, kind: str) -> None:
    world.accept({"src/new/x.py": "good\n"})
    if kind == "file":
        put(world.repo, "src/new", "my own\n")
    else:
        (world.repo / "src/new").symlink_to(world.home)
    before = world.fingerprint()

    with pytest.raises(ApplyRefused, match=r"src/new/x\.py"):
        world.trees.apply(stamp())

    assert set(world.fingerprint()) >= set(before)
    assert not (world.home / "x.py").exists()


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_a_file_git_is_told_not_to_look_at_is_refused(world: World, flag: str) -> None:
    world.accept({"src/app.py": "good\n"})
    git(world.repo, "update-index", flag, "src/app.py")
    put(world.repo, "src/app.py", "my own\n")

    with pytest.raises(ApplyRefused, match="not to be looked at"):
        world.trees.apply(stamp())

    assert (world.repo / "src/app.py").read_text() == "my own\n"


@pytest.mark.parametrize(
    ("name", "said"),
    [("index.lock", "another git command"), ("MERGE_HEAD", "merge"), ("REVERT_HEAD", "revert")],
)
def test_nothing_is_applied_in_the_middle_of_something_else(
    world: World, name: str, said: str
) -> None:
    world.accept({"src/app.py": "good\n"})
    put(world.repo, f".git/{name}", "")

    with pytest.raises(ApplyRefused, match=said):
        world.trees.apply(stamp())
    with pytest.raises(ApplyRefused, match=said):
        world.trees.rollback(stamp())


def test_a_file_behind_a_filter_is_refused(world: World) -> None:
    put(world.repo, ".gitattributes", "*.py filter=lfs\n")
    commit_all(world.repo, "lfs")
    world.accept({"src/app.py": "good\n"})

    with pytest.raises(ApplyRefused, match="LFS"):
        world.trees.apply(stamp())


def test_what_was_not_accepted_cannot_be_applied_or_taken_back(world: World) -> None:
    with pytest.raises(ApplyRefused, match="no accepted change"):
        world.trees.apply(stamp())
    with pytest.raises(ApplyRefused, match="not on this branch"):
        world.trees.rollback(stamp())


def test_applying_twice_is_refused_and_after_rollback_it_works_again(world: World) -> None:
    world.accept({"src/app.py": "good\n"})
    world.trees.apply(stamp())
    with pytest.raises(ApplyRefused, match="on this branch already"):
        world.trees.apply(stamp())

    world.trees.rollback(stamp())
    with pytest.raises(ApplyRefused, match="not on this branch"):
        world.trees.rollback(stamp())
    world.trees.apply(stamp())

    assert (world.repo / "src/app.py").read_text() == "good\n"
    assert git(world.repo, "rev-list", "--count", "HEAD") == "4"


def test_rollback_keeps_what_came_after(world: World) -> None:
    world.accept({"src/app.py": "good\n", "src/new.py": "new\n"})
    world.trees.apply(stamp())
    put(world.repo, "README.md", "later\n")
    commit_all(world.repo, "later")

    world.trees.rollback(stamp())

    assert (world.repo / "README.md").read_text() == "later\n"
    assert "41" in (world.repo / "src/app.py").read_text()
    assert not (world.repo / "src/new.py").exists()
    assert "This reverts commit" in git(world.repo, "log", "-1", "--format=%B")
    assert git(world.repo, "status", "--porcelain") == ""


def test_rollback_of_what_was_changed_since_is_refused(world: World) -> None:
    world.accept({"src/app.py": "good\n"})
    world.trees.apply(stamp())
    put(world.repo, "src/app.py", "better\n")
    commit_all(world.repo, "better")
    before = unchanged(world)

    with pytest.raises(ApplyRefused, match="conflicts"):
        world.trees.rollback(stamp())

    assert unchanged(world) == before


def test_a_file_may_become_a_folder_and_back(world: World) -> None:
    base, checkout = world.start()
    (checkout.path / "src/util.py").unlink()
    put(checkout.path, "src/util.py/__init__.py", "x\n")
    candidate = world.trees.collect(checkout, allowed=("src/**",))
    world.trees.promote(base, candidate, stamp=stamp(), message="package")

    world.trees.apply(stamp())
    assert (world.repo / "src/util.py/__init__.py").is_file()
    world.trees.rollback(stamp())

    assert (world.repo / "src/util.py").is_file()
    assert git(world.repo, "status", "--porcelain") == ""


def test_apply_moves_a_detached_head(world: World) -> None:
    git(world.repo, "checkout", "-q", "--detach")
    world.accept({"src/app.py": "good\n"})

    applied = world.trees.apply(stamp())

    assert applied.branch == "HEAD"
    assert git(world.repo, "rev-parse", "HEAD") == applied.commit
    assert git(world.repo, "rev-parse", "main") == applied.before


def test_apply_works_in_a_repository_without_a_commit(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    git(repo, "init", "-q", "-b", "main")
    trees = open_workspace(repo, tmp_path / "state")
    base = trees.base()
    checkout = trees.prepare(base, task_id="repo-142", claim=2)
    assert [one.name for one in checkout.path.iterdir()] == [".git"]
    put(checkout.path, "src/app.py", "first\n")
    candidate = trees.collect(checkout, allowed=("src/**",))
    trees.promote(base, candidate, stamp=stamp(), message="First")

    trees.apply(stamp())

    assert (repo / "src/app.py").read_text() == "first\n"
    assert git(repo, "rev-list", "--count", "HEAD") == "1"
    assert git(repo, "status", "--porcelain") == ""
