"""The base store: for each base commit a folder with its objects and nothing more.

No other branch, no later and no earlier commit is in it, so what is copied from it into a
checkout cannot show an executor more than the base itself.
A folder is complete or absent: it is made aside and renamed.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from agent_run.workspace.plumbing import Git, ObjectFormat, anchor, repository_config
from agent_run.workspace.removal import remove_tree

_KEPT: Final = 4
_WHO: Final = "[user]\n\tname = executor\n\temail = executor@localhost\n"


@dataclass(frozen=True, slots=True)
class BaseStore:
    """The bases of one project below `state`."""

    state: Path
    program: str
    object_format: ObjectFormat

    @property
    def folder(self) -> Path:
        return self.state / "bases"

    def objects(self, commit: str) -> Path:
        """Return where the objects of `commit` are."""
        return self.folder / commit / "objects"

    def git(self, commit: str) -> Git:
        """Return git over the objects of `commit`, which writes nowhere."""
        directory = anchor(self.state, self.object_format)
        return Git(self.program, directory, alternates=(self.objects(commit),))

    def has(self, commit: str) -> bool:
        return (self.folder / commit).is_dir()

    def everything(self, commit: str) -> tuple[str, ...]:
        """Return the ids of all objects of `commit`, itself included."""
        return (commit, *_objects_of(commit, self.git(commit)))

    def ensure(self, commit: str, source: Git) -> None:
        """Copy the objects of `commit` from `source`, once."""
        if self.has(commit):
            os.utime(self.folder / commit)
            return
        with self._locked():
            if not self.has(commit):
                self._make(commit, source)

    def plant(self, commit: str, into: Path) -> None:
        """Make `into` a repository of its own that knows `commit` and nothing else."""
        (into / "objects" / "pack").mkdir(parents=True)
        (into / "objects" / "info").mkdir()
        (into / "refs" / "heads").mkdir(parents=True)
        (into / "refs" / "tags").mkdir()
        (into / "info").mkdir()
        for file in (self.objects(commit) / "pack").iterdir():
            # A copy: a hard link would let the executor write into the store.
            shutil.copyfile(file, into / "objects" / "pack" / file.name)
        shutil.copyfile(self.folder / commit / "index", into / "index")
        (into / "config").write_text(repository_config(self.object_format, bare=False) + _WHO)
        (into / "refs" / "heads" / "main").write_text(f"{commit}\n")
        (into / "shallow").write_text(f"{commit}\n")
        (into / "HEAD").write_text("ref: refs/heads/main\n")

    def sweep(self, used: frozenset[str]) -> None:
        """Forget all but the latest bases and those that are `used`."""
        if not self.folder.is_dir():
            return
        with self._locked():
            whole = [one for one in self.folder.iterdir() if one.is_dir()]
            for half in (one for one in whole if one.name.startswith(".")):
                remove_tree(half)
            idle = [one for one in whole if one.name[0] != "." and one.name not in used]
            idle.sort(key=lambda one: one.stat().st_mtime_ns, reverse=True)
            for old in idle[_KEPT:]:
                remove_tree(old)

    def _make(self, commit: str, source: Git) -> None:
        aside = self.folder / f".making-{commit}"
        if aside.exists():
            remove_tree(aside)
        (aside / "objects" / "pack").mkdir(parents=True)
        tree, *more = _objects_of(commit, source)
        wanted = "".join(f"{oid}\n" for oid in (commit, tree, *more)).encode()
        pack = str(aside / "objects" / "pack" / "pack")
        source.run(
            "pack-objects", "-q", "--window=0", "--delta-base-offset", pack, stdin=wanted
        )
        directory = anchor(self.state, self.object_format)
        made = Git(self.program, directory, alternates=(aside / "objects",))
        replace(made, index=aside / "index").run("read-tree", tree)
        aside.rename(self.folder / commit)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        fd = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)


def _objects_of(commit: str, source: Git) -> tuple[str, ...]:
    """Return the tree of `commit` and all that is below it, submodules left out."""
    tree = source.line("rev-parse", "--verify", f"{commit}^{{tree}}")
    listed = source.run("ls-tree", "-r", "-t", "-z", "--full-tree", tree)
    kinds = (row.split(b"\t", 1)[0].split() for row in listed.split(b"\0")[:-1])
    oids = dict.fromkeys(oid.decode() for _, kind, oid in kinds if kind != b"commit")
    return (tree, *oids)
