"""Whole plans: checked when they are built, opened as a run, driven to their end, resumed.

Workers under an orchestrator and specialists by routing are run the same way.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

import anyio
from pydantic import JsonValue

from agent_run.contract.base import RunId, is_name
from agent_run.contract.fitting import misfits
from agent_run.contract.manifest import Manifest
from agent_run.contract.plan import Plan
from agent_run.contract.record import Record, RecordStatus
from agent_run.contract.shapes import Orchestration, Routing
from agent_run.contract.values import valid
from agent_run.engine.inputs import unfit_inputs
from agent_run.engine.loop import Crew, drive
from agent_run.engine.shapes import Followed, Shape, decides, followed_by
from agent_run.engine.site import Site
from agent_run.errors import ContractError, InvalidDocument, UnknownRun
from agent_run.ledger.commands import OpenRun
from agent_run.ledger.state import SETTLED, RunState, Status
from agent_run.ports.executor import Executor, Job, Seen, Work
from agent_run.topology.plan_execute import Replanning

NESTED: Final = "plan"
"""The executor of a step whose input is a plan."""
Ending: TypeAlias = Literal["accepted", "failed", "waiting", "cancelled"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run stands when it cannot go on by itself."""

    run_id: RunId
    status: Ending
    run: RunState

    def output(self, task_id: str) -> JsonValue:
        """Return what an accepted task gave."""
        task = self.run.tasks[task_id]
        accepted = task.status is Status.ACCEPTED and task.record is not None
        return task.record.output if accepted and task.record else None


async def run_plan(
    site: Site,
    plan: Shape,
    crew: Crew,
    *,
    run_id: RunId,
    replanning: Replanning | None = None,
) -> Outcome:
    """Open a run for `plan`, or for workers or specialists, and bring it as far as it goes.

    Raises:
        ContractError: Producers and consumers of the plan do not fit, or nobody can do a step.
    """
    if not is_name(run_id):
        msg = f"run {run_id!r} cannot be called so, expected letters, digits, '-', '_' and dots"
        raise ContractError(msg)
    crew = with_sub_plans(site, crew)
    followed = Followed(fitted(plan, crew), replanning)
    opened = OpenRun(
        actor=crew.owner,
        intent=plan.intent if isinstance(plan, Routing) else plan.objective,
        budget=plan.budget,
        plan=followed.document(),
    )
    await anyio.to_thread.run_sync(lambda: site.desk.handle(run_id, opened))
    return await _driven(site, run_id, followed, crew)


async def resume(site: Site, run_id: RunId, crew: Crew) -> Outcome:
    """Go on with a run from where the ledger says it stands.

    Raises:
        ContractError: The run was opened for nothing that could be followed.
    """
    run = await anyio.to_thread.run_sync(site.desk.run, run_id)
    return await _driven(site, run_id, followed_by(run, run_id), crew)


def planned(run: RunState, run_id: RunId) -> Plan:
    """Return the plan that a run was opened for.

    Raises:
        ContractError: It was opened for none.
    """
    shape = followed_by(run, run_id).shape
    if not isinstance(shape, Plan):
        msg = f"run {run_id!r} follows no plan"
        raise ContractError(msg)
    return shape


def fitted(shape: Shape, crew: Crew, *, others: Iterable[str] = ()) -> Shape:
    """Return what a run is to follow with the types of its executors filled in.

    Raises:
        InvalidDocument: Something does not fit; `faults` names each place.
    """
    match shape:
        case Plan():
            return fit(shape, crew, others=others)
        case Orchestration():
            places = [(f"workers[{n}]", one) for n, one in enumerate(shape.workers)]
            places += [("synthesis", shape.synthesis)]
            places += [("decompose", shape.decompose)] if shape.decompose else []
            _refuse(_without_anybody(places, crew, others))
            workers = tuple(_typed(one, crew) for one in shape.workers)
            return shape.model_copy(update={"workers": workers})
        case Routing():
            places = [(f"specialists.{name}", one) for name, one in shape.specialists.items()]
            _refuse(_without_anybody(places, crew, others))
            return shape


def fit(
    plan: Plan, crew: Crew, *, others: Iterable[str] = (), given_later: bool = False
) -> Plan:
    """Return the plan with the types of its executors filled in, if everything fits.

    `others` are executors that could be named as well; they are told to who named nobody.
    With `given_later`, steps without an input will get one.

    Raises:
        InvalidDocument: It does not; `faults` names each place.
    """
    steps = tuple(_typed(step, crew) for step in plan.steps)
    final = tuple(_typed(step, crew) for step in plan.final)
    fitted = plan.model_copy(update={"steps": steps, "final": final})
    everybody = {**crew.executors, **({"": crew.fallback} if crew.fallback else {})}
    unfit = unfit_inputs(fitted, everybody, given_later=given_later)
    _refuse([*_nobody(fitted, crew, others), *unfit, *_misfits(fitted.manifests())])
    return fitted


def ending(run: RunState, shape: Shape | None = None) -> Ending:
    """Return in one word how the run stands."""
    if run.cancelled:
        return "cancelled"
    joined = None if shape is None else decides(shape, run)
    if joined is not None:
        return "accepted" if joined is Status.ACCEPTED else "failed"
    statuses = {task.status for task in run.tasks.values()}
    if not statuses <= SETTLED:
        return "waiting"
    return "accepted" if statuses <= {Status.ACCEPTED} else "failed"


