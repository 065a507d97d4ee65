"""Several results as one base: joined by git's own three-way merge, or refused by name.

A join depends on the results alone, so whoever makes it again gets the same commit.
"""

from collections.abc import Sequence

from agent_run.errors import WorkspaceError
from agent_run.workspace import commits
from agent_run.workspace.plumbing import Git
from agent_run.workspace.repository import listed

_MESSAGE = "Results of several tasks, joined as the base of the next\n"


def joined(git: Git, names: Sequence[str]) -> str:
    """Return a commit that contains all of the commits `names`; `git` writes what it takes.

    Raises:
        WorkspaceError: One is not there, or two of them changed the same lines.
    """
    whole, *others = dict.fromkeys(names)
    for other in others:
        if commits.contains(git, other, whole):
            whole = other
        elif not commits.contains(git, whole, other):
            whole = _merged(git, whole, other)
    return whole


def merge_trees(git: Git, ours: str, theirs: str) -> tuple[str, tuple[bytes, ...]]:
    """Return the tree that joins two commits, and the paths in which they conflict.

    Raises:
        WorkspaceError: git could not try.
    """
    options = ("--write-tree", "--name-only", "--no-messages", "-z")
    code, out, err = git.attempt("merge-tree", *options, ours, theirs)
    if code not in {0, 1}:
        said = err.decode("utf-8", "backslashreplace").strip()
        msg = f"git merge-tree failed: {said}"
        raise WorkspaceError(msg)
    tree, *paths = out.split(b"\0")
    conflicts = dict.fromkeys(path for path in paths if path)
    return tree.decode(), tuple(conflicts) if code else ()


def _merged(git: Git, one: str, other: str) -> str:
    tree, conflicts = merge_trees(git, one, other)
    if conflicts:
        names = f"{one[:12]} and {other[:12]}"
        msg = f"the results {names} conflict in {listed(list(conflicts))}"
        raise WorkspaceError(msg)
    return commits.write(git, tree, one, other, message=_MESSAGE, at=commits.epoch())
