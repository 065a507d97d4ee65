"""Clean rooms: each command gets a fresh copy of a trusted tree, and a fence of its own."""

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import anyio

from agent_run.engine.site import Site
from agent_run.ports.fence import Fence, Launch, Limits
from agent_run.ports.gate import Done, Errand, Which
from agent_run.ports.workspace import Base, Candidate, Workspace

_LARGEST_REPORT: Final = 16 << 20


@dataclass(slots=True)
class CleanRooms:
    """Rooms for judging one candidate; at most `at_once` stand at the same time."""

    workspace: Workspace
    fence: Fence
    base: Base
    candidate: Candidate
    folder: Path
    """Where rooms are put up and torn down."""
    remove: Callable[[Path], None]
    """Removes a folder that strangers wrote in, without following their links."""
    env: Mapping[str, str] = field(default_factory=dict)
    readable: tuple[Path, ...] = ()
    limits: Limits = field(default_factory=Limits)
    imports: tuple[str, ...] = ()
    """Folders of the project that Python imports from, relative to its root."""
    environment: str = ""
    """What findings of these rooms depend on besides the tree: the tools in them."""
    at_once: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(2))
    _number: int = 0

    def tree(self, which: Which) -> str:
        """Return the id of what such a room holds."""
        return self.base.tree if which == "base" else self.candidate.tree

    async def run(self, errand: Errand) -> Done:
        """Run one command in a room of its own, inside the fence, and tear the room down."""
        async with self.at_once:
            self._number += 1
            place = self.folder / f"room-{self._number}"
            try:
                return await self._run_in(place, errand)
            finally:
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(self.remove, place)

    async def _run_in(self, place: Path, errand: Errand) -> Done:
        reports = place / "reports"
        await anyio.to_thread.run_sync(_furnish, reports, errand)
        candidate = self.candidate if errand.which == "result" else None
        root = await anyio.to_thread.run_sync(
            lambda: self.workspace.materialize(
                self.base, candidate, into=place / "tree", repository=True
            )
        )
        own = {"AGENT_RUN_REPORTS": str(reports), **import_path(root, self.imports)}
        env = {**self.env, **own, **errand.env}
        launch = Launch(
            argv=("/bin/sh", "-c", errand.command),
            cwd=root,
            env=env,
            writable=(place / "tree", reports),
            readable=(*self.readable, *errand.readable),
            limits=replace(self.limits, wall_sec=errand.timeout_sec),
        )
        finished = await self.fence.run(launch)
        found = await anyio.to_thread.run_sync(_left, reports, errand.reports)
        return Done(finished, found)


def rooms_at(
    site: Site, folder: Path, base: Base | None, candidate: Candidate
) -> CleanRooms | None:
    """Return rooms of `site` for judging `candidate`; `None` where there is no base."""
    if base is None or site.workspace is None:
        return None
    return CleanRooms(
        workspace=site.workspace,
        fence=site.fence,
        base=base,
        candidate=candidate,
        folder=folder,
        remove=site.remove,
        env=site.env,
        readable=site.readable,
        limits=site.limits,
        imports=site.imports,
        environment=site.environment,
    )


def import_path(root: Path, imports: Sequence[str]) -> dict[str, str]:
    """Return the variables by which Python imports from the copy at `root`.

    The second is for whoever has to set the first to something else.
    """
    path = os.pathsep.join(str(root / name) for name in imports)
    return {"PYTHONPATH": path, "AGENT_RUN_IMPORTS": path} if imports else {}


def _furnish(reports: Path, errand: Errand) -> None:
    reports.mkdir(parents=True)
    for name, content in errand.papers.items():
        (reports / name).write_bytes(content)


def _left(reports: Path, names: tuple[str, ...]) -> dict[str, bytes]:
    """Return the regular files among `names`; whatever else lies there is no report."""
    found: dict[str, bytes] = {}
    for name in names:
        try:
            handle = os.open(reports / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            continue  # no report is an answer of its own: the gate says what it misses
        try:
            status = os.fstat(handle)
            if stat.S_ISREG(status.st_mode) and status.st_size <= _LARGEST_REPORT:
                found[name] = _whole(handle)
        finally:
            os.close(handle)
    return found


def _whole(handle: int) -> bytes:
    with os.fdopen(os.dup(handle), "rb") as file:
        return file.read(_LARGEST_REPORT)
