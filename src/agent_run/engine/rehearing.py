"""An accepted change before gates once more: the same tree, in fresh rooms.

Nothing is written to the ledger, and nothing is promoted.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from agent_run.contract.manifest import Manifest
from agent_run.engine.aside import aside, within
from agent_run.engine.folders import held_folder
from agent_run.engine.rooms import rooms_at
from agent_run.engine.site import Site
from agent_run.ports.gate import Rooms
from agent_run.ports.workspace import Candidate


@dataclass(frozen=True, slots=True)
class Rehearing:
    """Gives gates the files of accepted work again."""

    site: Site

    @asynccontextmanager
    async def files(
        self, name: str, commit: str, manifest: Manifest
    ) -> AsyncIterator[tuple[Candidate, Rooms | None] | None]:
        """Give the change that `commit` is, and rooms to run commands in; `None` if it is gone.

        `name` tells the rooms of one hearing from those of another.
        """
        workspace = self.site.workspace
        found = None
        if workspace is not None and commit:
            found = await aside(
                lambda: workspace.accepted(
                    commit,
                    allowed=manifest.allowed_paths,
                    protected=manifest.protected_paths,
                )
            )
        if found is None:
            yield None
            return
        base, candidate = found
        folder = self.site.folder / "rooms" / f"again-{name}"
        async with within(held_folder(folder, self.site.remove)):
            yield candidate, rooms_at(self.site, folder, base, candidate)
