"""One commit in the making: what was asked, what the rules answer, what is to be written."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from agent_run.contract.base import RunId
from agent_run.desk.memory import Known, Memory
from agent_run.errors import AgentRunError
from agent_run.ledger.commands import Command
from agent_run.ledger.events import AnyEvent
from agent_run.ledger.fold import fold
from agent_run.ledger.pages import Page, seal
from agent_run.ledger.rules import decide
from agent_run.ledger.state import RunState, Status, TaskState
from agent_run.ports.clock import Names
from agent_run.ports.store import Chapter, TaskRow


class Ask:
    """One caller's wish, and the place where it finds its answer."""

    __slots__ = ("_error", "_sleep", "_state", "commands", "leads", "run_id")

    def __init__(self, run_id: RunId, commands: tuple[Command, ...]) -> None:
        self.run_id = run_id
        self.commands = commands
        self._state: RunState | None = None
        self._error: BaseException | None = None
        self.leads = False
        """Whether the caller was woken to commit for all, rather than by an answer."""
        self._sleep = threading.Lock()
        self._sleep.acquire()

    def wait(self) -> None:
        """Sleep until `wake`, which comes once."""
        self._sleep.acquire()

    def wake(self) -> None:
        self._sleep.release()

    @property
    def answered(self) -> bool:
        return self._state is not None or self._error is not None

    def grant(self, state: RunState) -> None:
        self._state = state

    def refuse(self, error: BaseException) -> None:
        if not self.answered:
            self._error = error

    def answer(self) -> RunState:
        """Return the run right after this wish was granted, or raise why it was not."""
        if self._error is not None:
            raise self._error
        if self._state is None:
            msg = "a wish was left without an answer"
            raise AssertionError(msg)
        return self._state


@dataclass(slots=True)
class _Draft:
    """The chapter of one run, while it is being written."""

    after: int
    pages: list[Page] = field(default_factory=list)
    touched: dict[str, None] = field(default_factory=dict)


class Batch:
    """Decides a series of wishes on a state that grows with each of them."""

    def __init__(self, memory: Memory, *, now: datetime, new_trace: Names) -> None:
        self._memory = memory
        self._now = now
        self._new_trace = new_trace
        self._drafts: dict[RunId, _Draft] = {}
        self._granted: list[tuple[Ask, RunState]] = []
        self._refusals: list[tuple[Ask, AgentRunError]] = []
        self.known: dict[RunId, Known] = {}

    @property
    def refused(self) -> list[Ask]:
        return [ask for ask, _ in self._refusals]

    def chapters(self) -> list[Chapter]:
        """Return what is to be written, one chapter for each run."""
        return [
            Chapter(run_id, draft.after, draft.pages, self._rows(run_id, draft), self._now)
            for run_id, draft in self._drafts.items()
            if draft.pages
        ]

    def decide(self, ask: Ask) -> None:
        """Grant all commands of `ask`, or none."""
        known = self.known.get(ask.run_id) or self._memory.recall(ask.run_id)
        state, events = known.state, list[AnyEvent]()
        try:
            for command in ask.commands:
                granted = decide(state, command, now=self._now)
                state = fold(granted, onto=state)
                events += granted
        except AgentRunError as error:
            self._refusals.append((ask, error))
            return
        self._write(ask.run_id, known, state, events)
        self._granted.append((ask, state))

    def pages(self) -> list[Page]:
        """Return all pages of the commit, run by run."""
        return [page for draft in self._drafts.values() for page in draft.pages]

    def deliver(self) -> None:
        """Give everyone their answer, once all is safely written."""
        for ask, state in self._granted:
            ask.grant(state)
        for ask, error in self._refusals:
            ask.refuse(error)

    def _write(
        self, run_id: RunId, known: Known, state: RunState, events: Iterable[AnyEvent]
    ) -> None:
        draft = self._drafts.setdefault(run_id, _Draft(known.state.seq))
        seq, digest = known.state.seq, known.digest
        trace_id = known.trace_id or self._new_trace()
        for event in events:
            seq += 1
            page = seal(run_id, seq, trace_id, event, previous=digest)
            digest = page.digest
            draft.pages.append(page)
            if event.task_id:
                draft.touched[event.task_id] = None
        self.known[run_id] = Known(state, digest, trace_id, known.saved)

    def _rows(self, run_id: RunId, draft: _Draft) -> list[TaskRow]:
        tasks = self.known[run_id].state.tasks
        return [_row(run_id, tasks[task_id]) for task_id in draft.touched]


def _row(run_id: RunId, task: TaskState) -> TaskRow:
    due = task.expires_at if task.status is Status.CLAIMED else None
    if task.deadline is not None:
        due = task.lapses_at
    manifest = task.manifest
    return TaskRow(
        run_id=run_id,
        task_id=manifest.task_id,
        status=task.status,
        priority=manifest.priority,
        posted=task.posted,
        executor=manifest.executor or "",
        due=due,
        changed=task.changed,
    )
