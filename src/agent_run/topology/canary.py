"""The canary: a share of low-risk work goes to a new version, and the ledger judges it.

Which version a task gets depends on the names of task and canary alone: asked again, on any
machine, the answer is the same, and a larger share keeps every task that a smaller one had.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from pydantic import Field, JsonValue, ValidationError, field_validator

from agent_run.contract.base import Contract, Name, Share, Whole
from agent_run.contract.faults import Broken
from agent_run.contract.manifest import Manifest
from agent_run.contract.places import dotted
from agent_run.contract.plan import Plan
from agent_run.contract.values import faults_of
from agent_run.ledger.metrics.facts import SETTLED_WORDS, Task
from agent_run.ledger.metrics.statistics import (
    Proportion,
    difference,
    median,
    shift,
    tail_of,
)

Action: TypeAlias = Literal["wait", "promote", "roll back", "stop"]

LABEL: Final = "variant"
RISK: Final = "risk"
LOW: Final = "low"
_CHANGEABLE: Final = frozenset(
    {
        "executor",
        "model",
        "constraints",
        "handoff_notes",
        "verification",
        "invariants",
        "min_confidence",
        "tools",
        "budget",
    }
)
_CHANCE: Final = 0.05
_FEWEST: Final = 5
"""A rate of fewer tasks than this breaks no limit; a number of errors does."""


class StopAt(Contract):
    """Limits at which the canary stops by itself. `None` means no limit."""

    max_error_rate: Share | None = None
    max_override_rate: Share | None = None
    max_cost_ratio: float | None = Field(default=None, gt=0)
    """Cost of a task against the baseline's, by medians."""
    max_errors: Whole | None = Field(default=None, ge=1)
    """After so many errors nothing more is sent to the new version."""


class Canary(Contract):
    """A new version, and how much work it gets."""

    name: Name
    share: Share
    """How much of the low-risk work goes to the new version."""
    changes: dict[str, JsonValue] = Field(min_length=1)
    """What differs on the manifest: executor, model, constraints, notes, checks, confidence."""
    min_tasks: Whole = Field(default=20, ge=1)
    """With fewer settled tasks of either version nothing is recommended."""
    margin: Share = 0.05
    """How much worse a rate may be and still count as no worse."""
    stop_at: StopAt = StopAt()

    @field_validator("changes")
    @classmethod
    def _change_only_what_may_differ(
        cls, changes: dict[str, JsonValue]
    ) -> dict[str, JsonValue]:
        unknown = sorted(set(changes) - _CHANGEABLE)
        if unknown:
            told = f"may not differ, expected some of {', '.join(sorted(_CHANGEABLE))}"
            raise Broken((dotted((name,)), told) for name in unknown)
        anyone = {"task_id": "any", "objective": "any", **changes}
        try:
            Manifest.model_validate(anyone)
        except ValidationError as error:
            wrong = faults_of(error, wanted=Manifest, value=anyone)
            raise Broken((fault.key, fault.message) for fault in wrong) from error
        return changes


