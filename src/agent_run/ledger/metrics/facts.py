"""What the pages say that can be counted: runs, tasks, attempts, waits, decisions.

Metrics, evaluations and canaries all count from these facts and never read a page again.
The values are filled while pages are gathered and only read afterwards; they are not frozen,
because a frozen value for every page would cost more than reading the ledger does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from operator import attrgetter
from typing import Final, Literal, NamedTuple, TypeAlias

from agent_run.ledger.calls import Operation, Usage

WaitKind: TypeAlias = Literal["question", "decision", "approval"]
End: TypeAlias = Literal[
    "submitted", "released", "given_up", "expired", "asked", "escalated", "failed", "cancelled"
]
"""How the work of an attempt came to its end; `released` gave the attempt back unused."""
FirstWord: TypeAlias = Literal["accepted", "returned", "escalated", "failed"]

SETTLED_WORDS: Final = frozenset({"accepted", "failed", "cancelled", "skipped"})
UNSTATED: Final = "(not stated)"
NO_MONEY: Final = Decimal(0)


@dataclass(slots=True)
class Amount:
    """What was used, in each dimension; cheaper to add up than a `Spend`."""

    tokens: int = 0
    requests: int = 0
    cost_usd: Decimal = NO_MONEY
    unpriced: int = 0
    """Requests whose price nobody knows."""
    elapsed_ms: int = 0

    def add(self, other: "Amount") -> None:
        self.tokens += other.tokens
        self.requests += other.requests
        self.cost_usd += other.cost_usd
        self.unpriced += other.unpriced
        self.elapsed_ms += other.elapsed_ms

    def subtract(self, other: "Amount") -> None:
        """Take a part away; what was counted twice leaves nothing, never less."""
        self.tokens = max(0, self.tokens - other.tokens)
        self.requests = max(0, self.requests - other.requests)
        self.cost_usd = max(NO_MONEY, self.cost_usd - other.cost_usd)
        self.unpriced = max(0, self.unpriced - other.unpriced)
        self.elapsed_ms = max(0, self.elapsed_ms - other.elapsed_ms)

    def raise_to(self, other: "Amount") -> None:
        """Become the larger of both, dimension by dimension."""
        self.tokens = max(self.tokens, other.tokens)
        self.requests = max(self.requests, other.requests)
        self.cost_usd = max(self.cost_usd, other.cost_usd)
        self.unpriced = max(self.unpriced, other.unpriced)
        self.elapsed_ms = max(self.elapsed_ms, other.elapsed_ms)


@dataclass(frozen=True, slots=True)
class Limits:
    """What was planned. `None` means no limit."""

    attempts: int | None = None
    tokens: int | None = None
    cost_usd: Decimal | None = None
    seconds: int | None = None
    """Of one attempt, or of the whole run."""


NO_LIMITS: Final = Limits()


class Failure(NamedTuple):
    """A gate that did not pass, and why."""

    gate: str
    outcome: str
    reason: str


@dataclass(slots=True)
class Call:
    """One question to a model, or one use of a tool, that was paid for by itself."""

    operation: Operation
    name: str
    """The model or the tool."""
    since: datetime
    spent: Amount
    """What was set aside; once it is settled, what it took."""
    until: datetime | None = None
    """When it ended. `None` while it goes on."""
    error: str | None = None
    """In one word, why it gave nothing to use. `None` means that it did."""
    usage: Usage | None = None
    """`None` means that nobody counted tokens in and out."""

    @property
    def seconds(self) -> float | None:
        """How long it took by the ledger's clock; `None` while it goes on."""
        return None if self.until is None else (self.until - self.since).total_seconds()


@dataclass(slots=True)
class Attempt:
    """One claim of a task, from taking it to the verdict."""

    number: int
    claim: int
    owner: str
    claimed_at: datetime
    ended_at: datetime | None = None
    """When the work ended; `None` while it goes on."""
    end: End | None = None
    judged_at: datetime | None = None
    said: str = ""
    """The status of the record; empty without a record."""
    next_action: str = "continue"
    confidence: float | None = None
    model: str | None = None
    """The model that was really asked. `None` means that nobody saw one."""
    fence: str | None = None
    """What held the executor. `None` means that no process was started."""
    spent: Amount = field(default_factory=Amount)
    calls: list[Call] = field(default_factory=list)
    """Calls that ended while the claim was held, or with it."""
    failures: tuple[Failure, ...] = ()
    """What the gates said against it."""

    @property
    def seconds(self) -> float | None:
        """How long the work took by the ledger's clock; `None` while it goes on."""
        if self.ended_at is None:
            return None
        return (self.ended_at - self.claimed_at).total_seconds()

    @property
    def machine_accepts(self) -> bool | None:
        """What executor and gates thought of the work; `None` without a record.

        How sure the executor was does not count: that is why a person was asked.
        """
        if not self.said:
            return None
        willing = (
            self.said in {"needs_review", "done", "passed"} and self.next_action == "continue"
        )
        return willing and all(one.reason == "low_confidence" for one in self.failures)


