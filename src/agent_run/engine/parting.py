"""Giving up the files of a claim, once nobody can need them any more."""

from typing import Final

from agent_run.contract.base import RunId, TaskId
from agent_run.engine.basing import checkout_name
from agent_run.engine.site import Site
from agent_run.ledger.state import SETTLED, Status, TaskState

_STILL_TO_JUDGE: Final = frozenset({Status.SUBMITTED, Status.ESCALATED})


def let_go(site: Site, run_id: RunId, task: TaskState, claim: int | None) -> None:
    """Give the files of a judged claim up, unless a verdict on them is still to come."""
    if site.workspace is None or task.status in _STILL_TO_JUDGE:
        return
    _discard(site, run_id, task.manifest.task_id, claim)
    if task.status in SETTLED:  # to remove files between attempts would slow the next one
        site.workspace.sweep()


def let_go_before(site: Site, run_id: RunId, task_id: TaskId, claim: int) -> None:
    """Give up what earlier claims of a task left for a person who has decided since."""
    for page in site.desk.pages(run_id):
        if page.kind == "task_claimed" and page.task_id == task_id and page.seq < claim:
            _discard(site, run_id, task_id, page.seq)


def _discard(site: Site, run_id: RunId, task_id: TaskId, claim: int | None) -> None:
    name = checkout_name(run_id, task_id)
    if site.workspace is None or claim is None:
        return
    if site.workspace.candidate(name, claim) is not None:
        site.workspace.discard(site.workspace.reopen(name, claim))
