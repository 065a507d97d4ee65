"""The work of `post`: several files, one run, one transaction."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from agent_run.cli.exits import Exit
from agent_run.cli.speech import Speech
from agent_run.cli.work.checking import Checked, read_all
from agent_run.cli.work.door import Door, opened
from agent_run.contract.base import RunId, TaskId
from agent_run.contract.budget import UNLIMITED
from agent_run.contract.faults import Fault, refusal
from agent_run.contract.manifest import Manifest
from agent_run.contract.plan import Plan
from agent_run.desk import Desk
from agent_run.errors import AlreadyPosted, ContractError, UnknownTask
from agent_run.ledger.commands import Command, OpenRun, Post
from agent_run.ledger.state import SETTLED, RunState
from agent_run.ledger.views import status_rows
from agent_run.ledger.words import counted


@dataclass(frozen=True, slots=True)
class Posting:
    """All that the files ask for."""

    manifests: tuple[Manifest, ...]
    """In an order in which each stands behind those it needs."""
    plan: Plan | None = None

    @property
    def outside(self) -> tuple[TaskId, ...]:
        """Tasks that are needed and not among those to be posted."""
        own = {manifest.task_id for manifest in self.manifests}
        needed = (need for manifest in self.manifests for need in manifest.needs)
        return tuple(dict.fromkeys(need for need in needed if need not in own))


def post(speech: Speech, *, files: tuple[str, ...], run_id: RunId | None, dry_run: bool) -> int:
    """Post the tasks of all files, or none of them."""
    posting = gathered(list(read_all(files)))
    with opened(speech, writes=True, dry_run=dry_run) as door:
        run_id = run_id or run_for(posting, door.desk)
        before = door.run_or_empty(run_id)
        _refuse_what_stands(posting, run_id, before)
        state = door.handle(run_id, *_commands(posting, door, before))
        names = {manifest.task_id for manifest in posting.manifests}
        rows = [row for row in status_rows(run_id, state) if row.task_id in names]
        trace_id = None if dry_run else door.desk.trace_id(run_id)
    if posting.plan and posting.plan.final:
        final = counted(len(posting.plan.final), "final step")
        speech.tell(f"{final} not posted yet, only when all others are settled")
    tasks = [{"task_id": row.task_id, "status": row.status} for row in rows]
    speech.answer(
        {"run_id": run_id, "trace_id": trace_id, "dry_run": dry_run, "tasks": tasks},
        (
            f"[post]    task={row.task_id} run={run_id} status={row.status}"
            + (f" needs={','.join(row.needs)}" if row.needs else "")
            for row in rows
        ),
    )
    return Exit.DONE


def gathered(found: Sequence[Checked]) -> Posting:
    """Return the tasks of all files, ordered by need.

    Raises:
        InvalidDocument: A file is at fault, or two files do not fit together.
    """
    faults = [fault for one in found for fault in one.faults if isinstance(fault, Fault)]
    placed: dict[TaskId, str] = {}
    manifests: list[Manifest] = []
    plans: list[Plan] = []
    for one in found:
        own = _manifests_of(one, plans)
        if one.value is not None and not own:
            told = f"is of the kind {one.kind!r}, expected a manifest or a plan"
            faults.append(Fault(one.file, None, None, "", told))
        for manifest in own:
            if manifest.task_id in placed:
                told = (
                    f"is {manifest.task_id!r}, which {placed[manifest.task_id]} holds already"
                )
                faults.append(Fault(one.file, None, None, "task_id", told))
            placed[manifest.task_id] = one.file
            manifests.append(manifest)
    if len(plans) > 1:
        faults.append(Fault(found[-1].file, None, None, "", "is one plan too many for one run"))
    if faults:
        raise refusal(faults)
    return Posting(in_order_of_need(manifests), plans[0] if plans else None)


def in_order_of_need(manifests: Iterable[Manifest]) -> tuple[Manifest, ...]:
    """Return the tasks so that each comes behind those it needs, else as they were.

    Raises:
        ContractError: Some wait for each other in a circle.
    """
    named = {manifest.task_id: manifest for manifest in manifests}
    place = {task_id: number for number, task_id in enumerate(named)}
    needs = {
        task_id: [need for need in manifest.needs if need in named]
        for task_id, manifest in named.items()
    }
    sorter = TopologicalSorter(needs)
    try:
        sorter.prepare()
    except CycleError as error:
        msg = "the tasks wait for each other in a circle: " + " -> ".join(error.args[1])
        raise ContractError(msg) from error
    ordered: list[Manifest] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready(), key=place.__getitem__)
        ordered += [named[task_id] for task_id in ready]
        sorter.done(*ready)
    return tuple(ordered)


def run_for(posting: Posting, desk: Desk) -> RunId:
    """Return the run the tasks belong to when nobody says it.

    Raises:
        UnknownTask: A needed task stands in no run, or not in one run with the others.
    """
    if posting.outside:
        return _run_of_needs(posting.outside, desk)
    return posting.plan.run_name if posting.plan else posting.manifests[0].task_id


def _run_of_needs(needed: Sequence[TaskId], desk: Desk) -> RunId:
    candidates: dict[RunId, None] | None = None
    for need in needed:
        runs = dict.fromkeys(row.run_id for row in desk.store.tasks(task_id=need))
        if not runs:
            msg = f"task {need!r} is needed, but neither posted here nor in the ledger"
            raise UnknownTask(msg)
        kept = runs if candidates is None else {r: None for r in candidates if r in runs}
        if not kept:
            names = ", ".join(map(repr, needed))
            msg = f"the needed tasks {names} do not stand in one run"
            raise UnknownTask(msg)
        candidates = kept
    return next(iter(candidates or ()))


def _refuse_what_stands(posting: Posting, run_id: RunId, run: RunState) -> None:
    for manifest in posting.manifests:
        task = run.tasks.get(manifest.task_id)
        if task is None:
            continue
        settled = task.status in SETTLED
        advice = "; to do it again, name a new run with --run" if settled else ""
        msg = f"task {manifest.task_id!r} is already {task.status} in run {run_id!r}{advice}"
        raise AlreadyPosted(msg)


def _commands(posting: Posting, door: Door, run: RunState) -> list[Command]:
    actor = door.settings.owner
    posts: list[Command] = [
        Post(actor=actor, manifest=manifest) for manifest in posting.manifests
    ]
    plan = posting.plan
    if plan is None:
        return posts
    if not run.seq:
        text = plan.model_dump(mode="json", exclude_defaults=True)
        budget = UNLIMITED if plan.budget == UNLIMITED else plan.budget
        return [OpenRun(actor=actor, intent=plan.objective, budget=budget, plan=text), *posts]
    if plan.budget != UNLIMITED or plan.final:
        msg = "a plan with a budget or final steps begins a run; name a new one with --run"
        raise ContractError(msg)
    return posts


def _manifests_of(one: Checked, plans: list[Plan]) -> tuple[Manifest, ...]:
    match one.value:
        case Manifest() as manifest:
            return (manifest,)
        case Plan() as plan:
            plans.append(plan)
            return plan.manifests()
        case _:
            return ()
