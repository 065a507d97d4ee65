"""The planner: a draft and a checklist become a plan, before anything is looked at.

The same draft, checklist, rules, versions and model make the same plan under the same name.
So checks that were interrupted go on where they stood, and what a person decided about a
draft holds as long as the draft does.
"""

import re
import stat
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from agent_run.contract.base import Contract, RunId
from agent_run.contract.budget import Budget
from agent_run.contract.manifest import Manifest
from agent_run.contract.plan import Plan
from agent_run.engine.runs import planned
from agent_run.errors import InvalidDocument
from agent_run.executors.content.remarks import digest_of
from agent_run.ledger.inbox import ABOUT
from agent_run.ledger.metrics.facts import OWN_WORK
from agent_run.ledger.state import RunState
from agent_run.recipes.qa.checklist import Checklist, OverallBudget, QaPlan, Step
from agent_run.recipes.qa.looking import digest_at, draft_at, keys_of
from agent_run.recipes.qa.rules import Rules, open_checkers, rules_for
from agent_run.recipes.qa.steps import CHECK, Assignment

REFLECT: Final = "qa.reflect"
SAVE: Final = "qa.save"
SUMMARIZE: Final = "qa.summarize"
RECIPE: Final = "qa"
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9]+")
_LONGEST_STEM: Final = 40
_MOST_ATTEMPTS: Final = 1_000
"""More cannot be written on a run; then it has no limit, and the steps still have theirs."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What holds for all drafts of one call."""

    checklist: Checklist
    beside: Path
    """The folder of the checklist, in which its rule files lie."""
    rules: Rules
    today: date
    model: str | None = None
    min_confidence: float | None = None
    """Instead of what the steps say. `None` leaves it to them."""
    reflect: bool = False

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps with the confidence that is asked for."""
        if self.min_confidence is None:
            return self.checklist.steps
        asked = {"min_confidence": self.min_confidence}
        return tuple(step.model_copy(update=asked) for step in self.checklist.steps)


class Dossier(Contract):
    """What the plan of a draft is about, kept with the plan in the ledger."""

    draft: str
    name: str
    plan: QaPlan


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan for one draft, under the name of its run."""

    run_id: RunId
    plan: Plan
    dossier: Dossier


def plan_for(path: Path, name: str, wanted: Wanted) -> Planned:
    """Return the plan for the draft at `path`, which people call `name`.

    Raises:
        InvalidDocument: There is no such file that could be read, or a rule file is not what
            it should be.
    """
    _refuse_no_draft(path, name)
    draft = draft_at(path)
    assignments = [
        Assignment(
            draft=str(path.resolve()),
            digest=digest_at(draft),
            checks=step.checks,
            rules=rules_for(step, wanted.beside, wanted.rules),
            model=wanted.model,
            overall=wanted.checklist.overall_budget,
        )
        for step in wanted.steps
    ]
    keys = [
        keys_of(draft, open_checkers(one.rules, one.checks), today=wanted.today)
        for one in assignments
    ]
    identity = digest_of(
        [step.model_dump(mode="json") for step in wanted.steps],
        [one.model_dump(mode="json") for one in assignments],
        keys,
        wanted.reflect,
    )
    dossier = Dossier(
        draft=str(path.resolve()),
        name=name,
        plan=QaPlan(
            plan_id=str(uuid.uuid5(uuid.NAMESPACE_OID, identity)),
            steps=wanted.steps,
            overall_budget=wanted.checklist.overall_budget,
        ),
    )
    return _planned(dossier, assignments, identity, wanted)


def again(planned_before: Planned, number: int, *, known: int = 0) -> Planned:
    """Return the same plan under its next name, where the run before cannot go on.

    So many steps are `known` from there that they take nothing from the overall budget.
    """
    name, plan = f"{planned_before.run_id}.{number}", planned_before.plan
    overall = planned_before.dossier.plan.overall_budget
    overall = overall.model_copy(update={"max_attempts": overall.max_attempts + known})
    steps = tuple(with_assignment(step, overall=overall) for step in plan.steps)
    update = {"plan_id": name, "steps": steps, "budget": on_the_run(overall)}
    plan = plan.model_copy(update=update)
    return replace(planned_before, run_id=name, plan=plan)