@dataclass(slots=True)
class Wait:
    """Something a person had to do, and when it was done."""

    kind: WaitKind
    since: datetime
    until: datetime | None = None
    """When it ended. `None` means that it still waits."""
    by: str | None = None
    """Who answered. `None` after the end means that nobody did."""

    @property
    def took(self) -> timedelta | None:
        """How long the answer took; `None` without an answer."""
        return self.until - self.since if self.until and self.by is not None else None


@dataclass(slots=True)
class Decision:
    """A person accepted or rejected work; beside it, what the machine thought."""

    at: datetime
    by: str
    person: bool
    machine: bool | None
    """`None` means that there was nothing it could have an opinion on."""


@dataclass(slots=True)
class Task:
    """One task, as far as it can be counted."""

    run_id: str
    task_id: str
    step: str
    """What it is compared with over time: the label `step`, else its own name."""
    posted_at: datetime
    executor: str = ""
    model: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = NO_LIMITS
    min_confidence: float = 0.0
    status: str = "open"
    """`open` while it is ready or waits; otherwise the word of the state machine."""
    settled_at: datetime | None = None
    reason: str | None = None
    attempts: list[Attempt] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    first_word: FirstWord | None = None
    """What followed the first verdict. `None` while there was none."""
    returns: int = 0
    escalations: int = 0
    deferrals: int = 0
    rollbacks: int = 0
    failures: list[Failure] = field(default_factory=list)
    """Everything gates held against it, over all attempts."""

    @property
    def spent(self) -> Amount:
        if len(self.attempts) == 1:  # as most tasks have, and then there is nothing to add
            return self.attempts[0].spent
        whole = Amount()
        for attempt in self.attempts:
            whole.add(attempt.spent)
        return whole

    @property
    def is_own_work(self) -> bool:
        """Whether a recipe does it for itself, and nobody asked for it."""
        return OWN_WORK.items() <= self.labels.items()

    @property
    def overrides(self) -> int:
        """How often a person decided against the machine, or took its result back."""
        against = sum(
            1 for one in self.decisions if one.machine is not None and one.machine != one.person
        )
        return against + self.rollbacks


@dataclass(slots=True)
class Run:
    """One run, as far as it can be counted."""

    run_id: str
    opened_at: datetime
    at: datetime
    """Time of the newest page."""
    intent: str = ""
    pages: int = 0
    cancelled: bool = False
    limits: Limits = NO_LIMITS
    tasks: dict[str, Task] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        return (self.at - self.opened_at).total_seconds()


OWN_WORK: Final = {"region": "final"}
"""Labels of what a recipe does for itself, such as saving a report: nobody asked for it."""
STEP: Final = attrgetter("step")
"""What tasks are put together by."""


def tasks_of(runs: Sequence[Run]) -> list[Task]:
    """Return the tasks of all runs, in the order of runs and posting."""
    return [task for run in runs for task in run.tasks.values()]


def asked_for(tasks: Sequence[Task]) -> list[Task]:
    """Return the tasks without those that a recipe does for itself."""
    return [task for task in tasks if not task.labels or not task.is_own_work]


def posted_since(runs: Sequence[Run], moment: datetime) -> list[Run]:
    """Return the runs with only those tasks that were posted at `moment` or later.

    A run that began earlier keeps its tasks but loses its limits: what it had used before
    cannot be told apart any more.
    """
    kept: list[Run] = []
    for run in runs:
        tasks = {name: task for name, task in run.tasks.items() if task.posted_at >= moment}
        if run.opened_at >= moment:
            kept.append(run)
        elif tasks:
            kept.append(replace(run, tasks=tasks, limits=NO_LIMITS))
    return kept
