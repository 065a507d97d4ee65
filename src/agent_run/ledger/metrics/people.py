"""What people had to do: how often, how quickly, and whether they agreed with the machine."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from agent_run.ledger.metrics.facts import STEP, Task, WaitKind
from agent_run.ledger.metrics.statistics import Proportion, grouped, kappa, mean, quantile


class Answering(NamedTuple):
    """How long people took to answer one kind of thing."""

    kind: WaitKind
    answered: int
    open: int
    """Still waiting."""
    withdrawn: int
    """Nobody answered before it was no longer wanted."""
    mean: float | None
    """Seconds, here and below; `None` while nothing was answered."""
    p50: float | None
    p90: float | None
    p99: float | None
    oldest: datetime | None
    """Since when the longest open one waits."""


class Agreement(NamedTuple):
    """Decisions of people beside what executor and gates thought."""

    step: str
    """Empty for all steps together."""
    matrix: Mapping[tuple[bool, bool], int]
    """(machine accepts, person accepts) -> how often."""
    without_opinion: int
    """Decisions about work that the machine had no opinion on."""

    @property
    def agreed(self) -> Proportion:
        same = sum(count for (one, other), count in self.matrix.items() if one == other)
        return Proportion(same, sum(self.matrix.values()))

    @property
    def kappa(self) -> float | None:
        return kappa(self.matrix)


class People(NamedTuple):
    """All that concerns people."""

    escalated: Proportion
    """Tasks that a person had to decide about, of all that were worked on."""
    by_step: Mapping[str, Proportion]
    reasons: Mapping[str, int]
    """Why tasks stand or stood with a person, as the last escalation of each said."""
    answering: tuple[Answering, ...]
    agreement: Agreement
    agreement_by_step: tuple[Agreement, ...]


def people(tasks: Sequence[Task]) -> People:
    """Return what people had to do about these tasks."""
    worked = [task for task in tasks if task.attempts or task.escalations]
    steps = grouped(worked, STEP)
    decided = grouped((t for t in tasks if t.decisions), STEP)
    return People(
        escalated=_escalated(worked),
        by_step={step: _escalated(inside) for step, inside in steps.items()},
        reasons=dict(
            Counter(task.reason for task in worked if task.escalations and task.reason)
        ),
        answering=tuple(_answering(tasks)),
        agreement=_agreement("", tasks),
        agreement_by_step=tuple(_agreement(step, each) for step, each in decided.items()),
    )


def _escalated(tasks: Sequence[Task]) -> Proportion:
    return Proportion(len([task for task in tasks if task.escalations]), len(tasks))


def _answering(tasks: Sequence[Task]) -> Iterator[Answering]:
    waits = [wait for task in tasks for wait in task.waits]
    for kind in ("question", "decision", "approval"):
        these = [wait for wait in waits if wait.kind == kind]
        if not these:
            continue
        took = [one.took for one in these if one.took is not None]
        seconds = [one / timedelta(seconds=1) for one in took]
        still = [wait.since for wait in these if wait.until is None]
        yield Answering(
            kind=kind,
            answered=len(took),
            open=len(still),
            withdrawn=len(these) - len(took) - len(still),
            mean=mean(seconds),
            p50=quantile(seconds, 0.5),
            p90=quantile(seconds, 0.9),
            p99=quantile(seconds, 0.99),
            oldest=min(still, default=None),
        )


def _agreement(step: str, tasks: Sequence[Task]) -> Agreement:
    matrix: Counter[tuple[bool, bool]] = Counter()
    without = 0
    for task in tasks:
        for decision in task.decisions:
            if decision.machine is None:
                without += 1
            else:
                matrix[decision.machine, decision.person] += 1
    return Agreement(step, dict(matrix), without)
