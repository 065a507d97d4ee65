"""The base: what is committed, or what the user has now, but never by losing anything."""

from pathlib import Path

import pytest

from agent_run.errors import UncommittedWork, WorkspaceError
from agent_run.ports.workspace import Workspace
from agent_run.workspace.trees import open_workspace
from tests.workspace.world import World, commit_all, fingerprint, git, put, stamp


def test_uncommitted_work_is_refused_and_named(world: World) -> None:
    put(world.repo, "src/app.py", "my work\n")
    put(world.repo, "staged.py", "staged\n")
    git(world.repo, "add", "staged.py")
    before = world.fingerprint()

    with pytest.raises(UncommittedWork, match=r"'src/app\.py', 'staged\.py'; commit them"):
        world.trees.base()

    assert world.fingerprint() == before


def test_uncommitted_work_is_carried_and_said_so(world: World) -> None:
    put(world.repo, "src/app.py", "my work\n")
    put(world.repo, "src/fresh.py", "untracked\n")
    (world.repo / "docs/guide.md").unlink()
    before = world.fingerprint()

    base = world.trees.base(dirty="carry")
    checkout = world.trees.prepare(base, task_id="repo-142", claim=2)

    assert set(base.carried) == {"src/app.py", "src/fresh.py", "docs/guide.md"}
    assert (checkout.path / "src/app.py").read_text() == "my work\n"
    assert (checkout.path / "src/fresh.py").read_text() == "untracked\n"
    assert not (checkout.path / "docs/guide.md").exists()
    assert git(checkout.top, "status", "--porcelain") == ""
    assert world.fingerprint() == before
    assert world.trees.base(dirty="carry") == base


def test_a_result_on_carried_work_can_be_promoted_and_later_applied(world: World) -> None:
    put(world.repo, "src/app.py", "my work\n")
    base = world.trees.base(dirty="carry")
    checkout = world.trees.prepare(base, task_id="repo-142", claim=2)
    put(checkout.path, "src/app.py", "my work\nand theirs\n")
    candidate = world.trees.collect(checkout, allowed=("src/**",))
    world.trees.promote(base, candidate, stamp=stamp(), message="x")
    with pytest.raises(WorkspaceError, match=r"not committed|conflicts"):
        world.trees.apply(stamp())
    assert (world.repo / "src/app.py").read_text() == "my work\n"

    commit_all(world.repo, "mine")
    world.trees.apply(stamp())

    assert (world.repo / "src/app.py").read_text() == "my work\nand theirs\n"
    assert git(world.repo, "fsck", "--strict") == ""


def test_files_git_does_not_know_are_no_hindrance_but_told(world: World) -> None:
    put(world.repo, "tasks/repo-142.yaml", "task_id: repo-142\n")

    base = world.trees.base()

    assert base.commit == git(world.repo, "rev-parse", "HEAD")
    assert "'tasks/repo-142.yaml'" in base.notes[0]


def test_an_unfinished_merge_is_not_carried(world: World) -> None:
    git(world.repo, "checkout", "-q", "-b", "other")
    put(world.repo, "src/app.py", "other\n")
    commit_all(world.repo, "other")
    git(world.repo, "checkout", "-q", "main")
    put(world.repo, "src/app.py", "main\n")
    commit_all(world.repo, "main")
    with pytest.raises(AssertionError, match="git"):
        git(world.repo, "merge", "other")

    with pytest.raises(UncommittedWork, match="middle of a merge"):
        world.trees.base(dirty="carry")


def test_a_new_attempt_starts_from_the_base(world: World) -> None:
    base, first = world.start(claim=2)
    put(first.path, "src/app.py", "spoilt\n")
    put(first.path, "evil.py", "x")
    world.trees.discard(first)

    second = world.trees.prepare(base, task_id="repo-142", claim=3)

    assert "41" in (second.path / "src/app.py").read_text()
    assert not (second.path / "evil.py").exists()
    assert world.trees.collect(second, allowed=()).tree == base.tree


def test_the_judge_gets_a_clean_tree_with_or_without_git(world: World) -> None:
    base, checkout = world.start()
    put(checkout.path, "src/app.py", "new\n")
    put(checkout.path, "src/__pycache__/app.pyc", "prepared")
    candidate = world.trees.collect(checkout, allowed=("src/**",))

    bare = world.files(base, candidate, "bare")
    before = world.files(base, None, "before")
    whole = world.trees.materialize(
        base, candidate, into=world.place / "whole", repository=True
    )

    assert not (bare / ".git").exists()
    assert not (bare / "src/__pycache__").exists()
    assert "41" in (before / "src/app.py").read_text()
    assert git(whole, "status", "--porcelain") == " M src/app.py"


def test_a_late_write_changes_nothing(world: World) -> None:
    base, checkout = world.start()
    put(checkout.path, "src/app.py", "good\n")
    candidate = world.trees.collect(checkout, allowed=("src/**",))

    put(checkout.path, "src/app.py", "evil\n")
    put(checkout.path, "src/late.py", "evil\n")
    written = world.files(base, candidate)
    result = world.trees.promote(base, candidate, stamp=stamp(), message="x")

    assert (written / "src/app.py").read_text() == "good\n"
    assert not (written / "src/late.py").exists()
    assert git(world.repo, "show", f"{result.commit}:src/app.py") == "good"
    assert result.tree == candidate.tree