@dataclass(frozen=True, slots=True)
class Arm:
    """What one version did."""

    variant: str
    tasks: int
    settled: int
    errors: Proportion
    """Settled or escalated tasks that did not end accepted by the machine."""
    overrides: Proportion
    """Tasks about which a person decided otherwise, of all that were worked on."""
    seconds: tuple[float, ...]
    """From posting to the end, of each settled task."""
    costs: tuple[float, ...]
    """Known cost of each settled task."""
    unpriced: int

    @property
    def per_hour(self) -> float | None:
        """How many tasks like the middle one fit into an hour of one worker."""
        middle = median(self.seconds)
        return 3_600 / middle if middle else None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What should be done about a canary, and why."""

    action: Action
    why: tuple[str, ...]
    baseline: Arm
    canary: Arm


def gets_new_version(canary: Canary, task_id: str) -> bool:
    """Say whether a task of this name goes to the new version."""
    digest = hashlib.sha256(f"{canary.name}\n{task_id}".encode()).digest()
    return int.from_bytes(digest[:8], "big") < canary.share * 2**64


def is_low_risk(manifest: Manifest) -> bool:
    """Say whether a task may be tried on: it is labelled so, and asks for no person before."""
    return manifest.labels.get(RISK) == LOW and not manifest.approve_before_claim


def assigned(canary: Canary, manifest: Manifest) -> Manifest:
    """Return the task as the version it gets would do it, labelled for the comparison.

    A task that is not low-risk, or already labelled, is returned as it is.
    """
    if not is_low_risk(manifest) or LABEL in manifest.labels:
        return manifest
    new = gets_new_version(canary, manifest.task_id)
    variant = canary.name if new else f"not-{canary.name}"
    plain = manifest.model_dump(mode="json", exclude_defaults=True)
    changed = {**plain, **(canary.changes if new else {})}
    changed["labels"] = {**manifest.labels, LABEL: variant}
    return Manifest.model_validate(changed)


def assign_plan(canary: Canary, plan: Plan) -> Plan:
    """Return the plan with each of its steps assigned; the final steps stay as they are."""
    steps = tuple(assigned(canary, step) for step in plan.steps)
    return plan.model_copy(update={"steps": steps})


def stopped(canary: Canary) -> Canary:
    """Return the canary with nothing sent to the new version any more."""
    return canary.model_copy(update={"share": 0.0})


def judge(canary: Canary, tasks: Sequence[Task]) -> Verdict:
    """Say whether to promote the new version or to roll it back, from what both did."""
    new = arm(canary.name, tasks)
    old = arm(f"not-{canary.name}", tasks)
    verdict = Verdict("wait", (), old, new)
    broken = tuple(_broken(canary.stop_at, old, new))
    if broken:
        return replace(verdict, action="stop", why=broken)
    few = [one for one in (old, new) if one.settled < canary.min_tasks]
    if few:
        counts = ", ".join(f"{one.variant} has {one.settled}" for one in few)
        why = f"at least {canary.min_tasks} settled tasks of each are wanted; {counts}"
        return replace(verdict, why=(why,))
    return _recommended(canary, verdict)


def arm(variant: str, tasks: Sequence[Task]) -> Arm:
    """Return what the tasks with this label did."""
    ours = [task for task in tasks if task.labels.get(LABEL) == variant]
    settled = [task for task in ours if task.status in SETTLED_WORDS]
    ended = [task for task in ours if task.first_word or task.status == "failed"]
    worked = [task for task in ours if task.attempts]
    took = [
        (task.settled_at - task.posted_at).total_seconds()
        for task in settled
        if task.settled_at is not None
    ]
    return Arm(
        variant=variant,
        tasks=len(ours),
        settled=len(settled),
        errors=Proportion(sum(_went_wrong(task) for task in ended), len(ended)),
        overrides=Proportion(sum(task.overrides > 0 for task in worked), len(worked)),
        seconds=tuple(took),
        costs=tuple(float(task.spent.cost_usd) for task in settled),
        unpriced=sum(task.spent.unpriced for task in settled),
    )


def _went_wrong(task: Task) -> bool:
    return task.status == "failed" or task.escalations > 0 or task.rollbacks > 0


def _broken(limits: StopAt, old: Arm, new: Arm) -> list[str]:
    said: list[str] = []
    rates: Mapping[str, tuple[Proportion, float | None]] = {
        "error rate": (new.errors, limits.max_error_rate),
        "override rate": (new.overrides, limits.max_override_rate),
    }
    for name, (rate, limit) in rates.items():
        # Only when the whole interval lies above the limit is it more than bad luck.
        enough = rate.of >= _FEWEST and rate.interval[0] > (1.0 if limit is None else limit)
        if limit is not None and enough:
            said.append(f"{name} {_rate(rate)} is above the limit of {limit:.1%}")
    if limits.max_errors is not None and new.errors.hits >= limits.max_errors:
        said.append(f"{new.errors.hits} errors, the limit is {limits.max_errors}")
    ratio = _ratio(old.costs, new.costs)
    if (
        limits.max_cost_ratio is not None
        and ratio is not None
        and ratio > limits.max_cost_ratio
    ):
        said.append(
            f"a task costs {ratio:.2f} times as much, the limit is {limits.max_cost_ratio:g}"
        )
    return said


def _recommended(canary: Canary, verdict: Verdict) -> Verdict:
    old, new = verdict.baseline, verdict.canary
    why: list[str] = []
    worse = unsure = False
    for name, before, after in (
        ("error rate", old.errors, new.errors),
        ("override rate", old.overrides, new.overrides),
    ):
        low, high = difference(before, after)
        told = f"{name} {_rate(before)} before, {_rate(after)} now"
        why.append(f"{told}; difference {low:+.1%} to {high:+.1%}")
        worse = worse or low > canary.margin
        unsure = unsure or high > canary.margin
    why += [*_moved("cost", old.costs, new.costs), *_moved("time", old.seconds, new.seconds)]
    if worse:
        return replace(verdict, action="roll back", why=tuple(why))
    if unsure:
        why.append(f"it may still be more than {canary.margin:.1%} worse; more tasks will tell")
        return replace(verdict, action="wait", why=tuple(why))
    return replace(verdict, action="promote", why=tuple(why))


def _moved(what: str, before: Sequence[float], after: Sequence[float]) -> list[str]:
    moved = shift(before, after)
    one, other = median(before), median(after)
    if moved is None or one is None or other is None:
        return []
    chance = 2 * tail_of(-abs(moved.z))
    surely = f"p = {chance:.2g}" if chance < _CHANCE else "may be chance"
    return [f"median {what} of a task {one:g} before, {other:g} now ({surely})"]


def _ratio(before: Sequence[float], after: Sequence[float]) -> float | None:
    one, other = median(before), median(after)
    return None if not one or other is None else other / one


def _rate(share: Proportion) -> str:
    return f"{share.hits} of {share.of}"
