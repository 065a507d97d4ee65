"""Metrics in the text format that Prometheus reads.

Everything is a gauge or a summary of the ledger as it stands: what is counted may shrink
when `--since` moves on, so nothing here may be taken for a counter.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple, TypeAlias

from agent_run.ledger.metrics.confidence import FEWEST
from agent_run.ledger.metrics.people import Agreement, Answering, People
from agent_run.ledger.metrics.report import Metrics
from agent_run.ledger.metrics.statistics import Proportion
from agent_run.ledger.metrics.work import Cost, Quality

Labels: TypeAlias = Mapping[str, str]
_Value: TypeAlias = float | None


class Sample(NamedTuple):
    """One number, what it is about, and which one of its kind."""

    value: float
    labels: Labels
    suffix: str = ""


class Family(NamedTuple):
    """Numbers of one kind."""

    name: str
    says: str
    samples: tuple[Sample, ...]
    kind: Literal["gauge", "summary"] = "gauge"


def exposition(metrics: Metrics) -> str:
    """Return the metrics as Prometheus reads them; a family without a value is left out."""
    lines: list[str] = []
    for family in families(metrics):
        if not family.samples:
            continue
        lines.append(f"# HELP {family.name} {_help(family.says)}")
        lines.append(f"# TYPE {family.name} {family.kind}")
        lines += [_sample(family.name, sample) for sample in family.samples]
    return "\n".join(lines) + "\n"


def families(metrics: Metrics) -> Iterator[Family]:
    """Yield every number by its name; other exporters use the same names."""
    over = metrics.budgets.over
    yield _family("agent_run_runs", "Runs that were counted.", [(metrics.runs, {})])
    yield _family(
        "agent_run_budget_over",
        "Runs and tasks that used more than was granted.",
        [
            (sum(1 for line in over if not line.task_id), {"scope": "run"}),
            (sum(1 for line in over if line.task_id), {"scope": "task"}),
        ],
    )
    yield _family(
        "agent_run_step_budget_used_ratio",
        "What tasks with a limit used of all that they were granted.",
        [
            (use.share, {"step": step.step, "of": what})
            for step in metrics.budgets.steps
            for what, use in step.plan.items()
        ],
    )
    yield from _work(metrics.quality)
    yield from _people(metrics.people)
    yield from _confidence(metrics)
    yield from _costs("model", metrics.costs.by_model)
    yield from _costs("step", metrics.costs.by_task)


def _work(found: Quality) -> Iterator[Family]:
    yield _family(
        "agent_run_tasks",
        "Tasks in each status.",
        [(count, {"status": status}) for status, count in found.statuses.items()],
    )
    yield _shares(
        "agent_run_first_pass_ratio",
        "Tasks that the gates accepted at their first verdict.",
        found.first_pass_by_step,
    )
    yield _family(
        "agent_run_judged_tasks",
        "Tasks with a verdict, which the first-pass ratio is counted from.",
        [(share.of, {"step": step}) for step, share in found.first_pass_by_step.items()],
    )
    yield _family(
        "agent_run_rework_ratio",
        "Attempts after the first, of all attempts.",
        [(found.rework.value, {})],
    )
    yield _family("agent_run_rollbacks", "Results taken back.", [(found.rollbacks, {})])
    yield _family("agent_run_lost_claims", "Claims that ran out.", [(found.lost, {})])
    yield _family(
        "agent_run_gate_failures",
        "How often a gate did not pass, and why.",
        [
            (count, {"gate": gate, "outcome": outcome, "reason": reason})
            for (gate, outcome, reason), count in sorted(found.refusals.items())
        ],
    )
    yield _family(
        "agent_run_fence_attempts",
        "Attempts by what held the executor.",
        [(count, {"fence": kind}) for kind, count in sorted(found.fences.items())],
    )


def _people(found: People) -> Iterator[Family]:
    yield _shares(
        "agent_run_escalation_ratio",
        "Tasks that a person had to decide about, of all that were worked on.",
        found.by_step,
    )
    yield _family(
        "agent_run_worked_tasks",
        "Tasks that were worked on, which the escalation ratio is counted from.",
        [(share.of, {"step": step}) for step, share in found.by_step.items()],
    )
    yield Family(
        "agent_run_answer_seconds",
        "How long a person took to answer.",
        tuple(sample for one in found.answering for sample in _answering(one)),
        kind="summary",
    )
    yield _family(
        "agent_run_waiting",
        "Things that wait for a person.",
        [(one.open, {"kind": one.kind}) for one in found.answering],
    )
    yield _family(
        "agent_run_decisions",
        "Decisions of people beside what the machine thought.",
        [row for one in found.agreement_by_step for row in _matrix(one)],
    )
    yield _family(
        "agent_run_agreement_kappa",
        "Cohen's kappa between machine and people.",
        [(one.kappa, {"step": one.step}) for one in found.agreement_by_step],
    )


def _confidence(metrics: Metrics) -> Iterator[Family]:
    steps = metrics.confidence
    yield _family(
        "agent_run_confidence_median",
        "Median of what executors said about their own work.",
        [(step.median, {"step": step.step}) for step in steps],
    )
    yield _family(
        "agent_run_confidence_regressed",
        "1 where confidence fell, by a rank test; left out while there are too few values.",
        [
            (int(step.regression is not None), {"step": step.step})
            for step in steps
            if len(step.values) >= FEWEST
        ],
    )


def _costs(label: str, rows: Iterable[Cost]) -> Iterator[Family]:
    costs = list(rows)
    by = f"by {label}."
    yield _family(
        f"agent_run_{label}_cost_usd",
        f"Known cost {by}",
        [
            (float(cost.cost_usd), {label: cost.name})
            for cost in costs
            if cost.cost_usd or not cost.unpriced  # what nobody knows is not nothing
        ],
    )
    yield _family(
        f"agent_run_{label}_tokens",
        f"Tokens {by}",
        [(cost.tokens, {label: cost.name}) for cost in costs],
    )
    yield _family(
        f"agent_run_{label}_unpriced_requests",
        f"Requests without a known price {by}",
        [(cost.unpriced, {label: cost.name}) for cost in costs],
    )


def _answering(one: Answering) -> Iterator[Sample]:
    for share, value in (("0.5", one.p50), ("0.9", one.p90), ("0.99", one.p99)):
        if value is not None:
            yield Sample(value, {"kind": one.kind, "quantile": share})
    yield Sample((one.mean or 0.0) * one.answered, {"kind": one.kind}, "_sum")
    yield Sample(one.answered, {"kind": one.kind}, "_count")


def _matrix(one: Agreement) -> Iterator[tuple[_Value, Labels]]:
    words = {True: "accept", False: "reject"}
    for (machine, person), count in sorted(one.matrix.items()):
        yield count, {"step": one.step, "machine": words[machine], "person": words[person]}


def _shares(name: str, says: str, shares: Mapping[str, Proportion]) -> Family:
    return _family(name, says, [(share.value, {"step": s}) for s, share in shares.items()])


def _family(name: str, says: str, rows: Iterable[tuple[_Value, Labels]]) -> Family:
    samples = (Sample(value, labels) for value, labels in rows if value is not None)
    return Family(name, says, tuple(samples))


def _sample(name: str, sample: Sample) -> str:
    labels = ",".join(f'{key}="{_quoted(value)}"' for key, value in sample.labels.items())
    braces = f"{{{labels}}}" if labels else ""
    return f"{name}{sample.suffix}{braces} {_number(sample.value)}"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(round(value, 9))


def _quoted(text: str) -> str:
    safe = text.encode("utf-8", "backslashreplace").decode()
    return safe.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")
