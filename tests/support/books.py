"""A run written page by page, for tests of what is read from pages."""

from datetime import datetime, timedelta
from typing import Any

from agent_run.contract.record import Record
from agent_run.ledger.commands import Command, Submit
from agent_run.ledger.fold import EMPTY, evolve
from agent_run.ledger.metrics.facts import Run
from agent_run.ledger.metrics.gathering import gather
from agent_run.ledger.pages import FIRST, Page, seal
from agent_run.ledger.rules import decide
from agent_run.ledger.state import RunState
from tests.support.stories import NOON, TASK

TRACE = "0af7651916cd43dd8448eb211c80319c"


class Book:
    """Grants commands by the real rules, and keeps the pages they make."""

    def __init__(self, run_id: str = "run", *, now: datetime = NOON) -> None:
        self.run_id = run_id
        self.now = now
        self.state: RunState = EMPTY
        self.pages: list[Page] = []

    def tell(self, *commands: Command) -> "Book":
        """Write what follows from these commands, all granted at this moment."""
        for command in commands:
            for event in decide(self.state, command, now=self.now):
                previous = self.pages[-1].digest if self.pages else FIRST
                seq = len(self.pages) + 1
                self.pages.append(seal(self.run_id, seq, TRACE, event, previous=previous))
                self.state = evolve(self.state, event)
        return self

    def wait(self, passing: timedelta) -> "Book":
        """Let time pass."""
        self.now += passing
        return self

    def submit(self, claim: int, task_id: str = TASK, *, observed: Any, **record: Any) -> None:
        """Hand in a record together with what the worker saw."""
        self.tell(
            Submit(
                task_id=task_id,
                actor="ada",
                claim=claim,
                record=Record(**record),
                observed=observed,
            )
        )

    def claim_of(self, task_id: str = TASK) -> int:
        """Return the number of the newest claim on a task."""
        return self.state.tasks[task_id].claim or 0

    def run(self) -> Run:
        """Return what can be counted."""
        run = gather(self.pages)
        assert run is not None
        return run
