"""How one case of a dataset goes through a plan: its own ledger, its own run, resumable.

The project stays as it was: what a plan changes, it changes in a copy below the result folder.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Protocol, TypeAlias
from urllib.parse import quote

from anyio import to_thread
from pydantic import JsonValue

from agent_run.cli.work.documents import load_as, read_file
from agent_run.cli.work.recipes import NAMES, OWN, Checks, on_drafts, recipe_named
from agent_run.cli.work.running import known_executors
from agent_run.contract.manifest import Manifest
from agent_run.contract.plan import Plan
from agent_run.desk import Desk
from agent_run.engine.loop import Crew
from agent_run.engine.runs import fit, resume, run_plan
from agent_run.errors import AgentRunError, ContractError, InvalidDocument
from agent_run.evals.cases import EvalCase
from agent_run.evals.running import About, Errand
from agent_run.ledger.commands import Release
from agent_run.ledger.pages import Page
from agent_run.ledger.state import Status
from agent_run.models.names import parse_model
from agent_run.ports.executor import Executor
from agent_run.wiring.apart import ProjectCopy
from agent_run.wiring.loading import LIKE, function_at
from agent_run.wiring.opening import open_desk
from agent_run.wiring.settings import Settings
from agent_run.wiring.site import Wanted, open_executor, open_site

Recipe: TypeAlias = Callable[[JsonValue], Plan]
"""Makes a plan of the input of a case."""
Through: TypeAlias = Callable[[Desk, Errand], Awaitable[None]]
"""Brings the run of one case as far as it goes."""
_LEDGER: Final = ("", "-wal", "-shm")


@dataclass(frozen=True, slots=True)
class Ground:
    """Where an evaluation reads and writes."""

    settings: Settings
    beside: Path
    """The folder of the dataset."""
    folder: Path
    """The result folder."""


class OnCases(Protocol):
    """What puts the cases of a dataset through a recipe of its own kind."""

    def about(self, case: EvalCase, /) -> JsonValue:
        """Return what changes when the answer to a case may."""
        ...

    def is_too_late(self, desk: Desk, errand: Errand, /) -> bool:
        """Say whether a case must begin again rather than go on."""
        ...

    async def through(self, desk: Desk, errand: Errand, /) -> None:
        """Bring one case as far as it goes."""
        ...


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What every case is put through."""

    described: Mapping[str, JsonValue]
    """What makes it another pipeline: the plan, and how its executors are configured."""
    through: Through
    copy: ProjectCopy
    about: About | None = None
    is_too_late: Callable[[Desk, Errand], bool] | None = None
    notes: tuple[str, ...] = ()
    """What the user should know before it begins."""
    files: bool = False
    """Whether every case is known to need the files of the project."""

    def prepare(self) -> tuple[str, ...]:
        """Make the copy now if all need it, and return what the user should know.

        Uncommitted work is told of now, and not for each case.
        """
        if self.files:
            self.copy.place()
        return tuple(filter(None, (*self.notes, self.copy.moved())))

    async def conduct(self, errand: Errand) -> Sequence[Page]:
        """Bring the run of one case as far as it goes, and return its pages.

        Raises:
            InvalidDocument: Nobody can do one of the steps.
        """
        desk = await to_thread.run_sync(self._opened, errand)
        try:
            await self.through(desk, errand)
            return await to_thread.run_sync(desk.pages, errand.run_id)
        finally:
            desk.close()

    def _opened(self, errand: Errand) -> Desk:
        url = f"sqlite:///{quote(str(errand.ledger.absolute()))}"
        desk = open_desk(url)
        if self.is_too_late is None or not self.is_too_late(desk, errand):
            _give_back(desk)
            return desk
        desk.close()
        for ending in _LEDGER:
            errand.ledger.with_name(errand.ledger.name + ending).unlink(missing_ok=True)
        return open_desk(url)


@dataclass(frozen=True, slots=True)
class _Planned:
    """Makes a plan of each case, and has it carried out on a copy of the project."""

    recipe: Recipe
    settings: Settings
    copy: ProjectCopy

    def about(self, case: EvalCase) -> JsonValue:
        return self.recipe(case.input).model_dump(mode="json", exclude_defaults=True)

    async def through(self, desk: Desk, errand: Errand) -> None:
        plan = self.recipe(errand.case.input)
        crew = crew_for(plan, self.settings, desk)
        wanted = Wanted(copy=self.copy, files=touches_files(plan, crew))
        site = await to_thread.run_sync(partial(open_site, desk, self.settings, wanted))
        if desk.store.runs(run_id=errand.run_id):
            await resume(site, errand.run_id, crew)
        else:
            await run_plan(site, plan, crew, run_id=errand.run_id)


def _give_back(desk: Desk) -> None:
    """Take over from a process that died: what it broke off is no attempt that failed.

    The result folder is held by this process alone, so nobody else works on these ledgers.
    """
    for row in desk.runs():
        for task_id, task in desk.run(row.run_id).tasks.items():
            if task.status is Status.CLAIMED and task.manifest.on_crash == "retry":
                release = Release(
                    task_id=task_id,
                    actor=task.owner or "",
                    claim=task.claim or 0,
                    reason="the evaluation was broken off",
                )
                desk.handle(row.run_id, release)


