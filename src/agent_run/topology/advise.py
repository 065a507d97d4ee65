"""Which topology, at what cost, and why: the cost math, and advice that follows from it.

Every number is an estimate from the shape of the task. What it cannot know it says: above
all, failures are seldom independent, and a product of reliabilities is then too dark.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from math import ceil
from typing import Final, Literal, TypeAlias

from agent_run.errors import ContractError

TopologyName: TypeAlias = Literal["single", "plan-execute", "orchestrator-workers", "routing"]

CHAT_TOKENS: Final = 1_000
"""About what one plain exchange takes; multipliers are told against it."""
_PREDICTABLE: Final = 0.7
_WORTH_SPLITTING: Final = 3
_CONTEXT_LIMIT: Final = 100_000
"""Above this, one window holds so much that things in its middle get lost."""
_USABLE: Final = 0.5


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars for a million tokens, in and out."""

    tokens_in: Decimal
    tokens_out: Decimal


@dataclass(frozen=True, slots=True)
class TaskShape:
    """What is known about a task before anybody works on it."""

    steps: int = 5
    """Actions it takes altogether."""
    independent: int = 1
    """Parts that do not need each other's results."""
    specialists: int = 1
    """Kinds of expertise of which one at a time is needed."""
    context_tokens: int = 2_000
    """What must be known to begin."""
    step_tokens: int = 800
    """What one action adds to what must be known."""
    output_tokens: int = 400
    """What the model writes in one call."""
    tool_tokens: int = 2_000
    """Instructions and tool descriptions that every agent reads again."""
    predictability: float = 0.5
    """How much of the way is known beforehand, from 0 to 1."""
    reliability: float = 0.95
    """How often one agent succeeds by itself."""
    correlation: float = 0.4
    """How much failures come together, from 0 (never) to 1 (always)."""
    call_seconds: float = 6.0
    value_usd: float | None = None
    """What a good result is worth. `None` means that cost does not decide."""

    def __post_init__(self) -> None:
        for name in ("steps", "independent", "specialists"):
            if getattr(self, name) < 1:
                msg = f"{name} is {getattr(self, name)}, expected at least 1"
                raise ContractError(msg)
        for name in ("predictability", "reliability", "correlation"):
            if not 0 <= getattr(self, name) <= 1:
                msg = f"{name} is {getattr(self, name)}, expected a number from 0 to 1"
                raise ContractError(msg)


@dataclass(frozen=True, slots=True)
class Estimate:
    """What one topology would take."""

    topology: TopologyName
    calls: int
    tokens_in: int
    tokens_out: int
    seconds: float
    """The least it can take, however many work at once."""
    agents: int
    reliability: float
    """If failures were independent: the product."""
    reliability_correlated: float
    largest_context: int
    cost_usd: Mapping[str, Decimal] = field(default_factory=dict)

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

    @property
    def multiplier(self) -> float:
        """How many times the tokens of one plain exchange."""
        return self.tokens / CHAT_TOKENS


@dataclass(frozen=True, slots=True)
class Advice:
    """The topology to take, what all of them would take, and the reasons."""

    topology: TopologyName
    estimates: tuple[Estimate, ...]
    reasons: tuple[str, ...]

    def estimate(self, topology: TopologyName) -> Estimate:
        """Return the estimate of one topology."""
        return next(one for one in self.estimates if one.topology == topology)


def advise(shape: TaskShape, prices: Mapping[str, Price] | None = None) -> Advice:
    """Return which topology fits the task, and why."""
    estimates = tuple(
        _priced(estimate, prices or {})
        for estimate in (_single(shape), _planned(shape), _split(shape), _routed(shape))
    )
    topology, reasons = _chosen(shape, {one.topology: one for one in estimates})
    return Advice(topology, estimates, tuple(reasons))


def together(reliability: float, agents: int, correlation: float) -> tuple[float, float]:
    """Return how often all agents succeed: if independent, and if failures come together.

    With correlation c, a share c of all tasks is the same to every agent, and only the rest
    multiplies.
    """
    product = reliability**agents
    return product, correlation * reliability + (1 - correlation) * product


def _loop(shape: TaskShape, steps: int) -> tuple[int, int, int, int]:
    """Return calls, tokens in and out, and largest context of one loop that grows."""
    calls = steps + 1
    start = shape.tool_tokens + shape.context_tokens
    grows = shape.step_tokens + shape.output_tokens
    read = calls * start + grows * steps * (steps + 1) // 2
    return calls, read, calls * shape.output_tokens, start + grows * steps


def _single(shape: TaskShape) -> Estimate:
    calls, read, written, largest = _loop(shape, shape.steps)
    sure = together(shape.reliability, 1, shape.correlation)
    return Estimate(
        "single", calls, read, written, calls * shape.call_seconds, 1, *sure, largest
    )


