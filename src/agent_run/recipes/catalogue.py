"""All recipes by name, and everybody who works in them; a new recipe is added here."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from agent_run.contract.paths import fault_of
from agent_run.contract.plan import Plan
from agent_run.desk import Desk
from agent_run.errors import ContractError
from agent_run.gates.cache import FileCache
from agent_run.ports.executor import Executor
from agent_run.recipes import code_fix, documentation_review, email_qa
from agent_run.recipes.qa.checklist import Checklist
from agent_run.recipes.qa.rules import Rules
from agent_run.recipes.qa.running import executors_of

_LEAST: Final = 2
_LONGEST_COMMAND: Final = 3_900
"""It becomes part of what the task is about."""
_LONGEST_PATH: Final = 1_000
_OUR_RULES: Final = Rules()


@dataclass(frozen=True, slots=True)
class ChecklistRecipe:
    """Checks drafts: its arguments are the files."""

    name: str
    says: str
    checklist: Checklist
    rules: Rules = _OUR_RULES


@dataclass(frozen=True, slots=True)
class PlanRecipe:
    """Makes a plan of its arguments, which any executors may carry out."""

    name: str
    says: str
    plan: Callable[[Sequence[str]], Plan]


Recipe: TypeAlias = ChecklistRecipe | PlanRecipe


def _code_fix(arguments: Sequence[str]) -> Plan:
    """Return the plan of `COMMAND PATH...`."""
    if len(arguments) < _LEAST:
        msg = f"recipe {code_fix.NAME!r} takes the command that fails, then paths it may change"
        raise ContractError(msg)
    command, *paths = arguments
    faults = [*_faults_of(command, paths)]
    if faults:
        told = "; ".join(faults)
        msg = f"recipe {code_fix.NAME!r} cannot be used so: {told}"
        raise ContractError(msg)
    return code_fix.code_fix((command,), paths)


def _faults_of(command: str, paths: Sequence[str]) -> Iterator[str]:
    if not command.strip():
        yield "the command that fails is empty"
    if len(command) > _LONGEST_COMMAND:
        yield f"the command has {len(command)} characters, expected at most {_LONGEST_COMMAND}"
    for path in paths:
        fault = fault_of(path) if path else "a path is empty"
        if fault:
            yield fault
        elif len(path) > _LONGEST_PATH:
            yield f"a path is {len(path)} characters long, expected at most {_LONGEST_PATH}"


RECIPES: Final[Mapping[str, Recipe]] = {
    recipe.name: recipe
    for recipe in (
        PlanRecipe(code_fix.NAME, code_fix.SAYS, _code_fix),
        ChecklistRecipe(
            documentation_review.NAME,
            documentation_review.SAYS,
            documentation_review.CHECKLIST,
        ),
        ChecklistRecipe(email_qa.NAME, email_qa.SAYS, email_qa.CHECKLIST, email_qa.RULES),
    )
}


def built_in_executors(desk: Desk, state: Path) -> Mapping[str, Executor]:
    """Return everybody that plans of our recipes name, so that any process can go on."""
    team = executors_of(desk, state, FileCache(state / "cache"))
    return {one.name: one for one in team}
