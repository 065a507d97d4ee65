"""The line of tasks that can be begun: filled from the whole run, then kept up by each end.

To look at a whole run takes longer the longer the run is. Between two such looks the line
follows what ends, so that the next task never waits for a look.
"""

import heapq
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TypeAlias

from agent_run.contract.base import TaskId
from agent_run.ledger.fold import EMPTY
from agent_run.ledger.state import RunState, Status
from agent_run.topology.ordering import seconds_of, ways_to_go

_Place: TypeAlias = tuple[int, float, int, TaskId]


@dataclass(slots=True)
class Line:
    """Tasks in the order in which they should begin: the longest way to go first."""

    run: RunState = EMPTY
    """The run as it was last seen."""
    _places: list[_Place] = field(default_factory=list)
    _lengths: dict[TaskId, float] = field(default_factory=dict)
    """How long the way behind each task is; computed again when tasks were added."""
    _after: dict[TaskId, list[TaskId]] = field(default_factory=dict)
    """Which tasks need each task. The run itself forgets it once the task is accepted."""

    def fill(self, run: RunState, *, without: Collection[TaskId]) -> None:
        """Line up everything in `run` that can be begun, or waits for a verdict."""
        if len(self._lengths) != len(run.tasks):
            self._measure(run)
        self._see(run)
        self._places = [
            self._place(name)
            for name, task in run.tasks.items()
            if task.status in {Status.READY, Status.SUBMITTED} and name not in without
        ]
        heapq.heapify(self._places)

    def follow(self, run: RunState, ended: TaskId) -> bool:
        """Line up what the end of a task made ready; say whether that is all it changed."""
        self._see(run)
        if run.tasks[ended].status is not Status.ACCEPTED:
            return False
        for follower in self._after.get(ended, ()):
            if run.tasks[follower].status is Status.READY:
                heapq.heappush(self._places, self._place(follower))
        return bool(self._places)

    def take(self, *, without: Collection[TaskId]) -> TaskId | None:
        """Return the first of the line, and take it out; `None` if nobody is left."""
        while self._places:
            task_id = heapq.heappop(self._places)[-1]
            status = self.run.tasks[task_id].status
            if status in {Status.READY, Status.SUBMITTED} and task_id not in without:
                return task_id
        return None

    def _measure(self, run: RunState) -> None:
        needs = {name: task.manifest.needs for name, task in run.tasks.items()}
        self._lengths = ways_to_go(needs, lambda name: seconds_of(run.tasks[name].manifest))
        self._after = {}
        for name, wanted in needs.items():
            for need in wanted:
                self._after.setdefault(need, []).append(name)

    def _see(self, run: RunState) -> None:
        if run.seq > self.run.seq:
            self.run = run

    def _place(self, task_id: TaskId) -> _Place:
        task = self.run.tasks[task_id]
        # What was submitted is nearly done, and others may wait for it.
        first = 0 if task.status is Status.SUBMITTED else 1
        urgency = (first << 32) - task.manifest.priority
        return (urgency, -self._lengths[task_id], task.posted, task_id)
