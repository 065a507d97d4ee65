"""An accepted change, read back from its two trees as changes and as strays."""

from dataclasses import dataclass

from agent_run.contract.paths import Scope
from agent_run.ports.workspace import Change, Issue, Kind
from agent_run.workspace.candidate import line_counts
from agent_run.workspace.names import printable
from agent_run.workspace.plumbing import Entry, Git


@dataclass(frozen=True, slots=True)
class Recalled:
    """What differs between two trees, and what of it is not allowed."""

    changes: tuple[Change, ...]
    strays: tuple[Issue, ...]


def recalled(
    git: Git,
    before: dict[bytes, Entry],
    *,
    trees: tuple[str, str],
    prefix: bytes,
    scope: Scope,
) -> Recalled:
    """Return how the second of `trees` differs from the first, whose files are `before`."""
    after, lines = git.entries(trees[1]), line_counts(git, *trees)
    changes: list[Change] = []
    strays: list[Issue] = []
    for path in sorted(name for name in {**before, **after} if _differs(name, before, after)):
        old, new = before.get(path), after.get(path)
        shown = _shown(path, prefix)
        changes.append(_change(shown, old, new, lines.get(path, (0, 0))))
        standing = _standing(path, prefix, scope, in_base=old is not None)
        if standing == "protected":
            strays.append(Issue("tampered", shown, f"{shown!r} is protected"))
        elif standing != "allowed":
            strays.append(Issue("out_of_scope", shown, f"{shown!r} is not in allowed_paths"))
    return Recalled(tuple(changes), tuple(strays))


def _differs(path: bytes, before: dict[bytes, Entry], after: dict[bytes, Entry]) -> bool:
    return before.get(path) != after.get(path)


def _change(
    path: str,
    before: Entry | None,
    after: Entry | None,
    lines: tuple[int | None, int | None],
) -> Change:
    added, removed = lines
    if after is None:
        return Change(path, "deleted", "", 0, added=added, removed=removed)
    changed: Kind = "mode" if before is not None and before.oid == after.oid else "changed"
    return Change(
        path=path,
        kind="added" if before is None else changed,
        mode=f"{after.mode:o}",
        size=after.size,
        blob=after.oid,
        added=added,
        removed=removed,
    )


def _standing(path: bytes, prefix: bytes, scope: Scope, *, in_base: bool) -> str:
    if not path.startswith(prefix):
        return "outside"
    inner = path[len(prefix) :].decode("utf-8", "surrogateescape")
    return scope.standing(inner, in_base=in_base)


def _shown(path: bytes, prefix: bytes) -> str:
    if path.startswith(prefix):
        return printable(path[len(prefix) :])
    return "../" * prefix.count(b"/") + printable(path)
