"""Rules of money: reserve before spending, settle after, never promise the same twice."""

from datetime import datetime, timedelta

from agent_run.contract.budget import NOTHING, UNLIMITED, Budget, Spend
from agent_run.errors import OverBudget, TransitionError
from agent_run.ledger.commands import Reserve, Settle
from agent_run.ledger.events import (
    AnyEvent,
    SpendReserved,
    SpendSettled,
    TaskEscalated,
    TaskFailed,
)
from agent_run.ledger.lookup import spending_claim
from agent_run.ledger.state import RunState, TaskState


def reserve(run: RunState, command: Reserve, now: datetime) -> tuple[AnyEvent, ...]:
    """Set the amount aside if task and run can both afford it, whatever others reserved."""
    task = spending_claim(run, command.task_id, command.claim, command.actor)
    if any(key == command.key for key, _ in task.calls):
        msg = f"call {command.key!r} of task {command.task_id!r} is already reserved"
        raise TransitionError(msg)
    if f"{command.task_id}/{command.key}" in run.journal:
        msg = f"call {command.key!r} of task {command.task_id!r} is already settled"
        raise TransitionError(msg)
    wanted = task.spent + task.reserved + command.amount
    _refuse_beyond(task.manifest.budget, wanted, f"task {command.task_id!r}")
    beyond_hold = wanted - task.committed if task.committed is not NOTHING else wanted
    _refuse_beyond(run.budget, run.committed + beyond_hold, "the run")
    return (
        SpendReserved(
            task_id=command.task_id,
            at=now,
            actor=command.actor,
            claim=command.claim,
            key=command.key,
            amount=command.amount,
            purpose=command.purpose,
            question=command.question,
        ),
    )


def settle(run: RunState, command: Settle, now: datetime) -> tuple[AnyEvent, ...]:
    """Write down what a call took. The truth is never refused, even above the reservation."""
    task = spending_claim(run, command.task_id, command.claim, command.actor)
    if all(key != command.key for key, _ in task.calls):
        msg = f"call {command.key!r} of task {command.task_id!r} was never reserved"
        raise TransitionError(msg)
    settled = SpendSettled(
        task_id=command.task_id,
        at=now,
        actor=command.actor,
        key=command.key,
        spent=command.spent,
        result=command.result,
    )
    return (settled,)


def hold_for(run: RunState, task: TaskState) -> Spend:
    """Return what must be set aside from the run's budget while `task` is worked on."""
    if not run.budget.bounds_spending:
        return NOTHING
    whole, limit = task.manifest.budget.whole(), run.budget
    return (
        Spend(
            tokens=whole.tokens if limit.max_tokens else 0,
            requests=whole.requests if limit.max_requests else 0,
            cost_usd=whole.cost_usd if limit.max_cost_usd else NOTHING.cost_usd,
        )
        - task.spent
    )


def run_cannot_afford(run: RunState, task: TaskState, now: datetime) -> list[str]:
    """Name each limit of the run that one more attempt at `task` would break."""
    if run.budget is UNLIMITED or task.manifest.always:
        return []
    wanted = run.committed + hold_for(run, task)
    broken = run.budget.exceeded_by(wanted)
    limit = run.budget.max_attempts
    if limit is not None and run.attempts >= limit:
        broken.append(f"attempts {run.attempts + 1} > {limit}")
    seconds = run.budget.time_budget_sec
    if (
        seconds is not None
        and run.opened_at
        and now > run.opened_at + timedelta(seconds=seconds)
    ):
        taken = int((now - run.opened_at).total_seconds())
        broken.append(f"time {taken}s > {seconds}s")
    return broken or _used_up(run)


def over_budget(
    budget: Budget, *, task_id: str, note: str, now: datetime, actor: str
) -> TaskEscalated | TaskFailed:
    """Return what the budget's own policy says about using it up."""
    kind = TaskFailed if budget.on_budget == "stop" else TaskEscalated
    return kind(task_id=task_id, at=now, actor=actor, reason="over_budget", note=note)


def _used_up(run: RunState) -> list[str]:
    budget, used = run.budget, run.committed
    broken: list[str] = []
    if budget.max_tokens is not None and used.tokens >= budget.max_tokens:
        broken.append(f"tokens {used.tokens} of {budget.max_tokens} are used or set aside")
    if budget.max_requests is not None and used.requests >= budget.max_requests:
        broken.append(
            f"requests {used.requests} of {budget.max_requests} are used or set aside"
        )
    if budget.max_cost_usd is not None and used.cost_usd >= budget.max_cost_usd:
        broken.append(f"cost ${used.cost_usd} of ${budget.max_cost_usd} is used or set aside")
    return broken


def _refuse_beyond(budget: Budget, wanted: Spend, whose: str) -> None:
    broken = budget.exceeded_by(wanted)
    if broken:
        msg = f"the budget of {whose} does not allow it: " + "; ".join(broken)
        raise OverBudget(msg)
