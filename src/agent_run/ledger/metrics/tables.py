"""Metrics as tables of words, for terminals and pages alike. Cells may hold hostile text."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from agent_run.ledger.metrics.budgets import BudgetLine
from agent_run.ledger.metrics.people import Agreement
from agent_run.ledger.metrics.report import Metrics
from agent_run.ledger.metrics.sparks import sparkline
from agent_run.ledger.metrics.statistics import Proportion
from agent_run.ledger.metrics.work import Cost


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
        fell = step.regression if step else None
        rows.append(
            (
                use.step,
                str(use.tasks),
                _percent(metrics.quality.first_pass_by_step.get(use.step)),
                _percent(metrics.people.by_step.get(use.step)),
                f"{step.median:.2f}" if step and step.median is not None else "",
                sparkline(step.values) if step else "",
                f"fell {fell.earlier:.2f} to {fell.recent:.2f}" if fell else "",
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
            _span(one.mean),
            _span(one.p50),
            _span(one.p90),
            _span(one.p99),
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
    """Return what each step used."""
    rows = tuple(
        (
            use.step,
            str(use.tasks),
            str(use.over),
            f"{use.attempts:,}",
            f"{use.tokens:,}",
            _price(use.cost_usd, use.unpriced)
            + (f" + {use.unpriced:,} unpriced" if use.cost_usd and use.unpriced else ""),
            _span(use.seconds),
        )
        for use in metrics.budgets.steps
    )
    head = ("STEP", "TASKS", "OVER BUDGET", "ATTEMPTS", "TOKENS", "COST", "TIME")
    return Table("Used by each step", head, rows)


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


def _agreement(one: Agreement) -> tuple[str, ...]:
    found = one.kappa
    return (
        one.step or "(all)",
        str(one.matrix.get((True, True), 0)),
        str(one.matrix.get((True, False), 0)),
        str(one.matrix.get((False, True), 0)),
        str(one.matrix.get((False, False), 0)),
        _percent(one.agreed),
        "" if found is None else f"{found:.2f}",
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
        return "", "nothing counted yet"
    low, high = share.interval
    return _percent(share), f"{share.hits} of {share.of}, 95 % {low:.1%} to {high:.1%}"


def _percent(share: Proportion | None) -> str:
    return "" if share is None or share.value is None else f"{share.value:.1%}"


def _span(seconds: float | None) -> str:
    """Return seconds in the unit a person would use."""
    if seconds is None:
        return ""
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size * 2:
            return f"{seconds / size:.1f}{unit}"
    return f"{seconds:.1f}s"
