"""Work by hand: a person gets a copy of the project, and what it then holds is collected.

The copy waits for its owner, however long that takes. Its place is written to the ledger, so
that whoever hands in under the same claim hands in those files and no others.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from agent_run.contract.base import RunId, TaskId
from agent_run.contract.claim import ClaimCheck
from agent_run.contract.record import Record
from agent_run.engine.basing import base_for, checkout_name
from agent_run.engine.observing import observation
from agent_run.engine.site import Site
from agent_run.errors import Unfit
from agent_run.ledger.commands import WriteNote
from agent_run.ledger.events import NoteWritten
from agent_run.ledger.pages import Page
from agent_run.ledger.state import BY_HAND
from agent_run.ports.executor import Seen, Work
from agent_run.ports.workspace import Workspace

_TOPIC: Final = "checkout"


@dataclass(frozen=True, slots=True)
class HandedIn:
    """What a person left in the copy."""

    observed: dict[str, JsonValue]
    refused: tuple[str, ...] = ()
    """Sentences about what does not enter the result."""


def check_out(site: Site, check: ClaimCheck) -> Path:
    """Make a copy for the owner of `check` to work in, and return where it is.

    Raises:
        Unfit: There is no project here.
        WorkspaceError: The claim has a copy already, or the project cannot be copied.
    """
    run_id, claim = check.run_id or check.task_id, check.claim or 0
    workspace = _workspace(site)
    base = base_for(site, check, workspace)
    name = checkout_name(run_id, check.task_id)
    checkout = workspace.prepare(base, task_id=name, claim=claim, lease="hand")
    workspace.park(checkout)
    body: dict[str, JsonValue] = {"claim": claim, "path": str(checkout.path)}
    site.desk.handle(
        run_id,
        WriteNote(actor=check.owner, topic=_TOPIC, body=body, task_id=check.task_id),
    )
    return checkout.path


def checked_out(pages: list[Page], task_id: TaskId, claim: int) -> Path | None:
    """Return where the copy for this claim is; None if there is none."""
    for page in reversed(pages):
        if page.kind != "note_written" or page.task_id != task_id:
            continue
        event = page.event()
        if isinstance(event, NoteWritten) and event.topic == _TOPIC:
            body = event.body if isinstance(event.body, dict) else {}
            if body.get("claim") == claim:
                return Path(str(body["path"]))
    return None


def collect(site: Site, run_id: RunId, task_id: TaskId, claim: int, record: Record) -> HandedIn:
    """Read the copy of this claim once, and leave what it gave for the judge.

    Raises:
        WorkspaceError: The copy is not on this machine.
    """
    workspace = _workspace(site)
    manifest = site.desk.run(run_id).tasks[task_id].manifest
    checkout = workspace.reopen(checkout_name(run_id, task_id), claim)
    try:
        candidate = workspace.collect(
            checkout, allowed=manifest.allowed_paths, protected=manifest.protected_paths
        )
        diff = workspace.diff(checkout.base, candidate) if candidate.changes else b""
    finally:
        workspace.park(checkout)
    kept = {"diff": site.desk.store.put_blob(diff)} if diff else {}
    seen = observation(Work(record, Seen()), candidate, executor=BY_HAND, kept=kept)
    return HandedIn(seen, tuple(issue.sentence for issue in candidate.refused))


def _workspace(site: Site) -> Workspace:
    if site.workspace is None:
        msg = "there is no project here to be copied"
        raise Unfit(msg)
    return site.workspace