def pipeline_of(plan: str | None, recipe: str | None, ground: Ground) -> Pipeline:
    """Return the plan in the file `plan`, or what `recipe` makes of each case.

    A recipe is one of ours by its name, or a function.

    Raises:
        InvalidDocument: The file is no plan, or nobody can do one of its steps.
        ContractError: There is no such recipe.
    """
    settings = ground.settings
    copy = ProjectCopy(settings.root, ground.folder.absolute() / "copy", settings.dirty)
    configured = {"settings": _configured(settings)}
    if plan is not None:
        fitted = _plan(plan, settings)
        files = touches_files(fitted, crew_for(fitted, settings))
        described = fitted.model_dump(mode="json", exclude_defaults=True)
        through = _Planned(partial(with_input, fitted), settings, copy).through
        return Pipeline({"plan": described, **configured}, through, copy, files=files)
    known = {"recipe": recipe, **configured}
    name = recipe or ""
    ours = recipe_named(name)
    if name == OWN or isinstance(ours, Checks):
        return _on_drafts(name, known, ground, copy)
    if ours is not None:
        fixed = _Planned(partial(_by_arguments, name, ours.plan), settings, copy)
        return Pipeline(known, fixed.through, copy, fixed.about, files=True)
    made = _Planned(_function(name, settings.root), settings, copy)
    return Pipeline(known, made.through, copy)


def _on_drafts(
    name: str, known: Mapping[str, JsonValue], ground: Ground, copy: ProjectCopy
) -> Pipeline:
    model, notes = _model(ground.settings)
    drafts: OnCases = on_drafts(
        name,
        beside=ground.beside,
        folder=ground.folder.absolute(),
        settings=ground.settings,
        model=model,
    )
    return Pipeline(known, drafts.through, copy, drafts.about, drafts.is_too_late, notes)


def _model(settings: Settings) -> tuple[str | None, tuple[str, ...]]:
    """Return the model that reads drafts; a name meant for other tools is passed over."""
    if settings.model is None:
        return None, ()
    try:
        parse_model(settings.model)
    except ContractError as error:
        return None, (f"no model reads the drafts: {error}",)
    return settings.model, ()


def known_about(pipeline: Pipeline, cases: Sequence[EvalCase]) -> About | None:
    """Return what the cases name and do not hold, found out once and before anything is spent.

    Raises:
        InvalidDocument: Cases name what is not there; `faults` has them all.
    """
    if pipeline.about is None:
        return None
    known: dict[str, JsonValue] = {}
    faults: list[str] = []
    for case in cases:
        try:
            known[case.case_id] = pipeline.about(case)
        except ContractError as error:
            faults.append(f"case {case.case_id!r}: {error}")
    if faults:
        raise InvalidDocument("\n".join(faults), tuple(faults))
    return lambda case: known[case.case_id]


def crew_for(plan: Plan, settings: Settings, desk: Desk | None = None) -> Crew:
    """Return everybody the plan names; whoever is unknown is left to `fit` to tell."""
    executors: dict[str, Executor] = {}
    for name in dict.fromkeys(s.executor for s in (*plan.steps, *plan.final) if s.executor):
        try:
            executors[name] = open_executor(name, settings, desk=desk)
        except ContractError:
            continue  # `fit` names every step that has nobody, all in one go
    fallback = open_executor(None, settings, desk=desk) if settings.executor else None
    return Crew(executors, fallback, owner=settings.owner)


def touches_files(plan: Plan, crew: Crew) -> bool:
    """Say whether somebody who works on the plan needs the files of the project."""
    steps = (*plan.steps, *plan.final)
    workers = [crew.executors.get(step.executor or "", crew.fallback) for step in steps]
    return any(one.wants_workspace for one in workers if one is not None) or any(
        step.allowed_paths or step.verification or step.invariants for step in steps
    )


def with_input(plan: Plan, given: JsonValue) -> Plan:
    """Return the plan with the input of a case.

    A step gets it unless it has an input of its own, or is handed what other steps gave.
    """
    steps = tuple(_with_input(step, given) for step in plan.steps)
    return plan.model_copy(update={"steps": steps})


def _plan(file: str, settings: Settings) -> Plan:
    document = load_as(read_file(file), "plan")
    if not isinstance(document, Plan):
        msg = f"{file}: is not a plan"
        raise InvalidDocument(msg)
    crew, others = crew_for(document, settings), known_executors(settings)
    return fit(document, crew, others=others, given_later=True)


def _configured(settings: Settings) -> JsonValue:
    return {
        "model": settings.model,
        "executor": settings.executor,
        "executors": {
            name: one.model_dump(mode="json") for name, one in settings.executors.items()
        },
    }


def _by_arguments(name: str, plan: Callable[[Sequence[str]], Plan], given: JsonValue) -> Plan:
    words = [given] if isinstance(given, str) else given
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        msg = f"the input of a case of recipe {name!r} is a list of its arguments"
        raise InvalidDocument(msg)
    return plan([str(word) for word in words])


def _function(place: str, root: Path) -> Recipe:
    if ":" not in place:
        known = ", ".join(sorted((*NAMES, OWN)))
        msg = f"recipe {place!r} is not known, expected {known} or a function as {LIKE!r}"
        raise ContractError(msg)
    function = function_at(place, called="recipe", root=root)

    def recipe(given: JsonValue) -> Plan:
        try:
            made = function(given)
        except AgentRunError:
            raise
        except Exception as error:
            # Code of the user's: whatever it raises is a fault of this case, not of ours.
            msg = f"recipe {place!r} failed: {type(error).__name__}: {error}"
            raise ContractError(msg) from error
        if not isinstance(made, Plan):
            msg = f"recipe {place!r} gave {type(made).__name__}, expected a Plan"
            raise ContractError(msg)
        return made

    return recipe


def _with_input(step: Manifest, given: JsonValue) -> Manifest:
    if given is None or step.input is not None or step.needs:
        return step
    return step.model_copy(update={"input": given})
