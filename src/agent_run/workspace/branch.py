"""An accepted change on the user's current branch, and off it again.

Everything is computed and checked before the first write, and whatever could touch work
that is not committed is refused.
"""

import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent_run.errors import ApplyRefused
from agent_run.ports.workspace import Applied, Stamp, Standing
from agent_run.workspace import commits
from agent_run.workspace.commits import Commit
from agent_run.workspace.joining import merge_trees
from agent_run.workspace.names import printable
from agent_run.workspace.plumbing import Git
from agent_run.workspace.repository import Repository, Scratch, listed

_BUSY: Final = (
    ("index.lock", "another git command is running, or one died and left 'index.lock'"),
    ("MERGE_HEAD", "a merge is in progress"),
    ("CHERRY_PICK_HEAD", "a cherry-pick is in progress"),
    ("REVERT_HEAD", "a revert is in progress"),
    ("rebase-merge", "a rebase is in progress"),
    ("rebase-apply", "a rebase is in progress"),
)


@dataclass(frozen=True, slots=True)
class _Step:
    """One move of the branch: the change from `old` to `new`, on top of what is there."""

    name: str
    old: str
    new: str


def apply(repository: Repository, stamp: Stamp) -> Applied:
    """Bring the accepted change of a task to the current branch."""
    git, task_id = repository.git, stamp.task_id
    result = commits.accepted(git, stamp)
    if result is None:
        msg = f"task {task_id!r} has no accepted change to apply"
        raise ApplyRefused(msg)
    _refuse_if_busy(git)
    head = commits.read(git, "HEAD")
    standing = _applied(git, stamp) if head else None
    if standing and _same_claim(standing, result):
        msg = f"task {task_id!r} is on this branch already, as {standing.oid[:12]}"
        raise ApplyRefused(msg)
    with Scratch(repository.store.state, "apply") as scratch:
        apart = repository.apart(scratch)
        before = _tree_above(apart, result)
        step = _Step(f"task {task_id!r}", before, result.tree)
        tree = _merged(apart, step, _tree(apart, head))
        _bring(git, apart)
    commit = result.oid
    if head is None or head.oid != result.parent:
        parent = head.oid if head else None
        commit = commits.write(git, tree, parent, message=result.message, at=stamp.at)
    return _move(repository, head, tree, commit)


def rollback(repository: Repository, stamp: Stamp) -> Applied:
    """Take an applied change back with a new commit."""
    git, task_id = repository.git, stamp.task_id
    _refuse_if_busy(git)
    head = commits.read(git, "HEAD")
    standing = _applied(git, stamp) if head else None
    if head is None or standing is None:
        msg = f"task {task_id!r} is not on this branch, so there is nothing to take back"
        raise ApplyRefused(msg)
    with Scratch(repository.store.state, "rollback") as scratch:
        apart = repository.apart(scratch)
        step = _Step(f"task {task_id!r}", standing.tree, _tree_above(apart, standing))
        tree = _merged(apart, step, head.tree)
        _bring(git, apart)
    subject = standing.message.partition("\n")[0]
    text = f'Revert "{subject}"\n\nThis reverts commit {standing.oid}.'
    message = commits.message_of(text, stamp, **{commits.ROLLBACK: standing.oid})
    commit = commits.write(git, tree, head.oid, message=message, at=stamp.at)
    return _move(repository, head, tree, commit)


def standing(repository: Repository, stamp: Stamp) -> Standing | None:
    """Return what the branch shows of the change that was accepted under `stamp`."""
    git = repository.git
    found = _newest(git, stamp) if commits.read(git, "HEAD") else None
    ours = {"Trace": stamp.trace_id, "Claim": str(stamp.claim)}
    if found is None or any(found.trailers.get(key, "") != ours[key] for key in ours):
        return None
    touched = _touched(git, _tree_above(git, found), found.tree)
    move = Applied(found.oid, _branch(git), found.parent or "", _shown(touched))
    return Standing(move, found.trailers.get(commits.ROLLBACK, ""))


def _applied(git: Git, stamp: Stamp) -> Commit | None:
    """Return the commit by which the task is on this branch now, or None if it is not."""
    found = _newest(git, stamp)
    return None if found is None or commits.ROLLBACK in found.trailers else found


def _newest(git: Git, stamp: Stamp) -> Commit | None:
    """Return the newest commit of this branch that brought the task, or took it back.

    Tasks of two runs may have one name; their traces tell them apart.
    """
    pattern = f"^{commits.TASK}: {re.escape(stamp.task_id)}$"
    ours = (stamp.task_id, stamp.trace_id)
    out = git.line("rev-list", "--extended-regexp", f"--grep={pattern}", "HEAD")
    for oid in out.splitlines():
        found = commits.read(git, oid)
        if found and _whose(found) == ours:
            return found
    return None


def _whose(commit: Commit) -> tuple[str, str]:
    return commit.trailers.get(commits.TASK, ""), commit.trailers.get("Trace", "")


def _same_claim(one: Commit, other: Commit) -> bool:
    return all(one.trailers.get(key) == other.trailers.get(key) for key in ("Trace", "Claim"))


