"""The desk: the one counter where work is posted, claimed, returned and judged.

Command line, workers, judges, people and topologies all come here, and nobody else writes
to the ledger. Whatever waits at one moment is committed together.
"""

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Final

from agent_run.contract.base import RunId, TaskId
from agent_run.contract.claim import ClaimCheck
from agent_run.desk.batch import Ask, Batch
from agent_run.desk.memory import Memory
from agent_run.errors import (
    AgentRunError,
    NotClaimable,
    SequenceTaken,
    StoreError,
    TooBusy,
    UnknownRun,
    UnknownTask,
)
from agent_run.ledger.commands import Claim, Command
from agent_run.ledger.pages import Broken, Page, breaks
from agent_run.ledger.state import RunState, Status
from agent_run.ports.clock import Clock, Names
from agent_run.ports.store import RunRow, Search, Store, TaskRow, Wanted, Writer

_MOST_TRIES: Final = 30
_LONGEST_PAUSE: Final = 0.05
_CANDIDATES: Final = (1, 32, 1_024)
"""One first: what a claimer looks at, others pass over until it has claimed."""


class Desk:
    """Joins the pure rules to a store and a clock; holds no rules of its own."""

    def __init__(self, store: Store, *, clock: Clock, new_trace: Names) -> None:
        self.store = store
        self._clock = clock
        self._new_trace = new_trace
        self._memory = Memory()
        self._waiting: deque[Ask] = deque()
        self._door = threading.Lock()
        self._led = False
        """Whether somebody commits for all, or was told to do so next."""
        self._committing = threading.Lock()
        self._listeners: list[Callable[[Sequence[Page]], None]] = []

    def listen(self, listener: Callable[[Sequence[Page]], None]) -> None:
        """Call `listener` with the pages of every commit of this desk; it must be quick."""
        self._listeners.append(listener)

    def handle(self, run_id: RunId, *commands: Command) -> RunState:
        """Grant all `commands` on the newest state, or raise and write nothing.

        Calls from several threads that arrive together share one transaction.
        """
        ask = Ask(run_id, commands)
        with self._door:
            self._waiting.append(ask)
            led, self._led = self._led, True
        if led:
            self._wait_in_line(ask)
        if not ask.answered:
            self._lead(ask)
        return ask.answer()

    def settle(self, asks: Sequence[Ask]) -> None:
        """Answer all of `asks` in one transaction; each is granted or refused by itself."""
        with self._committing:
            self._commit(asks)

    def run(self, run_id: RunId) -> RunState:
        """Return the run as it stands, reading only the pages not yet known.

        Raises:
            UnknownRun: nothing was ever written about it.
        """
        with self._committing:
            self._memory.refresh(run_id, self.store, self.store)
            state = self._memory.recall(run_id).state
        if not state.seq:
            msg = f"no run {run_id!r} in this ledger"
            raise UnknownRun(msg)
        return state

    def trace_id(self, run_id: RunId) -> str:
        """Return the id under which everything about the run can be traced."""
        self.run(run_id)
        return self._memory.recall(run_id).trace_id

    def claim_next(
        self,
        *,
        owner: str,
        ttl: timedelta | None = None,
        run_id: RunId | None = None,
        executors: tuple[str, ...] | None = None,
    ) -> ClaimCheck | None:
        """Find the most urgent task and claim it, in one step; None if there is none.

        Raises:
            TooBusy: others kept writing first, too many times.
        """
        for tried in range(_MOST_TRIES):
            try:
                return self._claim_next(owner, ttl, run_id, executors)
            except SequenceTaken:
                self._pause(tried)
        msg = f"others kept claiming first, {_MOST_TRIES} times"
        raise TooBusy(msg)

    def _claim_next(
        self,
        owner: str,
        ttl: timedelta | None,
        run_id: RunId | None,
        executors: tuple[str, ...] | None,
    ) -> ClaimCheck | None:
        with self._committing:
            batches: list[Batch] = []
            try:
                with self.store.exclusive() as writer:
                    rows = self._candidates(writer, run_id, executors)
                    check = self._claim_first(writer, rows, owner, ttl, batches)
            except BaseException:
                # What was remembered on the way was never written.
                for batch in batches:
                    self._memory.forget(batch.known)
                raise
            for batch in batches:
                self._remember(batch)
        return check

    def find(
        self, wanted: Wanted, *, limit: int = 100, run_id: RunId | None = None
    ) -> list[TaskRow]:
        """Return open tasks of one kind, most urgent first."""
        search = Search(wanted=wanted, now=self._clock(), run_id=run_id, limit=limit)
        return self.store.find(search)

    def locate(self, task: str) -> tuple[RunId, TaskId]:
        """Return run and task that `task_id` or `run_id/task_id` stands for.

        A name that stands in several runs means the newest of them.

        Raises:
            UnknownTask: no run has such a task.
        """
        run_id, slash, task_id = task.rpartition("/")
        rows = self.store.tasks(task_id=task_id)
        rows = [row for row in rows if not slash or row.run_id == run_id]
        if not rows:
            msg = f"no task {task!r} in this ledger"
            raise UnknownTask(msg)
        return rows[0].run_id, rows[0].task_id

    def pages(self, run_id: RunId, *, after: int = 0) -> list[Page]:
        """Return the pages of a run as written."""
        return self.store.read(run_id, after=after)

    def runs(self, *, limit: int | None = None) -> list[RunRow]:
        """Return the runs, newest first."""
        return self.store.runs(limit=limit)

    def verify(self, run_id: RunId | None = None) -> Iterator[Broken]:
        """Yield every place where the ledger is not what was once written."""
        for name, head in sorted(self.store.heads().items()):
            if run_id not in (None, name):
                continue
            pages = self.store.read(name)
            yield from breaks(pages)
            last = pages[-1].seq if pages else 0
            if last < head:
                yield Broken(name, last + 1, f"the pages up to {head} are missing")

    def wait(self, timeout: timedelta) -> bool:
        """Wait until something may have changed, or until `timeout`."""
        return self.store.wait(timeout)

    def close(self) -> None:
        """Let go of the store."""
        self.store.close()

    def _wait_in_line(self, ask: Ask) -> None:
        """Wait until the wish is answered, or until it is this caller's turn to lead."""
        try:
            ask.wait()
        except BaseException:
            # Interrupted: nobody may be left waiting for this caller to lead.
            with self._door:
                if ask in self._waiting:
                    self._waiting.remove(ask)
                leads = ask.leads
            if leads and not ask.answered:
                self._pass_on()
            raise

    def _lead(self, own: Ask) -> None:
        """Commit whatever waits, and wake only those who have their answer.

        If everybody had to take the lock to see whether they were answered, whoever came
        back first would commit alone, and hardly two wishes would ever share a commit.
        """
        asks: list[Ask] = []
        try:
            with self._committing:
                with self._door:
                    asks += self._waiting
                    self._waiting.clear()
                self._commit(asks)
        finally:
            with self._door:
                if own in self._waiting:
                    self._waiting.remove(own)
            self._pass_on()
            for ask in asks:
                if ask is not own:
                    ask.wake()

    def _pass_on(self) -> None:
        with self._door:
            self._led = bool(self._waiting)
            if self._led:
                self._waiting[0].leads = True
                self._waiting[0].wake()

    def _commit(self, asks: Sequence[Ask]) -> None:
        try:
            self._commit_or_raise(asks)
        except BaseException as error:
            for ask in asks:
                ask.refuse(error)
            if not isinstance(error, AgentRunError):
                raise

    def _commit_or_raise(self, asks: Sequence[Ask]) -> None:
        for tried in range(_MOST_TRIES):
            try:
                batch = self._try(asks) if not tried else self._try_alone(asks)
            except SequenceTaken:
                self._pause(tried)
                continue
            self._remember(batch)
            return
        names = ", ".join(sorted({ask.run_id for ask in asks}))
        msg = f"others kept writing to {names} first, {_MOST_TRIES} times"
        raise TooBusy(msg)

    @staticmethod
    def _pause(tried: int) -> None:
        time.sleep(random.uniform(0, _LONGEST_PAUSE * min(1, tried / 5)))  # noqa: S311

    def _try(self, asks: Sequence[Ask]) -> Batch:
        """Decide on what is known and append; cheap, because mostly nobody else wrote."""
        batch = self._decide(asks)
        stale = {ask.run_id for ask in batch.refused}
        # A refusal counts only when it was made on the newest state.
        moved = [self._memory.refresh(run_id, self.store, self.store) for run_id in stale]
        if any(moved):
            batch = self._decide(asks)
        chapters = batch.chapters()
        if chapters:
            self.store.append(chapters)
        return batch

    def _try_alone(self, asks: Sequence[Ask]) -> Batch:
        """Keep other writers out, look again, decide and append."""
        with self.store.exclusive() as writer:
            for run_id in sorted({ask.run_id for ask in asks}):
                writer.hold(run_id)
                self._memory.refresh(run_id, writer, self.store)
            batch = self._decide(asks)
            chapters = batch.chapters()
            if chapters:
                writer.append(chapters)
        return batch

    def _decide(self, asks: Iterable[Ask]) -> Batch:
        batch = Batch(self._memory, now=self._clock(), new_trace=self._new_trace)
        for ask in asks:
            batch.decide(ask)
        return batch

    def _remember(self, batch: Batch) -> None:
        for run_id, known in batch.known.items():
            self._memory.keep(run_id, known)
        batch.deliver()
        for listener in self._listeners:
            listener(batch.pages())
        for run_id, known in batch.known.items():
            if known.wants_snapshot:
                # A snapshot only spares reading: when it cannot be kept, what was written
                # still counts, and the next commit tries again.
                with suppress(StoreError):
                    self._memory.save(run_id, known, self.store)

    def _candidates(
        self, writer: Writer, run_id: RunId | None, executors: tuple[str, ...] | None
    ) -> Iterator[TaskRow]:
        now = self._clock()
        seen: set[tuple[RunId, TaskId]] = set()
        for limit in _CANDIDATES:
            rows: list[TaskRow] = []
            for wanted in ("expired", "ready"):
                search = Search(wanted, now, run_id=run_id, executors=executors, limit=limit)
                rows += writer.find(search)
                fresh = [row for row in rows if (row.run_id, row.task_id) not in seen]
                seen.update((row.run_id, row.task_id) for row in fresh)
                yield from fresh
            if len(rows) < limit:
                return

    def _claim_first(
        self,
        writer: Writer,
        rows: Iterable[TaskRow],
        owner: str,
        ttl: timedelta | None,
        batches: list[Batch],
    ) -> ClaimCheck | None:
        for row in rows:
            writer.hold(row.run_id)
            self._memory.refresh(row.run_id, writer, self.store)
            command = Claim(task_id=row.task_id, owner=owner, ttl=ttl)
            batch = self._decide([Ask(row.run_id, (command,))])
            if batch.refused:
                continue
            writer.append(batch.chapters())
            batches.append(batch)
            known = batch.known[row.run_id]
            self._memory.keep(row.run_id, known)
            if known.state.tasks[row.task_id].status is Status.CLAIMED:
                return claim_check(row.run_id, known.state, row.task_id)
        return None


def claim_check(run_id: RunId, state: RunState, task_id: TaskId) -> ClaimCheck:
    """Return the claim check of a claimed task.

    Raises:
        NotClaimable: nobody holds a claim on it.
    """
    task = state.tasks[task_id]
    if task.status is not Status.CLAIMED or not task.owner or not task.expires_at:
        msg = f"task {task_id!r} is {task.status}: {task.note or 'nobody holds a claim on it'}"
        raise NotClaimable(msg)
    return ClaimCheck(
        task_id=task_id,
        owner=task.owner,
        expires_at=task.expires_at,
        attempt=task.attempt,
        claim=task.claim,
        run_id=run_id,
    )
