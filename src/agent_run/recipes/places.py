"""Where recipes work: a real ledger and real gates, for tasks that touch no files."""

import os
from collections.abc import Iterable
from pathlib import Path

from pydantic import JsonValue

from agent_run.contract.payload import canonical
from agent_run.desk import Desk
from agent_run.engine.site import Site
from agent_run.engine.telling import Listener, to_nobody
from agent_run.gates.cache import NoCache
from agent_run.gates.record import ConfidenceGate, RecordGate
from agent_run.ports.gate import Cache
from agent_run.wiring.opening import wall_clock
from agent_run.workspace.fence import open_fence
from agent_run.workspace.removal import remove_tree


def file_less_site(
    desk: Desk, state: Path, *, cache: Cache | None = None, tell: Listener = to_nobody
) -> Site:
    """Return a site whose executors are functions of this process."""
    return Site(
        desk=desk,
        workspace=None,
        fence=open_fence("off"),
        gates=(RecordGate(), ConfidenceGate()),
        cache=cache or NoCache(),
        clock=wall_clock,
        folder=state / "work",
        remove=remove_tree,
        tell=tell,
    )


def write_json(place: Path, value: JsonValue) -> None:
    """Write `value` to `place`, whole or not at all; written again, it is the same."""
    write_text(place, canonical(value) + "\n")


def write_text(place: Path, text: str) -> None:
    """Write `text` to `place`, whole or not at all."""
    place.parent.mkdir(parents=True, exist_ok=True)
    # A name of our own: of two processes that write at once, neither gets half of the other.
    draft = place.with_name(f".{place.name}.{os.getpid()}.new")
    try:
        draft.write_text(text, encoding="utf-8", errors="backslashreplace")
        draft.replace(place)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def sentence_of(words: Iterable[str]) -> str:
    """Return the words as one enumeration, `a, b and c`."""
    listed = list(words)
    if len(listed) < 2:  # noqa: PLR2004 - one word needs no `and`
        return "".join(listed)
    return f"{', '.join(listed[:-1])} and {listed[-1]}"
