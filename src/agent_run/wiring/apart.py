"""A copy of the project, so that work which changes files leaves the project as it was.

Accepted changes are kept as refs of a repository; here it is the copy's. The copy is made
when it is first needed, whole or not at all, and kept for those who go on later: everybody
who works there starts from the same state.
"""

import json
import threading
from dataclasses import dataclass, field, fields
from pathlib import Path

from agent_run.ports.workspace import Base, Candidate, Dirty, Result, Stamp, Workspace
from agent_run.workspace import commits
from agent_run.workspace.removal import remove_tree
from agent_run.workspace.repository import Repository
from agent_run.workspace.trees import Trees, open_workspace


@dataclass(frozen=True, slots=True)
class ProjectCopy:
    """The project at `root` as it stood once, below `folder`. Safe to use from threads."""

    root: Path
    folder: Path
    dirty: Dirty = "refuse"
    _making: threading.Lock = field(default_factory=threading.Lock)
    _promoting: threading.Lock = field(default_factory=threading.Lock)

    @property
    def state(self) -> Path:
        """Where workspaces and jobs of the copy have their place."""
        return self.folder / "state"

    def place(self) -> Path:
        """Return the root of the copy, which is made if there is none yet.

        A folder that is in no repository is returned itself: nothing is ever written there.

        Raises:
            UncommittedWork: Work that is not committed would be left out of it.
            WorkspaceError: The project cannot be copied.
        """
        with self._making:
            if not self._note.is_file():
                trees = self._open()
                if not isinstance(trees.source, Repository):
                    return self.root
                self._make(trees)
            return self.folder / self._known()["root"]

    def workspace(self) -> Workspace:
        """Return the workspace of the copy, for one of many runs at once."""
        trees = open_workspace(self.place(), self.state / "workspaces")
        known = {one.name.lstrip("_"): getattr(trees, one.name) for one in fields(Trees)}
        known.pop("held")
        return _InTurn(**known, turn=self._promoting)

    def moved(self) -> str:
        """Return what to know if the project has moved on since; empty if it has not."""
        if not self._note.is_file():
            return ""
        then, now = self._known()["head"], _head(self._open())
        if then == now:
            return ""
        return f"all work here starts from commit {then[:12]}, and the project is at {now[:12]}"

    @property
    def _note(self) -> Path:
        return self.folder / "copy.json"

    def _known(self) -> dict[str, str]:
        known: dict[str, str] = json.loads(self._note.read_text(encoding="utf-8"))
        return known

    def _open(self) -> Trees:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / ".gitignore").write_text("*\n", encoding="utf-8")
        return open_workspace(self.root, self.folder / "source")

    def _make(self, trees: Trees) -> None:
        project = self.folder / "project"
        if project.exists():  # half of one, left by a process that was killed
            remove_tree(project)
        base = trees.base(dirty=self.dirty)
        place = trees.materialize(base, None, into=project, repository=True)
        known = {"root": str(place.relative_to(self.folder)), "head": _head(trees)}
        aside = self._note.with_suffix(".new")
        aside.write_text(json.dumps(known), encoding="utf-8")
        aside.replace(self._note)


@dataclass(frozen=True, slots=True)
class _InTurn(Trees):
    """Promotes one result after the other.

    Runs of one plan have tasks of the same names, and so they move the same refs.
    """

    turn: threading.Lock = field(default_factory=threading.Lock)

    def promote(
        self, base: Base, candidate: Candidate, *, stamp: Stamp, message: str
    ) -> Result:
        """Store the candidate when nobody else stores one."""
        with self.turn:
            return Trees.promote(self, base, candidate, stamp=stamp, message=message)


def _head(trees: Trees) -> str:
    """Return the commit the project is at; empty for a folder, which is at none."""
    if not isinstance(trees.source, Repository):
        return ""
    head = commits.read(trees.source.git, "HEAD")
    return head.oid if head else ""