def _refuse_if_busy(git: Git) -> None:
    for name, why in _BUSY:
        path = git.line("rev-parse", "--path-format=absolute", "--git-path", name)
        if Path(path).exists():
            msg = f"{why}; finish it first"
            raise ApplyRefused(msg)


def _tree(git: Git, commit: Commit | None) -> str:
    return commit.tree if commit else git.line("mktree")


def _tree_above(git: Git, commit: Commit) -> str:
    return _tree(git, commits.read(git, commit.parent) if commit.parent else None)


def _merged(git: Git, step: _Step, ours: str) -> str:
    """Return the tree of `ours` with the step's change, by git's own three-way merge."""
    if ours == step.old:
        return step.new
    at, message = commits.epoch(), "merge\n"
    base = commits.write(git, step.old, None, message=message, at=at)
    left = commits.write(git, ours, base, message=message, at=at)
    right = commits.write(git, step.new, base, message=message, at=at)
    tree, conflicts = merge_trees(git, left, right)
    if conflicts:
        msg = f"{step.name} conflicts with this branch in {listed(list(conflicts))}"
        raise ApplyRefused(msg)
    if tree == ours:
        msg = f"{step.name} would change nothing on this branch"
        raise ApplyRefused(msg)
    return tree


def _bring(git: Git, apart: Git) -> None:
    """Copy the objects that the merge made into the user's repository."""
    oids = "".join(f"{oid}\n" for oid in commits.loose(apart.objects or Path()))
    if oids:
        pack = apart.run("pack-objects", "-q", "--window=0", "--stdout", stdin=oids.encode())
        git.run("unpack-objects", "-q", stdin=pack)


def _move(repository: Repository, head: Commit | None, tree: str, commit: str) -> Applied:
    """Move branch, index and files to `commit`; on failure everything is as before."""
    git = repository.git
    old = head.tree if head else git.line("mktree")
    touched = _touched(git, old, tree)
    _refuse_if_uncommitted(repository, touched)
    git.attempt("update-index", "-q", "--refresh")
    code, _, err = git.attempt("read-tree", "-m", "-u", old, tree)
    if code:
        said = err.decode("utf-8", "backslashreplace").strip().splitlines()
        msg = f"git would not change the files: {said[0] if said else code}"
        raise ApplyRefused(msg)
    before = head.oid if head else ""
    reason = "agent-run: moved by request"
    moved, _, err = git.attempt(
        "update-ref", "-m", reason, "HEAD", commit, before or "0" * len(commit)
    )
    if moved:
        git.run("read-tree", "-m", "-u", tree, old)
        msg = f"the branch moved meanwhile: {err.decode('utf-8', 'backslashreplace').strip()}"
        raise ApplyRefused(msg)
    return Applied(commit, _branch(git), before, _shown(touched))


def _touched(git: Git, old: str, new: str) -> dict[bytes, bytes]:
    """Return the paths that differ between two trees, each with git's letter for how."""
    out = git.run("diff-tree", "-r", "-z", "--no-renames", "--name-status", old, new)
    words = out.split(b"\0")[:-1]
    return dict(zip(words[1::2], words[0::2], strict=True))


def _shown(paths: Iterable[bytes]) -> tuple[str, ...]:
    return tuple(printable(path) for path in sorted(paths))


def _branch(git: Git) -> str:
    code, branch, _ = git.attempt("symbolic-ref", "--quiet", "--short", "HEAD")
    return "HEAD" if code else os.fsdecode(branch).strip()


def _refuse_if_uncommitted(repository: Repository, touched: dict[bytes, bytes]) -> None:
    _refuse(
        [one.path for one in repository.status() if one.path in touched],
        "{} has changes that are not committed; commit or put them aside first",
    )
    top = os.fsencode(repository.place.top)
    new = [path for path, status in touched.items() if status == b"A"]
    _refuse(
        [path for path in new if _in_the_way(top, path, touched)],
        "{} stands in the way: the change adds a file of this name",
    )
    _refuse(
        [path for path, tag in _tags(repository.git) if path in touched and tag != b"H"],
        "{} is marked in git's index as not to be looked at; unmark it first",
    )
    _refuse(
        list(repository.filtered(touched)),
        "{} is kept by a git filter such as LFS; use git cherry-pick on the result's ref",
    )


def _refuse(paths: list[bytes], sentence: str) -> None:
    if paths:
        raise ApplyRefused(sentence.format(listed(paths)))


def _in_the_way(top: bytes, path: bytes, touched: dict[bytes, bytes]) -> bool:
    """Say whether something that git does not know is at `path`, or is no folder above it."""
    parts = path.split(b"/")
    for above in (b"/".join(parts[:count]) for count in range(1, len(parts))):
        place = top + b"/" + above
        known = above in touched
        if not known and os.path.lexists(place) and not _is_folder(place):
            return True
    goes = any(other.startswith(path + b"/") for other in touched)
    return os.path.lexists(top + b"/" + path) and not goes


def _is_folder(place: bytes) -> bool:
    return stat.S_ISDIR(os.lstat(place).st_mode)


def _tags(git: Git) -> list[tuple[bytes, bytes]]:
    rows = git.run("ls-files", "-v", "-z").split(b"\0")[:-1]
    return [(row[2:], row[:1]) for row in rows]
