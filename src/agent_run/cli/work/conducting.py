"""How one case of a dataset goes through a plan: its own ledger, its own run, resumable."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias
from urllib.parse import quote

import anyio
from pydantic import JsonValue

from agent_run.cli.work.documents import load_as, read_file
from agent_run.contract.manifest import Manifest
from agent_run.contract.plan import Plan
from agent_run.engine.loop import Crew
from agent_run.engine.runs import fit, resume, run_plan
from agent_run.errors import ContractError, InvalidDocument
from agent_run.evals.running import Errand
from agent_run.ledger.pages import Page
from agent_run.ports.executor import Executor
from agent_run.wiring.loading import function_at
from agent_run.wiring.opening import open_desk
from agent_run.wiring.settings import Settings
from agent_run.wiring.site import open_executor, open_site

Recipe: TypeAlias = Callable[[JsonValue], Plan]
"""Makes a plan of the input of a case."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What every case is put through."""

    described: Mapping[str, JsonValue]
    """What makes it another pipeline: the plan, and how its executors are configured."""
    recipe: Recipe
    settings: Settings

    async def conduct(self, errand: Errand) -> Sequence[Page]:
        """Bring the run of one case as far as it goes, and return its pages.

        Raises:
            InvalidDocument: Nobody can do one of the steps.
        """
        plan = self.recipe(errand.case.input)
        crew = crew_for(plan, self.settings)
        url = f"sqlite:///{quote(str(errand.ledger.absolute()))}"
        desk = await anyio.to_thread.run_sync(open_desk, url)
        try:
            site = await anyio.to_thread.run_sync(partial(open_site, desk, self.settings))
            if desk.store.runs(run_id=errand.run_id):
                await resume(site, errand.run_id, crew)
            else:
                await run_plan(site, plan, crew, run_id=errand.run_id)
            return await anyio.to_thread.run_sync(desk.pages, errand.run_id)
        finally:
            desk.close()


def pipeline_of(plan: str | None, recipe: str | None, settings: Settings) -> Pipeline:
    """Return the plan in the file `plan`, or what the function `recipe` makes of each case.

    Raises:
        InvalidDocument: The file is no plan, or nobody can do one of its steps.
        ContractError: There is no such function.
    """
    configured: JsonValue = {
        "model": settings.model,
        "executor": settings.executor,
        "executors": {
            name: one.model_dump(mode="json") for name, one in settings.executors.items()
        },
    }
    if plan is None:
        made: Recipe = function_at(recipe or "", called="recipe", root=settings.root)
        return Pipeline({"recipe": recipe, "settings": configured}, made, settings)
    document = load_as(read_file(plan), "plan")
    if not isinstance(document, Plan):
        msg = f"{plan}: is not a plan"
        raise InvalidDocument(msg)
    fitted = fit(document, crew_for(document, settings))
    described = fitted.model_dump(mode="json", exclude_defaults=True)
    return Pipeline(
        {"plan": described, "settings": configured}, partial(with_input, fitted), settings
    )


def crew_for(plan: Plan, settings: Settings) -> Crew:
    """Return everybody the plan names; whoever is unknown is left to `fit` to tell."""
    executors: dict[str, Executor] = {}
    for name in dict.fromkeys(s.executor for s in (*plan.steps, *plan.final) if s.executor):
        try:
            executors[name] = open_executor(name, settings)
        except ContractError:
            continue  # `fit` names every step that has nobody, all in one go
    fallback = open_executor(None, settings) if settings.executor else None
    return Crew(executors, fallback, owner=settings.owner)


def with_input(plan: Plan, given: JsonValue) -> Plan:
    """Return the plan with the input of a case.

    A step gets it unless it has an input of its own, or is handed what other steps gave.
    """
    steps = tuple(_with_input(step, given) for step in plan.steps)
    return plan.model_copy(update={"steps": steps})


def _with_input(step: Manifest, given: JsonValue) -> Manifest:
    if given is None or step.input is not None or step.needs:
        return step
    return step.model_copy(update={"input": given})
