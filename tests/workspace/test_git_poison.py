"""What hostile executors do to git itself, and that nobody ever listens to it.

The executor's git folder is never read: whatever is in it, the result is the same tree,
nothing of it runs, and the user's repository is byte-identical.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.workspace.world import World, commit_all, git, put, stamp

Poison = Callable[[Path, World], object]


def configure(key: str, value: str) -> Poison:
    def poison(tree: Path, world: World) -> None:
        git(tree, "config", key, value.replace("MARKER", str(world.marker)))

    return poison


def hooks(tree: Path, world: World) -> None:
    for name in ("pre-commit", "post-checkout", "reference-transaction", "post-index-change"):
        script = f"#!/bin/sh\ntouch {world.marker}\n"
        put(tree, f".git/hooks/{name}", script).chmod(0o755)


def filters(tree: Path, world: World) -> None:
    for key in ("clean", "smudge", "process"):
        git(tree, "config", f"filter.evil.{key}", f"touch {world.marker}; cat")
    put(tree, ".git/info/attributes", "* filter=evil text eol=crlf ident\n")


def alternates(tree: Path, world: World) -> None:
    put(tree, ".git/objects/info/alternates", f"{world.repo / '.git/objects'}\n")


def replace_refs(tree: Path, world: World) -> None:
    evil = put(tree, ".git/evil", "evil = True\n")
    oid = git(tree, "hash-object", "-w", str(evil))
    for path in ("src/app.py", "src/util.py"):
        git(tree, "replace", git(tree, "rev-parse", f"HEAD:{path}"), oid)


def worktree_metadata(tree: Path, world: World) -> None:
    put(tree, ".git/commondir", f"{world.repo / '.git'}\n")
    put(tree, ".git/gitdir", f"{world.repo / '.git'}\n")
    put(tree, ".git/worktrees/x/gitdir", f"{world.repo / '.git'}\n")


def git_becomes_file(tree: Path, world: World) -> None:
    shutil.rmtree(tree / ".git")
    put(tree, ".git", f"gitdir: {world.repo / '.git'}\n")


def git_becomes_link(tree: Path, world: World) -> None:
    shutil.rmtree(tree / ".git")
    (tree / ".git").symlink_to(world.repo / ".git")


def git_becomes_pipe(tree: Path, world: World) -> None:
    shutil.rmtree(tree / ".git")
    os.mkfifo(tree / ".git")


def broken_objects(tree: Path, world: World) -> None:
    for pack in (tree / ".git/objects/pack").iterdir():
        pack.chmod(0o644)
        pack.write_bytes(b"rubbish")


def forged_refs(tree: Path, world: World) -> None:
    put(tree, ".git/refs/agent-run/repo-142", "1" * 40 + "\n")
    put(tree, ".git/packed-refs", f"{'2' * 40} refs/heads/main\n")
    put(tree, ".git/HEAD", "ref: refs/heads/../../../x\n")


def own_commits(tree: Path, world: World) -> None:
    git(tree, "checkout", "-q", "-b", "mine")
    commit_all(tree, "I did it")
    git(tree, "gc", "-q")


POISONS: dict[str, Poison] = {
    "fsmonitor": configure("core.fsmonitor", "touch MARKER"),
    "hooks path": configure("core.hooksPath", "/tmp"),
    "worktree elsewhere": configure("core.worktree", "/"),
    "external diff": configure("diff.external", "touch MARKER"),
    "pager": configure("core.pager", "touch MARKER"),
    "ssh command": configure("core.sshCommand", "touch MARKER"),
    "included file": configure("include.path", "/etc/passwd"),
    "attributes file": configure("core.attributesFile", "/etc/passwd"),
    "hooks": hooks,
    "filters": filters,
    "alternates": alternates,
    "replace refs": replace_refs,
    "worktree metadata": worktree_metadata,
    "git becomes a file": git_becomes_file,
    "git becomes a link": git_becomes_link,
    "git becomes a pipe": git_becomes_pipe,
    "git is gone": lambda tree, _: shutil.rmtree(tree / ".git"),
    "broken objects": broken_objects,
    "forged refs": forged_refs,
    "own commits": own_commits,
    "index is rubbish": lambda tree, _: put(tree, ".git/index", "rubbish"),
    "lock files": lambda tree, _: put(tree, ".git/index.lock", ""),
}


@pytest.mark.parametrize("poison", POISONS.values(), ids=POISONS)
def test_poison_in_the_executors_git_changes_nothing(world: World, poison: Poison) -> None:
    base, checkout = world.start()
    before = world.fingerprint()
    put(checkout.path, "src/app.py", "good = True\n")
    poison(checkout.top, world)
    world.marker.unlink(missing_ok=True)  # the executor's own git may have run its own poison

    candidate = world.trees.collect(checkout, allowed=("src/**",))
    written = world.files(base, candidate)

    assert [(one.path, one.kind) for one in candidate.changes] == [("src/app.py", "changed")]
    assert candidate.refused == ()
    assert (written / "src/app.py").read_text() == "good = True\n"
    assert (written / "src/util.py").read_text() == "x = 1\n"
    assert world.trees.diff(base, candidate)
    assert world.fingerprint() == before
    world.trees.promote(base, candidate, stamp=stamp(), message="Good")
    assert not world.marker.exists()
    assert git(world.repo, "rev-parse", "main") == base.commit


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_a_flag_in_the_index_hides_nothing(world: World, flag: str) -> None:
    _, checkout = world.start()
    git(checkout.top, "update-index", flag, "README.md")
    put(checkout.path, "README.md", "evil")

    candidate = world.trees.collect(checkout, allowed=("src/**",))

    assert [(one.reason, one.path) for one in candidate.refused] == [
        ("out_of_scope", "README.md")
    ]


@pytest.mark.parametrize("place", [".git/info/exclude", ".gitignore"])
def test_ignore_rules_hide_nothing(world: World, place: str) -> None:
    _, checkout = world.start()
    put(checkout.path, place, "*\n")
    put(checkout.path, "evil.py", "evil")

    candidate = world.trees.collect(checkout, allowed=("src/**",))

    assert ("out_of_scope", "evil.py") in {(one.reason, one.path) for one in candidate.refused}


def test_a_commit_of_the_executors_hides_nothing(world: World) -> None:
    _, checkout = world.start()
    put(checkout.path, "evil.py", "evil")
    commit_all(checkout.top, "sneak")
    git(checkout.top, "rm", "-q", "--cached", "README.md")

    candidate = world.trees.collect(checkout, allowed=("src/**",))

    assert [(one.reason, one.path) for one in candidate.refused] == [
        ("out_of_scope", "evil.py")
    ]


def test_no_other_branch_and_no_other_commit_can_be_read(world: World) -> None:
    first = git(world.repo, "rev-parse", "HEAD")
    git(world.repo, "checkout", "-q", "-b", "secret")
    put(world.repo, "plans.md", "secret plans\n")
    hidden = commit_all(world.repo, "secret")
    blob = git(world.repo, "rev-parse", "HEAD:plans.md")
    git(world.repo, "checkout", "-q", "main")
    put(world.repo, "README.md", "second\n")
    second = commit_all(world.repo, "second")

    _, checkout = world.start()

    known = git(checkout.top, "cat-file", "--batch-all-objects", "--batch-check")
    assert second in known
    assert not any(oid in known for oid in (first, hidden, blob))
    assert git(checkout.top, "for-each-ref", "--format=%(refname)") == "refs/heads/main"
    assert git(checkout.top, "remote") == ""
    assert git(checkout.top, "status", "--porcelain") == ""
    assert git(checkout.top, "fsck", "--strict") == ""


def test_the_copied_objects_are_not_the_stored_ones(world: World) -> None:
    base, checkout = world.start()
    for file in (checkout.top / ".git/objects/pack").iterdir():
        assert file.stat().st_nlink == 1
        file.write_bytes(b"rubbish")

    again = world.trees.prepare(base, task_id="repo-142", claim=3)

    assert git(again.top, "fsck", "--strict") == ""


def test_attributes_of_the_base_do_not_bend_its_bytes(world: World) -> None:
    put(
        world.repo, ".gitattributes", "*.txt text eol=crlf ident working-tree-encoding=UTF-16\n"
    )
    put(world.repo, "a.txt", "$Id$\nplain\n".encode("utf-16"))
    git(world.repo, "-c", "core.safecrlf=false", "add", "-A")
    git(world.repo, "commit", "-q", "-m", "attributes")

    base, checkout = world.start()

    stored = git(world.repo, "cat-file", "blob", "HEAD:a.txt") + "\n"
    assert (checkout.path / "a.txt").read_text() == stored
    assert world.trees.collect(checkout, allowed=()).tree == base.tree


def test_the_users_own_hooks_filters_and_monitor_do_not_run(world: World) -> None:
    for name in ("post-checkout", "reference-transaction", "post-index-change", "pre-commit"):
        script = f"#!/bin/sh\ntouch {world.marker}\n"
        put(world.repo, f".git/hooks/{name}", script).chmod(0o755)
    put(
        world.repo,
        ".git/config",
        (world.repo / ".git/config").read_text()
        + (
            f'[core]\n\tfsmonitor = "touch {world.marker}"\n'
            f'[filter "x"]\n\tclean = "touch {world.marker}; cat"\n\trequired\n'
            f'[diff]\n\texternal = "touch {world.marker}"\n'
        ),
    )

    world.accept({"src/app.py": "good\n"})
    world.trees.apply(stamp())
    world.trees.rollback(stamp())

    assert not world.marker.exists()


def test_a_replace_ref_of_the_users_does_not_bend_the_base(world: World) -> None:
    evil = git(world.repo, "hash-object", "-w", str(put(world.home, "evil", "evil\n")))
    git(world.repo, "replace", git(world.repo, "rev-parse", "HEAD:src/app.py"), evil)

    _, checkout = world.start()

    assert "41" in (checkout.path / "src/app.py").read_text()