def with_assignment(step: Manifest, **changes: object) -> Manifest:
    """Return the step with another assignment."""
    told = Assignment.model_validate(step.input).model_copy(update=changes)
    return step.model_copy(update={"input": told.model_dump(mode="json")})


def dossier_of(run: RunState, run_id: RunId) -> Dossier:
    """Return what a run of this recipe is about.

    Raises:
        ContractError: The run follows no plan of this recipe.
    """
    final = {step.task_id: step for step in planned(run, run_id).final}
    if SAVE not in final:
        msg = f"run {run_id!r} is not a check of a draft"
        raise InvalidDocument(msg)
    return Dossier.model_validate(final[SAVE].input)


def _planned(
    dossier: Dossier, assignments: Sequence[Assignment], identity: str, wanted: Wanted
) -> Planned:
    stem = _NOT_IN_NAMES.sub("-", Path(dossier.name).stem).strip("-")[:_LONGEST_STEM].strip("-")
    run_id = f"qa-{stem or 'draft'}-{identity[:8]}"
    known: dict[str, JsonValue] = dossier.model_dump(mode="json")
    steps, overall = dossier.plan.steps, dossier.plan.overall_budget
    plan = Plan(
        plan_id=run_id,
        objective=f"Check {dossier.name} before it is published",
        order="graph",
        steps=tuple(
            _manifest(step, assignment, dossier.name, len(steps) - number)
            for number, (step, assignment) in enumerate(zip(steps, assignments, strict=True))
        ),
        final=tuple(_final(known, dossier.name, reflect=wanted.reflect)),
        budget=on_the_run(overall),
        # Steps that begin together would take from one another what suffices for a few.
        max_parallel=1 if overall.max_attempts < len(steps) else None,
    )
    return Planned(run_id, plan, dossier)


def on_the_run(overall: OverallBudget) -> Budget:
    """Return the overall budget as the run has it."""
    most = overall.max_attempts
    return Budget(
        max_attempts=most if most <= _MOST_ATTEMPTS else None,
        max_tokens=overall.max_tokens,
        time_budget_sec=overall.time_budget_sec,
    )


def _refuse_no_draft(path: Path, name: str) -> None:
    """Refuse what cannot be looked at at all; it is nothing that a person could decide."""
    try:
        name.encode()
        mode = path.stat().st_mode
        if stat.S_ISREG(mode):
            path.open("rb").close()
    except UnicodeEncodeError as error:
        msg = f"draft {name!r} has a name that is not UTF-8"
        raise InvalidDocument(msg) from error
    except FileNotFoundError as error:
        msg = f"draft {name!r} is not there"
        raise InvalidDocument(msg) from error
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else str(error)
        msg = f"draft {name!r} cannot be read: {said}"
        raise InvalidDocument(msg) from error
    if not stat.S_ISREG(mode):
        what = "is a folder" if stat.S_ISDIR(mode) else "is not a regular file"
        msg = f"draft {name!r} {what}, expected a file"
        raise InvalidDocument(msg)


def _manifest(step: Step, assignment: Assignment, about: str, priority: int) -> Manifest:
    return Manifest(
        task_id=step.id,
        objective=step.goal,
        handoff_notes=(step.context,) if step.context else (),
        executor=CHECK,
        input=assignment.model_dump(mode="json"),
        budget=Budget(max_attempts=step.max_attempts, time_budget_sec=step.time_budget_sec),
        min_confidence=step.min_confidence,
        # A step that the budget does not reach says so itself, in a record of its own.
        always=True,
        priority=priority,
        labels={"recipe": RECIPE, ABOUT: about},
    )


def _final(known: JsonValue, about: str, *, reflect: bool) -> list[Manifest]:
    words = {
        REFLECT: "Look at what was found, and say what would make the report better",
        SAVE: "Save what was found about the draft",
        SUMMARIZE: "Sum up what was found for the person who asked",
    }
    names = [REFLECT, SAVE, SUMMARIZE] if reflect else [SAVE, SUMMARIZE]
    return [
        Manifest(
            task_id=name,
            objective=words[name],
            executor=name,
            input=known,
            labels={"recipe": RECIPE, ABOUT: about, **OWN_WORK},
        )
        for name in names
    ]