def _planned(shape: TaskShape) -> Estimate:
    judged = ceil(shape.steps * (1 - shape.predictability))
    calls = 2 + judged
    start = shape.tool_tokens + shape.context_tokens
    read = calls * (start + shape.step_tokens)
    sure = together(shape.reliability, 1, shape.correlation)
    # What was not foreseen makes the plan wrong now and then, and it is made again.
    surprised = tuple(one * (0.8 + 0.2 * shape.predictability) for one in sure)
    return Estimate(
        "plan-execute",
        calls,
        read,
        calls * shape.output_tokens,
        calls * shape.call_seconds,
        1,
        surprised[0],
        surprised[1],
        start + shape.step_tokens,
    )


def _split(shape: TaskShape) -> Estimate:
    workers = max(2, shape.independent)
    each = ceil(shape.steps / workers)
    calls, read, written, largest = _loop(shape, each)
    bookends = 2
    start = shape.tool_tokens + shape.context_tokens
    joined = start + workers * shape.output_tokens
    in_a_row = shape.independent < workers
    seconds = (bookends + calls * (workers if in_a_row else 1)) * shape.call_seconds
    sure = together(shape.reliability, workers + 1, shape.correlation)
    return Estimate(
        "orchestrator-workers",
        bookends + workers * calls,
        start + joined + workers * read,
        bookends * shape.output_tokens + workers * written,
        seconds,
        workers + 1,
        *sure,
        max(largest, joined),
    )


def _routed(shape: TaskShape) -> Estimate:
    calls, read, written, largest = _loop(shape, shape.steps)
    start = shape.tool_tokens + shape.context_tokens
    sure = together(shape.reliability, 2, shape.correlation)
    return Estimate(
        "routing",
        1 + calls,
        start + read,
        shape.output_tokens + written,
        (1 + calls) * shape.call_seconds,
        2,
        *sure,
        largest,
    )


def _priced(estimate: Estimate, prices: Mapping[str, Price]) -> Estimate:
    million = Decimal(1_000_000)
    cost = {
        model: (price.tokens_in * estimate.tokens_in + price.tokens_out * estimate.tokens_out)
        / million
        for model, price in prices.items()
    }
    return Estimate(
        estimate.topology,
        estimate.calls,
        estimate.tokens_in,
        estimate.tokens_out,
        estimate.seconds,
        estimate.agents,
        estimate.reliability,
        estimate.reliability_correlated,
        estimate.largest_context,
        cost,
    )


def _chosen(
    shape: TaskShape, by_name: Mapping[TopologyName, Estimate]
) -> tuple[TopologyName, list[str]]:
    one, many = by_name["single"], by_name["orchestrator-workers"]
    splits = shape.independent >= 2  # noqa: PLR2004 - two parts are the fewest to split into
    crowded = one.largest_context > _CONTEXT_LIMIT
    if splits and (shape.independent >= _WORTH_SPLITTING or crowded) and _worth(shape, many):
        return "orchestrator-workers", _why_split(shape, one, many, crowded=crowded)
    if shape.specialists > 1:
        return "routing", [
            f"{shape.specialists} kinds of expertise, and one at a time is needed",
            "the original intent must travel with every handoff",
        ]
    if shape.steps > 2 and shape.predictability >= _PREDICTABLE:  # noqa: PLR2004
        planned = by_name["plan-execute"]
        return "plan-execute", [
            f"{shape.predictability:.0%} of the way is known beforehand",
            f"{planned.calls} model calls instead of {one.calls}",
            "the plan can be read, kept and resumed before anything is spent",
        ]
    reasons = ["one agent with good tools is the simplest thing that can work"]
    if splits and not _worth(shape, many):
        reasons.append(
            f"splitting would take {many.multiplier:.0f}x the tokens of one exchange"
        )
    elif not splits:
        reasons.append("no part of it is independent of the others")
    return "single", reasons


def _worth(shape: TaskShape, many: Estimate) -> bool:
    if shape.value_usd is None or not many.cost_usd:
        return True
    return min(many.cost_usd.values()) <= Decimal(str(shape.value_usd * _USABLE))


def _why_split(shape: TaskShape, one: Estimate, many: Estimate, *, crowded: bool) -> list[str]:
    reasons = [
        f"{shape.independent} parts do not need each other",
        f"{many.seconds:.0f} s at the least instead of {one.seconds:.0f} s",
        (
            f"{many.tokens / one.tokens:.1f}x the tokens of one agent,"
            f" {many.multiplier:.0f}x those of one exchange"
        ),
        (
            f"all {many.agents} agents succeed {many.reliability:.0%} of the time if failures"
            f" are independent, {many.reliability_correlated:.0%} if they come together;"
            " a quorum helps"
        ),
    ]
    if crowded:
        reasons.insert(1, f"one window would hold {one.largest_context:,} tokens at its end")
    return reasons
