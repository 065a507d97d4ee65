"""What a tool call did to the workspace, small enough to be written down with its result.

A run that is taken up again gets a fresh copy of the project. What finished calls changed is
put back from here instead of running them again.
"""

import base64
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from pydantic import Field

from agent_run.contract.base import Contract, Flag
from agent_run.errors import WorkspaceError
from agent_run.executors.agent.files import Entry, Files

MOST_BYTES: Final = 512 * 1024
"""Of all files that one call changed together."""
MOST_FILES: Final = 50_000

Snapshot = Mapping[str, tuple[int, int, int, int] | None]


class Change(Contract):
    """One file as a call left it."""

    path: str
    content: str | None
    """Base64. `None` means that the file is gone."""
    executable: Flag = False


class Changes(Contract):
    """All files that a call changed."""

    files: tuple[Change, ...] = ()
    lost: str = Field(default="")
    """Why they could not all be kept. Empty means that they were."""


def snapshot(files: Files, leftover: Callable[[str], bool]) -> Snapshot | None:
    """Return how every file stands, but for caches and build output; None if too many."""
    found: dict[str, tuple[int, int, int, int] | None] = {}
    for entry in files.entries():
        path, facts = (entry.path, entry.facts) if isinstance(entry, Entry) else (entry, None)
        if not leftover(path):
            found[path] = facts
        if len(found) > MOST_FILES:
            return None
    return found


def changes_between(before: Snapshot | None, after: Snapshot | None, files: Files) -> Changes:
    """Return what changed, or why it cannot be kept."""
    if before is None or after is None:
        return Changes(lost=f"the workspace holds more than {MOST_FILES} files")
    kept: list[Change] = []
    size = 0
    for path in sorted({*before, *after}):
        if path in before and path in after and before[path] == after[path]:
            continue
        if path not in after:
            kept.append(Change(path=path, content=None))
            continue
        facts = after[path]
        if facts is None:
            return Changes(lost=f"{path!r} is not a regular file")
        size += facts[1]
        if size > MOST_BYTES:
            return Changes(lost=f"more than {MOST_BYTES} bytes were changed")
        try:
            kept.append(change_of(path, files.read(path), executable=bool(facts[3] & 0o100)))
        except WorkspaceError as error:
            return Changes(lost=str(error))
    return Changes(files=tuple(kept))


def change_of(path: str, content: bytes, *, executable: bool = False) -> Change:
    """Return the change that leaves `content` at `path`."""
    return Change(
        path=path, content=base64.b64encode(content).decode("ascii"), executable=executable
    )


def put_back(changes: Iterable[Change], files: Files) -> None:
    """Leave the workspace as the call had left it; doing so twice does no harm."""
    for change in changes:
        if change.content is None:
            files.remove(change.path)
        else:
            content = base64.b64decode(change.content)
            files.write(change.path, content, executable=change.executable)
