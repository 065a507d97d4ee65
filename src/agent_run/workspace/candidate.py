"""The candidate: one tree, built by git from the base and the files copied aside.

Its objects lie in a quarantine of their own until they are promoted.
"""

from dataclasses import replace
from pathlib import Path
from typing import Final

from agent_run.errors import WorkspaceError
from agent_run.ports.workspace import Change, Kind
from agent_run.workspace.collect import Comparison, Staged
from agent_run.workspace.names import colliding
from agent_run.workspace.plumbing import Entry, Git
from agent_run.workspace.writer import MODULE

_GONE: Final = "0"


def settle(found: Comparison) -> None:
    """Take out of `found` the new files that cannot stand beside what is kept."""
    if found.base.keys() >= found.staged.keys():
        return
    gone = set(found.deleted)
    kept = {path for path in found.base if path not in gone}
    folders = {path[:place] for path in kept for place in _slashes(path)}
    for path in [path for path in found.staged if path not in found.base]:
        above = next((path[:place] for place in _slashes(path) if path[:place] in kept), None)
        if above is not None:
            _take_out(found, path, _above(found, above))
        elif path in folders:
            _take_out(found, path, "stands where the base has a folder that may not go")
    new = [path for path in found.staged if path not in found.base]
    for path, other in colliding(new, kept | set(found.staged)).items():
        name = found.shown(other)
        _take_out(found, path, f"is the same as {name!r} where case or Unicode form is ignored")


def build(found: Comparison, git: Git, *, base_tree: str) -> str:
    """Return the tree of the base with the changes of `found`.

    `git` writes to the quarantine and has the base's index as its own.
    """
    if not found.staged and not found.deleted:
        return base_tree
    _store(found.staged, git)
    gone = _GONE * len(base_tree)
    rows = [b"0 %s\t%s\0" % (gone.encode(), path) for path in found.deleted]
    rows += [
        b"%o %s\t%s\0" % (one.mode, one.oid.encode(), path)
        for path, one in found.staged.items()
    ]
    git.run("update-index", "-z", "--index-info", stdin=b"".join(rows))
    return git.line("write-tree")


def changes(found: Comparison, git: Git, *, base_tree: str, tree: str) -> tuple[Change, ...]:
    """Return what differs between the two trees, with git's own count of lines."""
    if tree == base_tree:
        return ()
    lines = line_counts(git, base_tree, tree)
    told: list[Change] = []
    for path in sorted({*found.staged, *found.deleted}):
        staged, added, removed = found.staged.get(path), *lines.get(path, (0, 0))
        change = Change(found.shown(path), "deleted", "", 0, added=added, removed=removed)
        if staged is not None:
            kind, mode = _kind(found.base.get(path), staged), f"{staged.mode:o}"
            change = replace(change, kind=kind, mode=mode, size=staged.size, blob=staged.oid)
        told.append(change)
    return tuple(told)


def line_counts(
    git: Git, base_tree: str, tree: str
) -> dict[bytes, tuple[int | None, int | None]]:
    """Return by path how many lines were added and removed; `None` for a binary file."""
    out = git.run("diff-tree", "-r", "-z", "--no-renames", "--numstat", base_tree, tree)
    rows = (row.split(b"\t", 2) for row in out.split(b"\0")[:-1])
    return {path: (_number(added), _number(removed)) for added, removed, path in rows}


def _store(staged: dict[bytes, Staged], git: Git) -> None:
    """Let git hash the copies again: what is stored is what was compared."""
    copies: list[Path] = [one.copy for one in staged.values()]
    names = "".join(f"{copy}\n" for copy in copies).encode()
    out = git.line("hash-object", "-w", "--no-filters", "--stdin-paths", stdin=names)
    if out.split() != [one.oid for one in staged.values()]:
        msg = "a copied file does not have the content that was compared; collect again"
        raise WorkspaceError(msg)


def _take_out(found: Comparison, path: bytes, why: str) -> None:
    del found.staged[path]
    found.issue("tampered", path, why)


def _above(found: Comparison, above: bytes) -> str:
    if found.base[above].mode == MODULE:
        return (
            f"lies in the submodule {found.shown(above)!r}, whose content is not part of this"
        )
    return f"lies below {found.shown(above)!r}, which is a file of the base that may not go"


def _kind(before: Entry | None, after: Staged) -> Kind:
    if before is None:
        return "added"
    return "mode" if before.oid == after.oid else "changed"


def _number(text: bytes) -> int | None:
    return None if text == b"-" else int(text)


def _slashes(path: bytes) -> list[int]:
    return [place for place, byte in enumerate(path) if byte == ord("/")]
