"""All metrics of a ledger in one value, and that value as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from pydantic import JsonValue

from agent_run.ledger.metrics.budgets import BudgetLine, Budgets, StepUse, budgets
from agent_run.ledger.metrics.confidence import (
    STATISTIC,
    StepConfidence,
    confidence_by_step,
)
from agent_run.ledger.metrics.facts import Run, asked_for, tasks_of
from agent_run.ledger.metrics.people import Agreement, Answering, People, people
from agent_run.ledger.metrics.statistics import Proportion
from agent_run.ledger.metrics.work import Cost, Costs, Quality, costs, quality


@dataclass(frozen=True, slots=True)
class Metrics:
    """What can be said about the work on a ledger, in numbers."""

    runs: int
    tasks: int
    since: datetime | None
    """Only tasks posted since then were counted. `None` means all."""
    budgets: Budgets
    confidence: tuple[StepConfidence, ...]
    people: People
    quality: Quality
    costs: Costs


def measure(runs: Sequence[Run], *, since: datetime | None = None) -> Metrics:
    """Return the metrics of these runs."""
    tasks = tasks_of(runs)
    asked = asked_for(tasks)
    return Metrics(
        runs=len(runs),
        tasks=len(asked),
        since=since,
        budgets=budgets(runs),
        confidence=confidence_by_step(tasks),
        people=people(asked),
        quality=quality(asked),
        costs=costs(tasks),
    )


def as_json(metrics: Metrics) -> dict[str, JsonValue]:
    """Return everything as plain JSON; money as text, so that no cent is lost."""
    return {
        "runs": metrics.runs,
        "tasks": metrics.tasks,
        "since": _time(metrics.since),
        "budgets": _budgets(metrics.budgets),
        "confidence": {
            "statistic": STATISTIC,
            "steps": [_confidence(step) for step in metrics.confidence],
        },
        "people": _people(metrics.people),
        "quality": _quality(metrics.quality),
        "costs": {
            "by_model": [_cost(cost) for cost in metrics.costs.by_model],
            "by_task": [_cost(cost) for cost in metrics.costs.by_task],
            "total": _cost(metrics.costs.total),
        },
    }


def proportion_json(share: Proportion) -> dict[str, JsonValue]:
    """Return a share with its count and its interval."""
    low, high = share.interval
    return {
        "hits": share.hits,
        "of": share.of,
        "value": _round(share.value),
        "interval": [_round(low), _round(high)],
    }


def _budgets(found: Budgets) -> dict[str, JsonValue]:
    return {
        "runs": [_line(line) for line in found.runs],
        "tasks": [_line(line) for line in found.tasks],
        "steps": [_step_use(step) for step in found.steps],
        "over": [_line(line) for line in found.over],
    }


def _line(line: BudgetLine) -> dict[str, JsonValue]:
    # One for every task there is, so nothing is looked up twice.
    limits = line.limits
    cost = None if limits.cost_usd is None else _money(limits.cost_usd)
    return {
        "run_id": line.run_id,
        "task_id": line.task_id or None,
        "attempts": {"used": line.attempts, "limit": limits.attempts},
        "tokens": {"used": line.tokens, "limit": limits.tokens},
        "cost_usd": {"used": _money(line.cost_usd), "limit": cost},
        "seconds": {"used": _round(line.seconds), "limit": limits.seconds},
        "over": [] if line.within else list(line.over),
    }


def _step_use(step: StepUse) -> dict[str, JsonValue]:
    return {
        "step": step.step,
        "tasks": step.tasks,
        "over": step.over,
        "attempts": step.attempts,
        "tokens": step.tokens,
        "cost_usd": _money(step.cost_usd),
        "unpriced_requests": step.unpriced,
        "seconds": _round(step.seconds),
        "plan": {
            name: {"used": _round(use.used), "limit": _round(use.limit)}
            for name, use in step.plan.items()
        },
    }


def _confidence(step: StepConfidence) -> dict[str, JsonValue]:
    fell = step.regression
    regression: JsonValue = None
    if fell is not None:
        regression = {
            "earlier": _round(fell.earlier),
            "recent": _round(fell.recent),
            "counted": fell.counted,
            "chance": _round(fell.chance),
            "since": _time(fell.since),
        }
    series: list[JsonValue] = [
        {"at": _time(at), "confidence": value}
        for at, value in zip(step.times, step.values, strict=True)
    ]
    return {
        "step": step.step,
        "stated": len(step.values),
        "unstated": step.unstated,
        "mean": _round(step.mean),
        "median": _round(step.median),
        "regression": regression,
        "series": series,
    }


def _people(found: People) -> dict[str, JsonValue]:
    return {
        "escalation_rate": proportion_json(found.escalated),
        "by_step": {step: proportion_json(share) for step, share in found.by_step.items()},
        "reasons": dict(found.reasons),
        "time_to_answer": [_answering(one) for one in found.answering],
        "agreement": _agreement(found.agreement),
        "agreement_by_step": [_agreement(one) for one in found.agreement_by_step],
    }


def _answering(one: Answering) -> dict[str, JsonValue]:
    return {
        "kind": one.kind,
        "answered": one.answered,
        "open": one.open,
        "withdrawn": one.withdrawn,
        "mean_sec": _round(one.mean),
        "p50_sec": _round(one.p50),
        "p90_sec": _round(one.p90),
        "p99_sec": _round(one.p99),
        "oldest_open": _time(one.oldest),
    }


def _agreement(one: Agreement) -> dict[str, JsonValue]:
    words: Mapping[bool, str] = {True: "accept", False: "reject"}
    matrix: dict[str, JsonValue] = {
        f"machine_{words[machine]}": {
            f"person_{words[person]}": one.matrix.get((machine, person), 0)
            for person in (True, False)
        }
        for machine in (True, False)
    }
    told: dict[str, JsonValue] = {"step": one.step} if one.step else {}
    return told | {
        "matrix": matrix,
        "agreed": proportion_json(one.agreed),
        "kappa": _round(one.kappa),
        "without_opinion": one.without_opinion,
    }


def _quality(found: Quality) -> dict[str, JsonValue]:
    refusals: list[JsonValue] = [
        {"gate": gate, "outcome": outcome, "reason": reason, "count": count}
        for (gate, outcome, reason), count in sorted(found.refusals.items())
    ]
    return {
        "statuses": dict(found.statuses),
        "first_pass": proportion_json(found.first_pass),
        "first_pass_by_step": {
            step: proportion_json(share) for step, share in found.first_pass_by_step.items()
        },
        "rework": proportion_json(found.rework),
        "returns": found.returns,
        "rollbacks": found.rollbacks,
        "deferrals": found.deferrals,
        "lost_claims": found.lost,
        "gate_failures": refusals,
        "fences": dict(found.fences),
    }


def _cost(cost: Cost) -> dict[str, JsonValue]:
    told: dict[str, Any] = {"name": cost.name} if cost.name else {}
    return told | {
        "attempts": cost.attempts,
        "tokens": cost.tokens,
        "requests": cost.requests,
        "cost_usd": _money(cost.cost_usd),
        "unpriced_requests": cost.unpriced,
        "elapsed_ms": cost.elapsed_ms,
    }


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


@lru_cache(maxsize=1_024)
def _money(amount: Decimal) -> str:
    return format(amount.normalize(), "f") if amount else "0"


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")
