"""One shape for all checkers, and the way from a file to a check that cannot crash."""

from functools import partial
from pathlib import Path
from typing import Protocol

from anyio import to_thread

from agent_run.errors import InvalidDocument, Unfit
from agent_run.executors.content.drafts import MOST_BYTES, Draft, nothing_in, read_draft
from agent_run.executors.content.remarks import Check, blocked


class Checker(Protocol):
    """Looks at a draft and says what it found."""

    @property
    def name(self) -> str:
        """What steps and rules call it."""
        ...

    def cache_key(self, draft: Draft) -> str:
        """Return the key under which a check of `draft` may be kept."""
        ...

    async def check(self, draft: Draft, *, seconds: float | None = None) -> Check:
        """Return what was found in `draft`.

        `seconds` is all the time there is; whoever waits for others ends with what it knows.
        `None` means that only its own limits hold.
        """
        ...


async def check_file(path: Path, checker: Checker, *, most_bytes: int = MOST_BYTES) -> Check:
    """Return what `checker` finds in the file at `path`; blocked if it holds nothing."""
    try:
        draft = await to_thread.run_sync(partial(read_draft, path, most_bytes=most_bytes))
        nothing = nothing_in(draft)
        return blocked("draft", nothing) if nothing else await checker.check(draft)
    except (InvalidDocument, Unfit) as error:
        return blocked(f"{checker.name}.draft", str(error))
