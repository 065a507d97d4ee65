"""From the state of a task to the brief of its next attempt."""

from pydantic import JsonValue

from agent_run.contract.base import RunId, TaskId
from agent_run.contract.brief import Brief, Exchange
from agent_run.contract.budget import Budget
from agent_run.ledger.state import RunState, TaskState


def brief_for(run_id: RunId, run: RunState, task_id: TaskId, *, trace_id: str) -> Brief:
    """Return what the owner of the present claim is told."""
    task = run.tasks[task_id]
    return Brief(
        task_id=task_id,
        run_id=run_id,
        trace_id=trace_id,
        attempt=max(1, task.attempt),
        claim=task.claim or 1,
        manifest=task.manifest,
        input=_input(task),
        envelopes=task.inbox,
        earlier=task.returned,
        answers=tuple(Exchange(question=asked, answer=said) for asked, said in task.answers),
        remaining=_remaining(run, task),
    )


def _input(task: TaskState) -> JsonValue:
    """Return the manifest's own input, or what was handed over; one envelope stands alone."""
    if task.manifest.input is not None or not task.inbox:
        return task.manifest.input
    if len(task.inbox) == 1:
        return task.inbox[0].payload
    return {envelope.source: envelope.payload for envelope in task.inbox}


def _remaining(run: RunState, task: TaskState) -> Budget:
    budget, spent = task.manifest.budget, task.spent
    tokens = None if budget.max_tokens is None else budget.max_tokens - spent.tokens
    cost = None if budget.max_cost_usd is None else budget.max_cost_usd - spent.cost_usd
    return Budget(
        max_attempts=max(1, task.attempts_left + 1),
        max_tokens=None if tokens is None else max(1, tokens),
        max_cost_usd=cost if cost is None or cost > 0 else None,
        time_budget_sec=budget.time_budget_sec,
        on_budget=budget.on_budget,
    )
