"""The claim check: who owns a task now, until when, and under which page.

`claim` is the number of the page that granted it; work handed in under an older page is
refused, so the page number is the fencing token.
"""

from datetime import datetime

from pydantic import Field

from agent_run.contract.base import (
    Contract,
    RunId,
    TaskId,
    Whole,
)


class ClaimCheck(Contract):
    """Proof of ownership, to be shown with every heartbeat, submit and release."""

    task_id: TaskId
    owner: str = Field(min_length=1, max_length=200)
    expires_at: datetime
    attempt: Whole = Field(ge=1)
    claim: Whole | None = Field(default=None, ge=1)
    """The fencing token. `None` means a check written by hand, not yet granted."""
    run_id: RunId | None = None

    def expired(self, *, now: datetime) -> bool:
        """Say whether another owner may take the task at `now`."""
        return now >= self.expires_at
