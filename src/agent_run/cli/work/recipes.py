"""The way to the recipes: loaded when asked for, and what they lack here is named."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable

from agent_run.cli.declaring import loaded
from agent_run.cli.speech import Json, Speech
from agent_run.cli.work.door import Door
from agent_run.contract.base import RunId, TaskId
from agent_run.contract.plan import Plan
from agent_run.desk import Desk
from agent_run.errors import ContractError, Unfit
from agent_run.ledger.commands import Fail
from agent_run.ledger.state import RunState, Status, TaskState
from agent_run.ledger.words import against
from agent_run.ports.executor import Executor

NAMES: Final = ("code-fix", "documentation-review", "email-qa")
OWN: Final = "qa"
"""The recipe whose cases name a checklist each."""
OURS: Final = "qa."
"""How the names of executors begin that come with a recipe."""
_SAVES: Final = "qa.save"
_CHECK: Final = "qa.check"
_TRY_AGAIN: Final = frozenset({"ask", "answer", "again"})
_WORK: Final = "agent_run.cli.work"
_RECIPES: Final = "agent_run.recipes"
_CATALOGUE: Final = f"{_RECIPES}.catalogue"


@runtime_checkable
class Checks(Protocol):
    """A recipe that checks drafts."""

    checklist: Any


class Plans(Protocol):
    """A recipe that makes a plan."""

    def plan(self, arguments: Sequence[str], /) -> Plan:
        """Return the plan for these arguments."""
        ...


def qa(speech: Speech, **values: Any) -> int:
    """Check drafts against a checklist."""
    code: int = _found(f"{_WORK}.qa:qa")(speech, **values)
    return code


def configure(speech: Speech, **values: Any) -> int:
    """Turn a conversation into a configuration."""
    code: int = _found(f"{_WORK}.configuring:configure")(speech, **values)
    return code


def by_recipe(speech: Speech, recipe: Checks, drafts: tuple[str, ...], **asked: Any) -> int:
    """Check drafts against the checklist of a recipe."""
    code: int = _found(f"{_WORK}.qa:by_recipe")(speech, recipe, drafts, **asked)
    return code


def second_act(speech: Speech, desk: Desk, state: Path) -> Json | None:
    """Show the example drafts being checked; None, and why, where that cannot be done."""
    try:
        act: Json | None = _found(f"{_WORK}.qa:second_act")(speech, desk, state)
    except Unfit as unfit:
        speech.tell(f"no drafts are checked: {unfit}")
        return None
    return act


def is_conversation(run: RunState) -> bool:
    """Say whether a run was opened by `configure`."""
    return isinstance(run.plan, dict) and run.plan.get("recipe") == "configure"


def is_check(run: RunState) -> bool:
    """Say whether a run is the check of a draft."""
    plan = run.plan.get("plan") if isinstance(run.plan, dict) else None
    final = plan.get("final") if isinstance(plan, dict) else None
    steps = final if isinstance(final, list) else []
    return any(isinstance(one, dict) and one.get("executor") == _SAVES for one in steps)


def continued(run: RunState) -> Callable[[Door, RunId], int] | None:
    """Return who goes on with a run that a recipe opened; None for any other run."""
    if is_conversation(run):
        going: Callable[[Door, RunId], int] = _found(f"{_WORK}.configuring:went_on")
        return going
    if is_check(run):
        checking: Callable[[Door, RunId], int] = _found(f"{_WORK}.qa:went_on")
        return checking
    return None


def after_decision(run_id: RunId, run: RunState) -> str:
    """Return what to type after a decision in the run of a recipe; empty for any other run."""
    ours = is_check(run) or is_conversation(run)
    return f"agent-run resume {run_id}" if ours else ""


def checks_a_draft(task: TaskState) -> bool:
    """Say whether a task is the check of a draft, which can be asked nothing."""
    return task.manifest.executor == _CHECK


def refuse_question(task: TaskState, decision: str) -> None:
    """Refuse to ask a check of a draft, to answer it, or to try it again.

    Raises:
        ContractError: The decision is such a one.
    """
    if checks_a_draft(task) and decision in _TRY_AGAIN:
        name = task.manifest.task_id
        msg = (
            f"task {name!r} is a check, which finds the same in the same draft and takes no"
            f" --{decision}, expected --approve or --reject REASON"
        )
        raise ContractError(msg)


def settle_rejection(door: Door, run_id: RunId, task_id: TaskId) -> None:
    """Fail a check that a person has just rejected: the same draft is not checked again."""
    task = door.desk.run(run_id).tasks[task_id]
    if not checks_a_draft(task) or task.status is not Status.READY or not task.returned:
        return
    said = against(task.returned[-1])
    note = f"a person rejected it: {said}"
    fail = Fail(task_id=task_id, actor=OWN, reason="review_rejected", note=note)
    door.handle(run_id, fail)


def recipe_named(name: str) -> Checks | Plans | None:
    """Return the recipe called `name`; None if there is no such recipe."""
    if name not in NAMES:
        return None
    recipe: Checks | Plans = _found(f"{_CATALOGUE}:RECIPES")[name]
    return recipe


def on_drafts(name: str, **values: Any) -> Any:
    """Return what checks the drafts of a dataset; `OWN` by the checklist each case names."""
    recipe = None if name == OWN else recipe_named(name)
    return _found(f"{_RECIPES}.evaluating:OnDrafts")(recipe=recipe, **values)


def built_in_executors(door: Door) -> dict[str, Executor]:
    """Return everybody that plans of our recipes name."""
    made = _found(f"{_CATALOGUE}:built_in_executors")(door.desk, door.settings.state)
    return dict(made)


def _found(target: str) -> Any:
    try:
        return loaded(target)
    except ModuleNotFoundError as error:
        msg = f"this needs {error.name!r}, which is not installed; install 'agent-run[qa]'"
        raise Unfit(msg) from error
