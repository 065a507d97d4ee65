"""What a reader of the metrics should know first: what needs them, and what stands for all."""

from collections.abc import Iterator

from agent_run.ledger.metrics.report import Metrics
from agent_run.ledger.metrics.statistics import Proportion
from agent_run.ledger.sheet.parts import Tile


def attention(metrics: Metrics) -> Iterator[tuple[str, str]]:
    """Yield what somebody should look at: the section it stands in, and one sentence."""
    waiting = [one for one in metrics.people.answering if one.open]
    if waiting:
        oldest = min(one.oldest for one in waiting if one.oldest is not None)
        count = sum(one.open for one in waiting)
        said = "1 thing waits" if count == 1 else f"{count:,} things wait"
        yield "people", f"{said} for a person, the oldest since {oldest:%Y-%m-%d %H:%M} UTC"
    for step in metrics.confidence:
        if fell := step.regression:
            told = f"from {fell.earlier:.2f} to {fell.recent:.2f}"
            counted = f"over the last {fell.counted} records of {step.step}"
            yield "confidence", f"confidence fell {told} {counted}"
    if over := len(metrics.budgets.over):
        said = "1 budget is" if over == 1 else f"{over:,} budgets are"
        yield "budgets", f"{said} overdrawn"
    if taken_back := metrics.quality.rollbacks:
        said = "1 result was" if taken_back == 1 else f"{taken_back:,} results were"
        yield "work", f"{said} taken back after being applied"
    if unpriced := metrics.costs.total.unpriced:
        said = "1 request has" if unpriced == 1 else f"{unpriced:,} requests have"
        yield "cost", f"{said} no known price"


def headline(metrics: Metrics) -> Iterator[Tile]:
    """Yield the numbers that stand for the work as a whole."""
    quality, total = metrics.quality, metrics.costs.total
    accepted = quality.statuses.get("accepted", 0)
    yield Tile("tasks accepted", f"{accepted:,}", f"of {metrics.tasks:,}", "good")
    yield _share("accepted at first try", quality.first_pass)
    yield _share("went to a person", metrics.people.escalated)
    yield _share("people agreed", metrics.people.agreement.agreed)
    over = len(metrics.budgets.over)
    yield Tile("over budget", f"{over:,}", "runs and tasks", "bad" if over else "")
    unpriced = f"and {total.unpriced:,} unpriced requests" if total.unpriced else ""
    known = f"${total.cost_usd:,.2f}" if total.cost_usd or not total.unpriced else "unknown"
    yield Tile("known cost", known, unpriced or f"{total.tokens:,} tokens")


def _share(name: str, share: Proportion) -> Tile:
    if share.value is None:
        return Tile(name, "\u2013", "nothing counted yet")
    return Tile(name, f"{share.value:.0%}", f"{share.hits:,} of {share.of:,}")
