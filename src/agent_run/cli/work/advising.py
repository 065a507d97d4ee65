"""The work of `advise`: from the shape of a task, or of a run, to a topology and its price."""

from decimal import Decimal, InvalidOperation
from typing import Final, TypedDict, Unpack

from agent_run.cli.exits import Exit
from agent_run.cli.speech import Json, Speech
from agent_run.cli.work.door import opened
from agent_run.contract.base import RunId
from agent_run.errors import ContractError
from agent_run.ledger.state import RunState
from agent_run.topology.advise import Advice, Estimate, Price, TaskShape
from agent_run.topology.advise import advise as advised
from agent_run.topology.ordering import ways_to_go

_DEAREST: Final = 1_000_000
"""Dollars for a million tokens; nobody asks for more, and sums stay readable."""


class Said(TypedDict):
    """What was said about the shape; what was not has a default."""

    steps: int | None
    independent: int | None
    specialists: int | None
    context: int | None
    predictability: float | None
    reliability: float | None
    correlation: float | None
    value: float | None


def advise(
    speech: Speech, *, prices: tuple[str, ...], from_run: RunId | None, **said: Unpack[Said]
) -> int:
    """Give the topology, the estimates of all of them, and the reasons."""
    known = {name: value for name, value in said.items() if value is not None}
    for name, field in (("context", "context_tokens"), ("value", "value_usd")):
        if name in known:
            known[field] = known.pop(name)
    happened: Json | None = None
    if from_run is not None:
        with opened(speech) as door:
            run = door.desk.run(from_run)
        known = {**_shape_of(run), **known}
        happened = _happened(run)
    shape = TaskShape(**known)  # type: ignore[arg-type]  # click has checked each of them
    advice = advised(shape, dict(_price(text) for text in prices))
    told: dict[str, object] = {
        "topology": advice.topology,
        "reasons": list(advice.reasons),
        "estimates": [_as_json(estimate) for estimate in advice.estimates],
    }
    if happened is not None:
        told["happened"] = happened
    if speech.as_json:
        speech.object(told)
    else:
        _show(speech, advice, happened)
    return Exit.DONE


def _show(speech: Speech, advice: Advice, happened: Json | None) -> None:
    speech.show(advice.topology, *(f"  - {reason}" for reason in advice.reasons), "")
    models = list(advice.estimates[0].cost_usd)
    head = ("TOPOLOGY", "CALLS", "TOKENS", "X CHAT", "SECONDS", "AGENTS", "ALL SUCCEED")
    speech.table(
        (*head, *(f"${model}" for model in models)),
        [_cells(estimate) for estimate in advice.estimates],
    )
    if happened is not None:
        speech.show(
            "", "what really happened: " + ", ".join(f"{k} {v}" for k, v in happened.items())
        )


def _cells(estimate: Estimate) -> tuple[str, ...]:
    sure = f"{estimate.reliability:.0%} to {estimate.reliability_correlated:.0%}"
    return (
        estimate.topology,
        str(estimate.calls),
        f"{estimate.tokens:,}",
        f"{estimate.multiplier:.0f}",
        f"{estimate.seconds:.0f}",
        str(estimate.agents),
        sure,
        *(f"{cost:.4f}" for cost in estimate.cost_usd.values()),
    )


def _as_json(estimate: Estimate) -> Json:
    return {
        "topology": estimate.topology,
        "calls": estimate.calls,
        "tokens": estimate.tokens,
        "tokens_in": estimate.tokens_in,
        "tokens_out": estimate.tokens_out,
        "multiplier": round(estimate.multiplier, 1),
        "seconds": estimate.seconds,
        "agents": estimate.agents,
        "reliability": round(estimate.reliability, 4),
        "reliability_correlated": round(estimate.reliability_correlated, 4),
        "largest_context": estimate.largest_context,
        "cost_usd": {model: str(cost) for model, cost in estimate.cost_usd.items()},
    }


def _price(text: str) -> tuple[str, Price]:
    model, _, amounts = text.rpartition("=")
    tokens_in, _, tokens_out = amounts.partition("/")
    dollars_in, dollars_out = _dollars(tokens_in), _dollars(tokens_out)
    if not model or dollars_in is None or dollars_out is None:
        msg = f"price {text!r} is not like 'gpt-5=1.25/10', dollars for a million in and out"
        raise ContractError(msg)
    return model, Price(dollars_in, dollars_out)


def _dollars(text: str) -> Decimal | None:
    """Return the amount that `text` says; None if it says none that a price could be."""
    try:
        amount = Decimal(text)
    except InvalidOperation:
        return None
    return amount if amount.is_finite() and 0 <= amount <= _DEAREST else None


def _shape_of(run: RunState) -> dict[str, int | float]:
    """Return the shape that a recorded run turned out to have."""
    needs = {name: task.manifest.needs for name, task in run.tasks.items()}
    if not needs:
        msg = "the run has no tasks to take a shape from"
        raise ContractError(msg)
    depth = max(ways_to_go(needs, lambda _name: 1.0).values())
    tried = sum(task.attempt for task in run.tasks.values())
    accepted = sum(task.status == "accepted" for task in run.tasks.values())
    return {
        "steps": len(needs),
        "independent": max(1, round(len(needs) / depth)),
        "reliability": min(1.0, accepted / tried) if tried else 1.0,
    }


def _happened(run: RunState) -> Json:
    seconds = (run.at - run.opened_at).total_seconds() if run.at and run.opened_at else 0.0
    return {
        "tasks": len(run.tasks),
        "attempts": run.attempts,
        "calls": run.spent.requests,
        "tokens": run.spent.tokens,
        "cost_usd": str(run.spent.cost_usd),
        "unpriced_requests": run.spent.unpriced_requests,
        "seconds": round(seconds, 1),
    }
