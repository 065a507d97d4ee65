"""Metrics as tables of words, for terminals and pages alike. Cells may hold hostile text."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from agent_run.ledger.metrics.budgets import BudgetLine, Use
from agent_run.ledger.metrics.confidence import FEWEST, StepConfidence
from agent_run.ledger.metrics.people import Agreement
from agent_run.ledger.metrics.report import Metrics
from agent_run.ledger.metrics.sparks import sparkline
from agent_run.ledger.metrics.statistics import Proportion
from agent_run.ledger.metrics.work import Cost

NO_DATA: Final = "no data"
"""What stands where nothing was counted; never a zero."""
FEW: Final = "~"
SMALL: Final = 10
"""What fewer cases than this say is marked with `FEW`."""


@dataclass(frozen=True, slots=True)
class Table:
    """A title, names of columns, and rows of as many cells."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def quality_table(metrics: Metrics) -> Table:
    """Return the numbers that stand for the work as a whole."""
    quality, people = metrics.quality, metrics.people
    runs = "run" if metrics.runs == 1 else "runs"
    statuses = ", ".join(f"{count} {name}" for name, count in sorted(quality.statuses.items()))
    fences = ", ".join(f"{kind} {count}" for kind, count in sorted(quality.fences.items()))
    rows = (
        ("tasks", f"{metrics.tasks} in {metrics.runs} {runs}", statuses),
        ("first-pass acceptance", *_share(quality.first_pass)),
        ("rework", *_share(quality.rework)),
        ("escalation rate", *_share(people.escalated)),
        ("agreement with people", *_share(people.agreement.agreed)),
        ("over budget", str(len(metrics.budgets.over)), "runs and tasks"),
        ("returns, rollbacks", f"{quality.returns}, {quality.rollbacks}", ""),
        ("lost claims, deferred verdicts", f"{quality.lost}, {quality.deferrals}", ""),
        ("fences", fences or "none seen", "attempts of each kind"),
    )
    return Table("The work as a whole", ("WHAT", "VALUE", "FROM"), rows)


def step_table(metrics: Metrics) -> Table:
    """Return one row for each step: how it went, and how sure its executors are."""
    confidence = {step.step: step for step in metrics.confidence}
    rows: list[tuple[str, ...]] = []
    for use in metrics.budgets.steps:
        step = confidence.get(use.step)
        rows.append(
            (
                use.step,
                str(use.tasks),
                _percent(metrics.quality.first_pass_by_step.get(use.step)),
                _percent(metrics.people.by_step.get(use.step)),
                _median(step),
                sparkline(step.values) if step else "",
                _regression(step),
            )
        )
    head = ("STEP", "TASKS", "FIRST PASS", "ESCALATED", "CONFIDENCE", "OVER TIME", "REGRESSION")
    return Table("By step", head, tuple(rows))


def answering_table(metrics: Metrics) -> Table:
    """Return how long people took."""
    rows = tuple(
        (
            one.kind,
            str(one.answered),
            str(one.open),
            *(
                _few(_span(time), one.answered)
                for time in (one.mean, one.p50, one.p90, one.p99)
            ),
        )
        for one in metrics.people.answering
    )
    head = ("WAITED FOR", "ANSWERED", "OPEN", "MEAN", "P50", "P90", "P99")
    return Table("Time to a person's answer", head, rows)


def agreement_table(metrics: Metrics) -> Table:
    """Return decisions of people beside what the machine thought, by step."""
    people = metrics.people
    rows = tuple(_agreement(one) for one in people.agreement_by_step)
    if len(rows) > 1:
        rows = (*rows, _agreement(people.agreement))
    head = (
        "STEP",
        "BOTH ACCEPT",
        "ONLY MACHINE",
        "ONLY PERSON",
        "BOTH REJECT",
        "AGREED",
        "KAPPA",
    )
    return Table("Agreement with people", head, rows)


def budget_table(metrics: Metrics) -> Table:
    """Return what each step used, and of what it was granted."""
    rows = tuple(
        (
            use.step,
            str(use.tasks),
            str(use.over),
            _of_plan(f"{use.attempts:,}", use.plan.get("attempts"), "{:,.0f}".format),
            _of_plan(f"{use.tokens:,}", use.plan.get("tokens"), "{:,.0f}".format),
            _of_plan(
                _price(use.cost_usd, use.unpriced)
                + (f" + {use.unpriced:,} unpriced" if use.cost_usd and use.unpriced else ""),
                use.plan.get("cost_usd"),
                lambda cost: f"${_amount(cost)}",
            ),
            _of_plan(_span(use.seconds), use.plan.get("seconds"), _span),
        )
        for use in metrics.budgets.steps
    )
    head = ("STEP", "TASKS", "OVER BUDGET", "ATTEMPTS", "TOKENS", "COST", "TIME")
    return Table("Used by each step, of what was granted", head, rows)


