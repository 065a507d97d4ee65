"""The workspace: checkouts out of a project, and one tree back into it.

A claim's checkout has a home of its own below the state folder:
`tree` is the executor's, `quarantine` holds the objects of its result, `lease` says who
works there, and `checkout.json` and `candidate.json` let another process go on.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final

from agent_run.contract.paths import Scope, fault_of
from agent_run.errors import WorkspaceError
from agent_run.ports.workspace import (
    Applied,
    Base,
    Candidate,
    Checkout,
    Dirty,
    Issue,
    Lease,
    Result,
    Stamp,
    Standing,
    Swept,
)
from agent_run.workspace import branch, commits, lease
from agent_run.workspace.bases import BaseStore
from agent_run.workspace.candidate import build, changes, settle
from agent_run.workspace.collect import Bounds, Comparison, open_top
from agent_run.workspace.folder import Folder
from agent_run.workspace.joining import joined
from agent_run.workspace.notes import candidate_from, checkout_from
from agent_run.workspace.plumbing import Git, discover, find_git
from agent_run.workspace.recalling import recalled
from agent_run.workspace.removal import empty_out, remove_tree
from agent_run.workspace.repository import Repository, Scratch, check_root
from agent_run.workspace.writer import write_tree

_REPLACED: Final = Issue("tampered", ".", "the folder of the work was replaced by another")


@dataclass(frozen=True, slots=True)
class Trees:
    """The workspace of one project. Safe to use from several threads for different claims."""

    root: Path
    state: Path
    prefix: str
    source: Repository | Folder
    store: BaseStore
    bounds: Bounds = field(default_factory=Bounds)
    _held: dict[Path, lease.Held] = field(default_factory=dict)

    def base(self, *, dirty: Dirty = "refuse") -> Base:
        """Return the state that new work starts from."""
        return self.source.base(self.root, self.prefix, dirty)

    def base_at(self, results: tuple[str, ...]) -> Base:
        """Return as a base what contains all of these commits."""
        git = self.source.git
        commit = commits.newest(git, results)
        if commit is None:
            with Scratch(self.store.state, "join") as scratch:
                apart = self.source.apart(scratch)
                commit = joined(apart, results)
                self.store.ensure(commit, apart)
        self.store.ensure(commit, git)
        tree = self.store.git(commit).line("rev-parse", "--verify", f"{commit}^{{tree}}")
        return Base(commit, tree, self.root, self.prefix)

    def prepare(
        self, base: Base, *, task_id: str, claim: int, lease: Lease = "process"
    ) -> Checkout:
        """Return a fresh copy of `base` that shares nothing with the user's repository."""
        home = self._open_home(task_id, claim, lease)
        top = home / "tree"
        try:
            path = self._write(base, base.tree, self.store.git(base.commit), top)
            self.store.plant(base.commit, top / ".git")
        except BaseException:
            self._give_up(home)
            raise
        status = os.lstat(top)
        identity = (status.st_dev, status.st_ino)
        checkout = Checkout(path, top, home, base, task_id, claim, identity)
        _note(home / "checkout.json", asdict(checkout))
        return checkout

    def reopen(self, task_id: str, claim: int) -> Checkout:
        """Return the checkout that `prepare` made for this claim, leased to this process."""
        home = self._home(task_id, claim)
        if not (home / "checkout.json").is_file():
            msg = f"there is no checkout for claim {claim} of task {task_id!r}"
            raise WorkspaceError(msg)
        if home not in self._held:
            self._held[home] = lease.take(home, "hand")
        return checkout_from((home / "checkout.json").read_text(encoding="utf-8"))

    def collect(
        self, checkout: Checkout, *, allowed: tuple[str, ...], protected: tuple[str, ...] = ()
    ) -> Candidate:
        """Return what the executor left behind, as a tree made of allowed files only."""
        base, git = checkout.base, self._quarantine(checkout)
        entries = git.entries(base.tree)
        scope = _scope(allowed, protected, _folders(entries, base.prefix))
        aside = checkout.home / "quarantine" / "aside"
        aside.mkdir()
        found = Comparison(
            entries, scope, self.store.object_format, aside, base.prefix.encode(), self.bounds
        )
        top = open_top(checkout.top, checkout.identity)
        if top is None:
            found.issues.append(_REPLACED)
        else:
            try:
                found.compare(top)
            finally:
                os.close(top)
        candidate = self._built(found, git, base, checkout.home / "quarantine")
        remove_tree(aside)
        _note(checkout.home / "candidate.json", asdict(candidate))
        return candidate

    def candidate(self, task_id: str, claim: int) -> Candidate | None:
        """Return what `collect` found for this claim, from any process; None if not yet."""
        note = self._home(task_id, claim) / "candidate.json"
        return candidate_from(note.read_text(encoding="utf-8")) if note.is_file() else None

    def materialize(
        self, base: Base, candidate: Candidate | None, *, into: Path, repository: bool = False
    ) -> Path:
        """Write the candidate, or the base if None, to the new folder `into`."""
        tree = candidate.tree if candidate else base.tree
        path = self._write(base, tree, self._reader(base, candidate), into)
        if repository:
            self.store.plant(base.commit, into / ".git")
        return path

    def diff(self, base: Base, candidate: Candidate) -> bytes:
        """Return the patch from base to candidate, for people to read."""
        options = ("-r", "-p", "-M", "--no-ext-diff", "--no-textconv", "--no-color")
        git = self._reader(base, candidate)
        return git.run("diff-tree", *options, base.tree, candidate.tree)

    def promote(
        self, base: Base, candidate: Candidate, *, stamp: Stamp, message: str
    ) -> Result:
        """Store the candidate as one commit at `refs/agent-run/<task_id>`."""
        if candidate.store is None or not candidate.store.is_dir():
            msg = f"the result of task {stamp.task_id!r} is gone; it must be made again"
            raise WorkspaceError(msg)
        quarantine = replace(self._reader(base, candidate), objects=candidate.store / "objects")
        text = commits.message_of(message, stamp)
        commit = commits.write(
            quarantine, candidate.tree, base.commit, message=text, at=stamp.at
        )
        project = self.source.git
        known = project.attempt("cat-file", "-e", f"{base.commit}^{{tree}}")[0] == 0
        also = () if known else self.store.everything(base.commit)
        return commits.promote(project, quarantine, commit, stamp, also=also)

    def result(self, task_id: str) -> Result | None:
        """Return the accepted change of a task, or None if there is none."""
        ref = commits.ref_of(task_id)
        found = commits.read(self.source.git, ref)
        return Result(found.oid, ref, found.tree) if found else None

    def accepted(
        self, commit: str, *, allowed: tuple[str, ...], protected: tuple[str, ...] = ()
    ) -> tuple[Base, Candidate] | None:
        """Return an accepted change as its judge saw it; None if it is gone."""
        project = self.source.git
        found = commits.read(project, commit)
        if found is None or found.parent is None:
            return None
        base = self.base_at((found.parent,))
        self.store.ensure(found.oid, project)
        before = project.entries(base.tree)
        scope = _scope(allowed, protected, _folders(before, self.prefix))
        made = recalled(
            project,
            before,
            trees=(base.tree, found.tree),
            prefix=os.fsencode(self.prefix),
            scope=scope,
        )
        # The store holds the objects of every commit it was asked for, as a quarantine would.
        place = self.store.folder / found.oid
        return base, Candidate(found.tree, made.changes, made.strays, (), place)

    def standing(self, stamp: Stamp) -> Standing | None:
        """Return what the current branch itself shows of the change; None if nothing."""
        if isinstance(self.source, Folder):
            return self.source.standing(stamp)
        return branch.standing(self.source, stamp)

    def apply(self, stamp: Stamp) -> Applied:
        """Bring the accepted change of a task to the current branch."""
        if isinstance(self.source, Folder):
            return self.source.apply(stamp)
        return branch.apply(self.source, stamp)

    def rollback(self, stamp: Stamp) -> Applied:
        """Take an applied change back with a new commit."""
        if isinstance(self.source, Folder):
            return self.source.rollback(stamp)
        return branch.rollback(self.source, stamp)

    def park(self, checkout: Checkout) -> None:
        """Let go of a checkout that must outlive this process until someone discards it."""
        held = self._held.pop(checkout.home, None) or lease.take(checkout.home, "hand")
        lease.write(held.fd, "hand")
        held.release()

    def discard(self, checkout: Checkout) -> None:
        """Give a checkout up; `sweep` frees its space."""
        self._give_up(checkout.home)

    def sweep(self) -> Swept:
        """Remove discarded and orphaned checkouts, never one that is in use."""
        removed, live, used = [], [], set()
        with self._locked() as runs:
            for home in sorted(one for one in runs.iterdir() if one.is_dir()):
                if home in self._held or lease.is_live(home):
                    live.append(home.name)
                    used.add(_base_of(home))
                else:
                    removed.append(home.name)
                    self._give_up(home)
        empty_out(self._trash(), self.state / "scratch")
        self.store.sweep(frozenset(used))
        return Swept(tuple(removed), tuple(live))

    # Homes

    def _home(self, task_id: str, claim: int) -> Path:
        commits.ref_of(task_id)  # refuses what is no name
        return self.state / "runs" / f"{task_id}@{claim}"

    def _open_home(self, task_id: str, claim: int, kind: Lease) -> Path:
        home = self._home(task_id, claim)
        with self._locked():
            if home in self._held or (home.exists() and lease.is_live(home)):
                msg = f"claim {claim} of task {task_id!r} has a checkout that is in use"
                raise WorkspaceError(msg)
            if home.exists():
                self._give_up(home)
            home.mkdir(mode=0o700)
            self._held[home] = lease.take(home, kind)
        return home

    def _give_up(self, home: Path) -> None:
        """Move a home out of the way; removing it is slow and can wait for `sweep`."""
        trash = self._trash()
        if home.exists():
            home.rename(trash / f"{home.name}-{os.getpid()}-{home.stat().st_ino:x}")
        held = self._held.pop(home, None)
        if held:
            held.release()

    def _trash(self) -> Path:
        trash = self.state / "trash"
        trash.mkdir(parents=True, exist_ok=True)
        return trash

    @contextmanager
    def _locked(self) -> Iterator[Path]:
        """Keep others from looking at a home before its lease is taken."""
        runs = self.state / "runs"
        runs.mkdir(parents=True, exist_ok=True)
        fd = os.open(runs / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield runs
        finally:
            os.close(fd)

    # Trees

    def _write(self, base: Base, tree: str, git: Git, into: Path) -> Path:
        into.mkdir(mode=0o755)
        write_tree(git, git.entries(tree), into)
        path = into / base.prefix if base.prefix else into
        path.mkdir(parents=True, exist_ok=True)
        return path

    def _reader(self, base: Base, candidate: Candidate | None) -> Git:
        git = self.store.git(base.commit)
        if candidate is None or candidate.store is None:
            return git
        return replace(git, alternates=(*git.alternates, candidate.store / "objects"))

    def _quarantine(self, checkout: Checkout) -> Git:
        """Return git that writes to a fresh quarantine of this checkout."""
        place, commit = checkout.home / "quarantine", checkout.base.commit
        if place.exists():
            remove_tree(place)
        (place / "objects").mkdir(parents=True)
        shutil.copyfile(self.store.folder / commit / "index", place / "index")
        git = replace(self.store.git(commit), objects=place / "objects")
        return replace(git, index=place / "index")

    def _built(self, found: Comparison, git: Git, base: Base, store: Path) -> Candidate:
        settle(found)
        tree = build(found, git, base_tree=base.tree)
        made = changes(found, git, base_tree=base.tree, tree=tree)
        return Candidate(tree, made, tuple(found.issues), tuple(found.dropped), store)


def open_workspace(
    root: Path,
    state: Path,
    *,
    git: str | None = None,
    settings: tuple[tuple[str, str], ...] = (),
    bounds: Bounds | None = None,
) -> Trees:
    """Return the workspace of the project at `root`, a git repository or a plain folder.

    `state` is a folder of our own; `git` the program, found by itself if None; `settings`
    is git configuration to keep, as `(("core.autocrlf", "input"),)`, on top of none.

    Raises:
        Unfit: git is missing or too old.
        WorkspaceError: the project cannot be worked on; the message says why.
    """
    root, state = root.resolve(), state.resolve()
    check_root(root)
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    check_root(state)
    (state / ".gitignore").write_text("*\n", encoding="utf-8")
    program = find_git(git)
    place = discover(program, root)
    if place is None or _is_ignored(program, place.directory, place.top, root):
        store = BaseStore(state, program, "sha1")
        return Trees(root, state, "", Folder(root, store), store, bounds or Bounds())
    store = BaseStore(state, program, place.object_format)
    inner = root.relative_to(place.top.resolve()).as_posix()
    prefix = "" if inner == "." else f"{inner}/"
    source = Repository.at(place, store, settings)
    return Trees(root, state, prefix, source, store, bounds or Bounds())


def _is_ignored(program: str, directory: Path, top: Path, root: Path) -> bool:
    """Say whether the repository around `root` wants nothing to do with it."""
    if root == top.resolve():
        return False
    git = Git(program, directory, work_tree=top)
    return git.attempt("check-ignore", "-q", "--", str(root))[0] == 0


def _scope(allowed: tuple[str, ...], protected: tuple[str, ...], folders: set[str]) -> Scope:
    for pattern in (*allowed, *protected):
        fault = fault_of(pattern)
        if fault:
            raise WorkspaceError(fault)
    return Scope(allowed, protected).below_folders(folders.__contains__)


def _folders(entries: Iterable[bytes], prefix: str) -> set[str]:
    inner = {os.fsdecode(path.rpartition(b"/")[0]).removeprefix(prefix) for path in entries}
    return {
        path[:place]
        for path in (f"{one}/" for one in inner)
        for place, letter in enumerate(path)
        if letter == "/"
    }


def _base_of(home: Path) -> str:
    note = home / "checkout.json"
    if not note.is_file():
        return ""
    return checkout_from(note.read_text(encoding="utf-8")).base.commit


def _note(path: Path, content: dict[str, object]) -> None:
    aside = path.with_suffix(".tmp")
    aside.write_text(json.dumps(content, default=str), encoding="utf-8")
    aside.replace(path)


__all__ = ["Trees", "open_workspace"]
