"""Commits: one accepted tree becomes one commit at one ref, by one compare-and-set.

Before that moment the user's repository has none of its objects.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from agent_run.errors import StaleClaim, WorkspaceError
from agent_run.ports.workspace import Result, Stamp
from agent_run.workspace.plumbing import Git

NAMESPACE: Final = "refs/agent-run"
_KEPT: Final = "refs/agent-run-kept"
TASK: Final = "Task"
ROLLBACK: Final = "Rollback-Of"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*")


@dataclass(frozen=True, slots=True)
class Commit:
    """What we need to know about a commit."""

    oid: str
    tree: str
    parent: str | None
    message: str

    @property
    def trailers(self) -> Mapping[str, str]:
        """The `Key: value` lines of the last paragraph."""
        last = self.message.rstrip("\n").rpartition("\n\n")[2]
        pairs = (line.partition(": ") for line in last.splitlines())
        return {key: value for key, colon, value in pairs if colon}


def ref_of(task_id: str) -> str:
    """Return the ref that the accepted change of a task is kept at.

    Raises:
        WorkspaceError: the id is no name, so it could stand for another place.
    """
    if not _NAME.fullmatch(task_id) or task_id.endswith(".lock"):
        msg = f"task id {task_id!r} is not letters, digits, '-' and '_' joined by single dots"
        raise WorkspaceError(msg)
    return f"{NAMESPACE}/{task_id}"


def read(git: Git, name: str) -> Commit | None:
    """Return the commit that `name` stands for, or None if there is none."""
    code, out, _ = git.attempt("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    if code:
        return None
    return parsed(out.decode().strip(), git.run("cat-file", "commit", out.decode().strip()))


def accepted(git: Git, stamp: Stamp) -> Commit | None:
    """Return the commit that was accepted under `stamp`, or None if it is not here.

    Tasks of two runs may have one name, and so one ref: the ledger knows which is meant.
    """
    return read(git, stamp.commit or ref_of(stamp.task_id))


def newest(git: Git, names: Sequence[str]) -> str | None:
    """Return the one of the commits `names` that contains all the others; None if none does.

    Raises:
        WorkspaceError: one is not there.
    """
    found = tuple(dict.fromkeys(names))
    for name in found:
        if read(git, name) is None:
            msg = f"commit {name!r} is not in this project"
            raise WorkspaceError(msg)
    for one in found:
        others = (other for other in found if other != one)
        if all(contains(git, one, other) for other in others):
            return one
    return None


def contains(git: Git, one: str, other: str) -> bool:
    """Say whether the history of `one` has `other` in it."""
    return git.attempt("merge-base", "--is-ancestor", other, one)[0] == 0


def parsed(oid: str, text: bytes) -> Commit:
    """Return what the commit object `text` says."""
    head, _, message = text.decode("utf-8", "backslashreplace").partition("\n\n")
    rows = [line.split(" ", 1) for line in head.splitlines()]
    tree = next(row[1] for row in rows if row[0] == "tree")
    parent = next((row[1] for row in rows if row[0] == "parent"), None)
    return Commit(oid, tree, parent, message)


def write(git: Git, tree: str, *parent: str | None, message: str, at: datetime) -> str:
    """Write a commit object and return its id."""
    parents = tuple(word for one in parent if one for word in ("-p", one))
    when = f"@{int(at.timestamp())} +0000"
    env = {f"GIT_{who}_DATE": when for who in ("AUTHOR", "COMMITTER")}
    env |= {f"GIT_{who}_NAME": "agent-run" for who in ("AUTHOR", "COMMITTER")}
    env |= {f"GIT_{who}_EMAIL": "agent-run@localhost" for who in ("AUTHOR", "COMMITTER")}
    out = git.run("commit-tree", tree, *parents, "-F", "-", stdin=message.encode(), env=env)
    return out.decode().strip()


def message_of(text: str, stamp: Stamp, **more: str) -> str:
    """Return a commit message: the text, and trailers that nobody but us could write."""
    lines = [_tame(line) for line in text.splitlines()]
    body = "\n".join(lines).strip() or f"Result of task {stamp.task_id}"
    trailers = {TASK: stamp.task_id, "Trace": stamp.trace_id, "Claim": str(stamp.claim)}
    trailers |= {"Attempt": str(stamp.attempt), **more}
    told = (f"{key}: {_one_line(value)}" for key, value in trailers.items() if value)
    return body + "\n\n" + "\n".join(told) + "\n"


def promote(
    project: Git, quarantine: Git, commit: str, stamp: Stamp, *, also: tuple[str, ...] = ()
) -> Result:
    """Copy the quarantined objects to the project and point the task's ref at `commit`.

    Raises:
        StaleClaim: a later claim of the same trace is already there.
        WorkspaceError: someone else moved the ref meanwhile.
    """
    ref = ref_of(stamp.task_id)
    new = parsed(commit, quarantine.run("cat-file", "commit", commit))
    old = read(project, ref)
    if old and _is_same(old, new):
        return Result(old.oid, ref, old.tree)
    if old and _is_later(old, stamp):
        claim = old.trailers["Claim"]
        msg = f"claim {stamp.claim} on {stamp.task_id!r} is older than claim {claim} at {ref}"
        raise StaleClaim(msg)
    if quarantine.objects is None:
        msg = "a quarantine without a place of its own cannot be promoted"
        raise WorkspaceError(msg)
    oids = "".join(f"{oid}\n" for oid in (*also, *loose(quarantine.objects)))
    pack = quarantine.run("pack-objects", "-q", "--window=0", "--stdout", stdin=oids.encode())
    project.run("unpack-objects", "-q", "--strict", stdin=pack)
    if old and old.trailers.get("Trace", "") != stamp.trace_id:
        # What another run was given must not be swept away with its last name.
        project.run("update-ref", f"{_KEPT}/{stamp.task_id}/{old.oid}", old.oid)
    before = old.oid if old else "0" * len(commit)
    reason = f"agent-run: accepted claim {stamp.claim}"
    project.run("update-ref", "--create-reflog", "-m", reason, ref, commit, before)
    return Result(commit, ref, new.tree)


def loose(objects: Path) -> list[str]:
    """Return the ids of the loose objects below `objects`."""
    found: list[str] = []
    for folder in sorted(one for one in objects.iterdir() if len(one.name) == 2):  # noqa: PLR2004
        found += [folder.name + name for name in sorted(os.listdir(folder))]  # noqa: PTH208
    return found


def epoch() -> datetime:
    """Return the moment given to commits that must depend on their content only."""
    return datetime(1970, 1, 2, tzinfo=UTC)


def _is_same(old: Commit, new: Commit) -> bool:
    ours = (new.tree, new.parent, new.trailers.get("Trace"), new.trailers.get("Claim"))
    theirs = (old.tree, old.parent, old.trailers.get("Trace"), old.trailers.get("Claim"))
    return ours == theirs


def _is_later(old: Commit, stamp: Stamp) -> bool:
    claim = old.trailers.get("Claim", "")
    same_trace = old.trailers.get("Trace", "") == stamp.trace_id
    return same_trace and claim.isascii() and claim.isdigit() and int(claim) > stamp.claim


def _tame(line: str) -> str:
    """Keep a line of the executor's from passing as one of our trailers."""
    shown = "".join(letter if letter.isprintable() else " " for letter in line).rstrip()
    key = shown.partition(":")[0].strip().lower()
    ours = {TASK.lower(), "trace", "claim", "attempt", ROLLBACK.lower()}
    return f"> {shown}" if key in ours else shown


def _one_line(value: str) -> str:
    return " ".join(value.split())