def is_finished(run: RunState, run_id: RunId) -> bool:
    """Say whether nothing of the run is left to do, now or later.

    Raises:
        ContractError: What the run follows is not a plan, so nobody here can say.
    """
    if not run.tasks or any(task.status not in SETTLED for task in run.tasks.values()):
        return False
    if run.plan is None:
        return True
    return not followed_by(run, run_id).topology(trace_id="")(run)


async def _driven(site: Site, run_id: RunId, followed: Followed, crew: Crew) -> Outcome:
    crew = with_sub_plans(site, crew)
    if followed.at_once is not None:
        crew = replace(crew, at_once=min(crew.at_once, followed.at_once))
    trace_id = await anyio.to_thread.run_sync(site.desk.trace_id, run_id)
    run = await drive(site, run_id, followed.topology(trace_id=trace_id), crew)
    return Outcome(run_id, ending(run, followed.shape), run)


def _refuse(faults: Iterable[str]) -> None:
    told = tuple(faults)
    if told:
        raise InvalidDocument("\n".join(told), told)


@dataclass(frozen=True, slots=True)
class SubPlan:
    """A step that is itself a plan: its input, carried out as a run of its own.

    The run is named after the step, so a step that is tried again goes on with it.
    """

    site: Site
    crew: Crew
    name: str = NESTED
    wants_workspace: bool = False

    async def run(self, job: Job) -> Work:
        """Bring the inner plan as far as it goes, and tell what came of it."""
        run_id = f"{job.brief.run_id}.{job.brief.task_id}"
        try:
            outcome = await self._carried_out(run_id, job.brief.input)
        except ContractError as misfit:
            said = f"the inner plan cannot be carried out: {misfit}"
            return Work(Record(status="blocked", next_action="escalate", error=said), Seen())
        return Work(_told_by(outcome), Seen(exit_code=0))

    async def _carried_out(self, run_id: RunId, document: JsonValue) -> Outcome:
        try:
            return await resume(self.site, run_id, self.crew)
        except UnknownRun:
            plan = valid(Plan, document)
            return await run_plan(self.site, plan, self.crew, run_id=run_id)


def with_sub_plans(site: Site, crew: Crew) -> Crew:
    """Return the crew in which steps may be plans themselves."""
    if NESTED in crew.executors:
        return crew
    return replace(crew, executors={**crew.executors, NESTED: SubPlan(site, crew)})


def _told_by(outcome: Outcome) -> Record:
    spent = outcome.run.spent
    used = {"tokens_used": spent.tokens, "requests_made": spent.requests}
    if outcome.status == "waiting":
        said = f"run {outcome.run_id!r} waits for a person"
        return Record(status="blocked", next_action="escalate", error=said, **used)
    outputs: dict[str, JsonValue] = {name: outcome.output(name) for name in outcome.run.tasks}
    status: RecordStatus = "done" if outcome.status == "accepted" else "failed"
    error = "" if status == "done" else f"run {outcome.run_id!r} is {outcome.status}"
    return Record(status=status, output=outputs, error=error, **used)


def _typed(step: Manifest, crew: Crew) -> Manifest:
    """Return the step with the schemas that its executor declares, where it has none."""
    executor = crew.executors.get(step.executor or "")
    if executor is None:
        return step
    update: dict[str, object] = {}
    for field, declared in (("input_schema", "takes"), ("output_schema", "gives")):
        adapter = getattr(executor, declared, None)
        if getattr(step, field) is None and adapter is not None:
            update[field] = adapter.json_schema()
    return step.model_copy(update=update) if update else step


def _nobody(plan: Plan, crew: Crew, others: Iterable[str]) -> Iterable[str]:
    places = [(f"steps[{n}]", step) for n, step in enumerate(plan.steps)]
    places += [(f"final[{n}]", step) for n, step in enumerate(plan.final)]
    return _without_anybody(places, crew, others)


def _without_anybody(
    places: Iterable[tuple[str, Manifest]], crew: Crew, others: Iterable[str]
) -> Iterable[str]:
    known = ", ".join(dict.fromkeys((*sorted(crew.executors), *others)))
    expected = f"expected one of {known}" if known else "and there is no executor to name"
    for place, step in places:
        if step.executor is None and crew.fallback is None:
            yield f"{place}.executor: is missing, {expected}"
        elif step.executor not in (None, NESTED, *crew.executors):
            yield f"{place}.executor: is {step.executor!r}, {expected}"


def _misfits(steps: Sequence[Manifest]) -> Iterable[str]:
    by_name: Mapping[str, Manifest] = {step.task_id: step for step in steps}
    for index, step in enumerate(steps):
        if step.input_schema is None or step.input is not None:
            continue
        for need in step.needs:
            gives = by_name[need].output_schema if need in by_name else None
            takes = step.input_schema if len(step.needs) == 1 else _part(step, need)
            if gives is not None and takes is not None:
                said = f"steps[{index}].needs: {need!r} does not fit {step.task_id!r}"
                yield from (f"{said}: {fault}" for fault in misfits(gives, takes))


def _part(step: Manifest, need: str) -> dict[str, Any] | None:
    properties = (step.input_schema or {}).get("properties")
    part = properties.get(need) if isinstance(properties, dict) else None
    return part if isinstance(part, dict) else None


def crew_of(executors: Sequence[Executor], *, owner: str, at_once: int = 8) -> Crew:
    """Return a crew in which each executor answers to its own name."""
    return Crew({one.name: one for one in executors}, owner=owner, at_once=at_once)