def over_table(metrics: Metrics) -> Table:
    """Return the runs and tasks that used more than was granted."""
    rows = tuple(row for line in metrics.budgets.over for row in _over(line))
    return Table("Over budget", ("RUN", "TASK", "WHAT", "USED", "GRANTED"), rows)


def refusal_table(metrics: Metrics) -> Table:
    """Return how often each gate did not pass, the most frequent first."""
    found = sorted(metrics.quality.refusals.items(), key=lambda item: (-item[1], item[0]))
    rows = tuple((gate, how, reason, str(count)) for (gate, how, reason), count in found)
    return Table("Gates that did not pass", ("GATE", "OUTCOME", "REASON", "COUNT"), rows)


def reason_table(metrics: Metrics) -> Table:
    """Return why people were asked, the most frequent reason first."""
    found = sorted(metrics.people.reasons.items(), key=lambda item: (-item[1], item[0]))
    rows = tuple((reason, str(count)) for reason, count in found)
    return Table("Why a person had to decide", ("REASON", "TASKS"), rows)


def cost_table(what: str, costs: Iterable[Cost]) -> Table:
    """Return what each model or step took, the dearest first."""
    ordered = sorted(costs, key=lambda cost: (-cost.cost_usd, -cost.tokens, cost.name))
    rows = tuple(
        (
            cost.name,
            f"{cost.attempts:,}",
            f"{cost.requests:,}",
            f"{cost.tokens:,}",
            _price(cost.cost_usd, cost.unpriced),
            f"{cost.unpriced:,}" if cost.unpriced else "",
        )
        for cost in ordered
        if cost.tokens or cost.requests or cost.cost_usd
    )
    head = (what.upper(), "ATTEMPTS", "REQUESTS", "TOKENS", "COST", "UNPRICED")
    return Table(f"Cost by {what}", head, rows)


def _median(step: StepConfidence | None) -> str:
    if step is None or step.median is None:
        return NO_DATA
    return _few(f"{step.median:.2f}", len(step.values))


def _regression(step: StepConfidence | None) -> str:
    if step is None or len(step.values) < FEWEST:
        return "too few values"
    fell = step.regression
    if fell is None:
        return "none"
    return f"fell {fell.earlier:.2f} to {fell.recent:.2f} since {fell.since:%Y-%m-%d}"


def _of_plan(used: str, plan: Use | None, shown: Callable[[float], str]) -> str:
    """Return what was used beside what was granted; tasks without a limit have no plan."""
    if plan is None or plan.limit is None:
        return used
    planned, limit = shown(plan.used), shown(plan.limit)
    return f"{used} of {limit}" if planned == used else f"{used} ({planned} of {limit} planned)"


def _agreement(one: Agreement) -> tuple[str, ...]:
    found, counted = one.kappa, one.agreed.of
    return (
        one.step or "(all)",
        str(one.matrix.get((True, True), 0)),
        str(one.matrix.get((True, False), 0)),
        str(one.matrix.get((False, True), 0)),
        str(one.matrix.get((False, False), 0)),
        _percent(one.agreed),
        ("undefined" if counted else NO_DATA)
        if found is None
        else _few(f"{found:.2f}", counted),
    )


def _over(line: BudgetLine) -> Iterator[tuple[str, ...]]:
    for name in line.over:
        use = line.uses[name]
        yield line.run_id, line.task_id, name, _amount(use.used), _amount(use.limit or 0)


def _price(cost_usd: Decimal, unpriced: int) -> str:
    """Return what is known of a cost: requests without a price are not free."""
    return "unknown" if unpriced and not cost_usd else f"${cost_usd:,}"


def _amount(value: float) -> str:
    shown = f"{value:,.4f}"
    return shown.rstrip("0").rstrip(".")


def _share(share: Proportion) -> tuple[str, str]:
    if share.value is None:
        return NO_DATA, "nothing counted yet"
    low, high = share.interval
    return _percent(share), f"{share.hits} of {share.of}, 95 % {low:.1%} to {high:.1%}"


def _percent(share: Proportion | None) -> str:
    if share is None or share.value is None:
        return NO_DATA
    return _few(f"{share.value:.1%}", share.of)


def _few(shown: str, counted: int) -> str:
    """Return a number with a mark if it was counted from too little to be trusted."""
    return f"{FEW}{shown}" if 0 < counted < SMALL else shown


def _span(seconds: float | None) -> str:
    """Return seconds in the unit a person would use."""
    if seconds is None:
        return NO_DATA
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size * 2:
            return f"{seconds / size:.1f}{unit}"
    return f"{seconds:.1f}s"