def test_it_is_what_the_port_asks_for(world: World) -> None:
    workspace: Workspace = world.trees

    assert workspace.result("repo-142") is None


def test_a_shallow_clone_works(world: World, tmp_path: Path) -> None:
    put(world.repo, "README.md", "second\n")
    commit_all(world.repo, "second")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{world.repo}", "clone")
    trees = open_workspace(tmp_path / "clone", tmp_path / "s2")

    base = trees.base()
    checkout = trees.prepare(base, task_id="repo-142", claim=1)
    put(checkout.path, "src/app.py", "good\n")
    candidate = trees.collect(checkout, allowed=("src/**",))
    trees.promote(base, candidate, stamp=stamp(), message="x")
    trees.apply(stamp())

    assert (tmp_path / "clone/src/app.py").read_text() == "good\n"


def test_a_sha256_repository_works(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    git(repo, "init", "-q", "--object-format=sha256")
    put(repo, "src/app.py", "old\n")
    commit_all(repo, "first")
    trees = open_workspace(repo, tmp_path / "state")
    base = trees.base()
    checkout = trees.prepare(base, task_id="repo-142", claim=1)
    assert git(checkout.top, "status", "--porcelain") == ""
    put(checkout.path, "src/app.py", "good\n")

    candidate = trees.collect(checkout, allowed=("src/**",))
    trees.promote(base, candidate, stamp=stamp(), message="x")
    trees.apply(stamp())

    assert len(candidate.tree) == 64
    assert (repo / "src/app.py").read_text() == "good\n"


def test_a_root_below_the_top_of_its_repository_works(world: World) -> None:
    put(world.repo, "services/api/src/app.py", "old\n")
    commit_all(world.repo, "service")
    trees = open_workspace(world.repo / "services/api", world.place / "s2")
    base = trees.base()
    checkout = trees.prepare(base, task_id="repo-142", claim=1)
    assert base.prefix == "services/api/"
    put(checkout.path, "src/app.py", "good\n")
    put(checkout.top, "src/app.py", "evil\n")

    candidate = trees.collect(checkout, allowed=("src/**",))

    assert [one.path for one in candidate.changes] == ["src/app.py"]
    assert [(one.reason, one.path) for one in candidate.refused] == [
        ("out_of_scope", "../../src/app.py")
    ]
    written = trees.materialize(base, candidate, into=world.place / "j")
    assert (written / "src/app.py").read_text() == "good\n"
    assert "41" in (world.place / "j/src/app.py").read_text()


def test_a_linked_worktree_works(world: World) -> None:
    git(world.repo, "worktree", "add", "-q", "-b", "side", str(world.place / "side"))
    trees = open_workspace(world.place / "side", world.place / "s2")
    base = trees.base()
    checkout = trees.prepare(base, task_id="repo-142", claim=1)
    put(checkout.path, "src/app.py", "good\n")
    candidate = trees.collect(checkout, allowed=("src/**",))
    trees.promote(base, candidate, stamp=stamp(), message="x")

    assert trees.apply(stamp()).branch == "side"

    assert (world.place / "side/src/app.py").read_text() == "good\n"
    assert "41" in (world.repo / "src/app.py").read_text()


def test_submodules_and_stored_pointers_are_told(world: World) -> None:
    git(world.repo, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},vendor")
    put(world.repo, ".gitattributes", "*.psd filter=lfs diff=lfs merge=lfs\n")
    git(world.repo, "add", ".gitattributes")
    git(world.repo, "commit", "-q", "-m", "module")
    (world.repo / "vendor").mkdir()

    notes = " ".join(world.trees.base().notes)

    assert "submodules 'vendor'" in notes
    assert "LFS are pointers" in notes


def test_what_cannot_be_worked_on_gets_a_sentence(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "bare.git")

    with pytest.raises(WorkspaceError, match="bare repository"):
        open_workspace(tmp_path / "bare.git", tmp_path / "state")
    with pytest.raises(WorkspaceError, match="is not a folder"):
        open_workspace(tmp_path / "nowhere", tmp_path / "state")


def test_a_pattern_that_leaves_the_root_is_refused(world: World) -> None:
    _, checkout = world.start()

    with pytest.raises(WorkspaceError, match=r"'\.\./x'"):
        world.trees.collect(checkout, allowed=("../x",))


def test_the_state_may_lie_in_the_repository(world: World) -> None:
    trees = open_workspace(world.repo, world.repo / ".agent-run" / "workspaces")

    base = trees.base(dirty="carry")
    checkout = trees.prepare(base, task_id="repo-142", claim=1)

    assert base.carried == ()
    assert not (checkout.path / ".agent-run").exists()
    assert git(world.repo, "status", "--porcelain") == ""


def test_the_base_is_copied_once(world: World) -> None:
    base, _ = world.start()
    packs = fingerprint(world.state / "bases")

    world.trees.prepare(world.trees.base(), task_id="other", claim=1)

    assert fingerprint(world.state / "bases") == packs
    assert [one.name for one in (world.state / "bases").iterdir() if one.is_dir()] == [
        base.commit
    ]
