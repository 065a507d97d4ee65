"""Short words for telling what happened to a task, for tests of the rules."""

from datetime import UTC, datetime, timedelta
from typing import Any

from agent_run.contract.budget import Budget, Spend
from agent_run.contract.manifest import Manifest
from agent_run.contract.record import Record
from agent_run.contract.verdict import Finding, Outcome, Reason, Verdict
from agent_run.ledger import commands as wished
from agent_run.ledger.commands import Command
from agent_run.ledger.fold import EMPTY, fold
from agent_run.ledger.rules import decide
from agent_run.ledger.state import RunState, TaskState

NOON = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
QUARTER = timedelta(minutes=15)
TASK = "repo-142"


def finding(outcome: Outcome, reason: Reason, gate: str = "commands") -> Finding:
    return Finding(gate=gate, outcome=outcome, reason=reason, evidence="seen")


PASSED = Verdict(findings=(finding("pass", "verified"),))
FAILED = Verdict(findings=(finding("fail", "verification_failed"),))
UNDECIDED = Verdict(findings=(finding("inconclusive", "timeout"),))
UNSURE = Verdict(findings=(finding("fail", "low_confidence", "confidence"),))


def when(run: RunState, *commands: Command, at: datetime = NOON) -> RunState:
    """Return the run after these commands, all granted."""
    for command in commands:
        run = fold(decide(run, command, now=at), onto=run)
    return run


def given(*commands: Command, at: datetime = NOON) -> RunState:
    """Return a new run after these commands, all granted at noon."""
    return when(EMPTY, *commands, at=at)


def the_task(run: RunState, task_id: str = TASK) -> TaskState:
    return run.tasks[task_id]


def post(task_id: str = TASK, **manifest: Any) -> wished.Post:
    return wished.Post(
        actor="planner", manifest=Manifest(task_id=task_id, objective="fix it", **manifest)
    )


def claim(owner: str = "ada", task_id: str = TASK) -> wished.Claim:
    return wished.Claim(task_id=task_id, owner=owner, ttl=QUARTER)


def submit(
    claim: int = 2, task_id: str = TASK, *, observed: Any = None, **record: Any
) -> wished.Submit:
    return wished.Submit(
        task_id=task_id,
        actor="ada",
        claim=claim,
        record=Record(**record),
        observed=observed,
    )


def judge(verdict: Verdict = PASSED, task_id: str = TASK, **more: Any) -> wished.Judge:
    return wished.Judge(task_id=task_id, actor="judge", verdict=verdict, **more)


def review(verdict: Verdict, task_id: str = TASK, **more: Any) -> wished.Decide:
    return wished.Decide(task_id=task_id, actor="eve", verdict=verdict, **more)


def answer(text: str = "go on", task_id: str = TASK) -> wished.Answer:
    return wished.Answer(task_id=task_id, actor="eve", answer=text)


def reserve(key: str, tokens: int, claim: int = 2, task_id: str = TASK) -> wished.Reserve:
    amount = Spend(tokens=tokens)
    return wished.Reserve(task_id=task_id, actor="ada", claim=claim, key=key, amount=amount)


def settle(key: str, tokens: int, claim: int = 2, task_id: str = TASK) -> wished.Settle:
    spent = Spend(tokens=tokens)
    return wished.Settle(task_id=task_id, actor="ada", claim=claim, key=key, spent=spent)


def open_run(**budget: Any) -> wished.OpenRun:
    return wished.OpenRun(actor="planner", intent="a better sync", budget=Budget(**budget))
