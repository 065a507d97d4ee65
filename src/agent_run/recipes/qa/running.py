"""Content QA: drafts in, a report out; killed at any point, it goes on when asked again."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import anyio
from anyio import to_thread

from agent_run.contract.base import RunId
from agent_run.desk import Desk
from agent_run.engine.loop import Crew, drive
from agent_run.engine.runs import crew_of, planned, run_plan
from agent_run.engine.site import Site
from agent_run.engine.telling import Listener, to_nobody
from agent_run.errors import TransitionError, UnknownRun
from agent_run.ledger.commands import CancelRun
from agent_run.ledger.events import RunCancelled
from agent_run.ledger.state import FOR_A_PERSON, SETTLED, RunState, TaskState
from agent_run.ports.executor import Executor
from agent_run.ports.gate import Cache
from agent_run.recipes.asking import Asker
from agent_run.recipes.places import file_less_site
from agent_run.recipes.qa.carrying import is_again, with_decisions
from agent_run.recipes.qa.ending import final_region
from agent_run.recipes.qa.following import checking, is_rejected, is_unseen
from agent_run.recipes.qa.planning import (
    RECIPE,
    REFLECT,
    Dossier,
    Planned,
    Wanted,
    again,
    dossier_of,
    plan_for,
)
from agent_run.recipes.qa.reporting import DraftReport, Report, draft_report
from agent_run.recipes.qa.steps import Assignment, CheckStep
from agent_run.recipes.qa.taking_over import at_work, give_back, in_other_hands
from agent_run.wiring.opening import wall_clock
from agent_run.wiring.web import proxies_here

_TTL: Final = timedelta(seconds=20)
_AT_REST: Final = SETTLED | FOR_A_PERSON
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


def _to_nobody(sentence: str) -> None:
    """Leave it unsaid."""


@dataclass(frozen=True, slots=True)
class Shop:
    """Where drafts are checked, and by whom."""

    desk: Desk
    state: Path
    """The state folder: results are saved below it."""
    cache: Cache
    owner: str = "qa"
    ask: Asker | None = None
    """How a model is asked. `None` asks none."""
    tell: Listener = to_nobody
    fresh: bool = False
    """Look at everything again, whatever was found before."""
    drafts_at_once: int = 4
    ttl: timedelta = _TTL
    """After so long without a sign of life, others take over what was being checked."""
    shared: bool = False
    """Whether the ledger is one that other machines work on, too."""
    say: Callable[[str], None] = _to_nobody
    """Who is told what is waited for."""

    def site(self) -> Site:
        """Return where the steps are worked on."""
        return file_less_site(self.desk, self.state, cache=self.cache, tell=self.tell)

    def crew(self) -> Crew:
        """Return who does the steps and the final region."""
        team = executors_of(self.desk, self.state, self.cache, self.ask)
        return replace(crew_of(team, owner=self.owner, at_once=4), ttl=self.ttl)


def executors_of(
    desk: Desk, state: Path, cache: Cache, ask: Asker | None = None
) -> tuple[Executor, ...]:
    """Return everybody that plans of this recipe name, so that any process can go on."""
    return (
        CheckStep(desk, cache, wall_clock, ask, proxies_here()),
        *final_region(desk, state / "qa", ask),
    )


def plans_for(drafts: Sequence[str], wanted: Wanted) -> list[Planned]:
    """Return a plan for each draft; under two spellings, it is still one.

    Raises:
        InvalidDocument: A draft is not there, or a rule file is not what it should be.
    """
    names: dict[Path, str] = {}
    for name in drafts:
        names.setdefault(Path(name).resolve(), name)
    return [plan_for(Path(name), name, wanted) for name in names.values()]


async def check_drafts(shop: Shop, drafts: Sequence[str], wanted: Wanted) -> Report:
    """Carry out the checklist for each draft, and return the report.

    Raises:
        InvalidDocument: Something is wrong with the request; nothing was begun.
    """
    plans = await to_thread.run_sync(plans_for, drafts, wanted)
    with at_work(shop.state, wall_clock) as since:
        return await _all_checked(shop, plans, since)


async def _all_checked(shop: Shop, plans: Sequence[Planned], since: datetime | None) -> Report:
    reports: dict[int, DraftReport] = {}
    limit = anyio.CapacityLimiter(shop.drafts_at_once)
    site, crew = shop.site(), shop.crew()

    async def check(number: int, plan: Planned) -> None:
        async with limit:
            reports[number] = await _checked(shop, plan, site, crew, since)

    async with anyio.create_task_group() as group:
        for number, plan in enumerate(plans):
            group.start_soon(check, number, plan)
    return Report(tuple(reports[number] for number in range(len(plans))))


async def take_up(shop: Shop, run_id: RunId) -> DraftReport:
    """Go on with the checks of one draft, and return its report as it then stands.

    What was decided since the report was saved is saved and summed up; nothing that was
    checked is checked again.

    Raises:
        ContractError: The run is not a check of a draft.
        TransitionError: The run was cancelled.
    """
    run = await to_thread.run_sync(shop.desk.run, run_id)
    dossier_of(run, run_id)
    if run.cancelled:
        reason = await to_thread.run_sync(_why_cancelled, shop.desk, run_id)
        msg = f"run {run_id!r} was cancelled: {reason}"
        raise TransitionError(msg)
    with at_work(shop.state, wall_clock) as since:
        run = await to_thread.run_sync(_taken_over, shop, run_id, since)
        await _go_on(run_id, run, shop.site(), shop.crew())
    return await to_thread.run_sync(draft_report, shop.desk, run_id)


def model_still_asked(run: RunState, run_id: RunId) -> str | None:
    """Return the model that the rest of a run asks; `None` where it asks none."""
    plan = planned(run, run_id)
    asking = (*plan.steps, *(step for step in plan.final if step.task_id == REFLECT))
    if all(step.task_id in run.tasks and _rests(run.tasks[step.task_id]) for step in asking):
        return None
    models = (Assignment.model_validate(step.input).model for step in plan.steps)
    return next(filter(None, models), None)


def can_go_on(run: RunState, run_id: RunId, *, site_time: datetime) -> bool:
    """Say whether the run is done as far as it goes, or has time left to get there.

    A run in which something could not be looked at is neither.
    """
    if run.cancelled:
        return False
    if run.tasks and all(map(_rests, run.tasks.values())):
        return not any(map(is_unseen, run.tasks.values()))
    seconds = dossier_of(run, run_id).plan.overall_budget.time_budget_sec
    opened = run.opened_at or site_time
    return site_time < opened + timedelta(seconds=seconds)


async def _checked(
    shop: Shop, plan: Planned, site: Site, crew: Crew, since: datetime | None
) -> DraftReport:
    name, before = await to_thread.run_sync(_place_for, shop, plan)
    done: frozenset[str] = frozenset()
    if before is None:
        named = await to_thread.run_sync(_succeeding, shop, plan, name)
        begun = await _begun(site, named, crew, name)
        if not begun or named.plan.steps != plan.plan.steps:
            # Somebody else was first, or a rejection that was carried over is to be settled.
            run = await to_thread.run_sync(shop.desk.run, name)
            await _go_on(name, run, site, crew)
    else:
        before = await to_thread.run_sync(_taken_over, shop, name, since)
        done = frozenset(task for task, state in before.tasks.items() if _is_done(state))
        await _go_on(name, before, site, crew)
    return await to_thread.run_sync(lambda: draft_report(shop.desk, name, reused=done))


async def _begun(site: Site, plan: Planned, crew: Crew, name: RunId) -> bool:
    """Open the run and bring it as far as it goes; say whether it was ours to open."""
    try:
        await run_plan(site, plan.plan, crew, run_id=name)
    except TransitionError:
        run = await to_thread.run_sync(site.desk.run, name)
        if not run.plan:
            raise  # it is not open: the wish itself was wrong
        return False
    return True


async def _go_on(run_id: RunId, run: RunState, site: Site, crew: Crew) -> None:
    plan = planned(run, run_id)
    hands = replace(crew, at_once=min(crew.at_once, plan.max_parallel or crew.at_once))
    await drive(site, run_id, checking(plan), hands)


def _rests(task: TaskState) -> bool:
    """Say whether nothing is left to be checked in this step."""
    return task.status in _AT_REST or is_rejected(task)


def _is_done(task: TaskState) -> bool:
    return _rests(task) and not is_unseen(task)


def _taken_over(shop: Shop, run_id: RunId, since: datetime | None) -> RunState:
    """Return the run without what dead processes held of it; say what is waited for."""
    if since is not None and not shop.shared:
        give_back(shop.desk, run_id, shop.owner, before=since)
    run = shop.desk.run(run_id)
    waits = in_other_hands(run, dossier_of(run, run_id).name)
    if waits:
        shop.say(waits)
    return run


def _why_cancelled(desk: Desk, run_id: RunId) -> str:
    events = (page.event() for page in reversed(desk.pages(run_id)))
    return next((one.reason for one in events if isinstance(one, RunCancelled)), "")


def _place_for(shop: Shop, plan: Planned) -> tuple[RunId, RunState | None]:
    """Return the run to go on with, or the name of a new one and nothing."""
    name, number = plan.run_id, 1
    while True:
        try:
            run = shop.desk.run(name)
        except UnknownRun:
            return name, None
        if not shop.fresh and can_go_on(run, name, site_time=wall_clock()):
            return name, run
        number += 1
        name = f"{plan.run_id}.{number}"


def _succeeding(shop: Shop, plan: Planned, name: RunId) -> Planned:
    """Return the plan as `name`, with what was decided in earlier runs about this draft.

    What still waits there for a person waits no longer.
    """
    earlier = list(_earlier(shop, plan, name))
    if name != plan.run_id:
        known = 0 if shop.fresh else _known(shop, plan, earlier)
        plan = again(plan, int(name.rpartition(".")[2]), known=known)
    if not shop.fresh:
        plan = with_decisions(shop.desk, plan, earlier)
    for run_id in earlier:
        run = shop.desk.run(run_id)
        if not run.cancelled and any(one.status not in SETTLED for one in run.tasks.values()):
            reason = f"the draft is checked again as {plan.run_id}"
            shop.desk.handle(run_id, CancelRun(actor=shop.owner, reason=reason))
    return plan


def _known(shop: Shop, plan: Planned, earlier: Sequence[RunId]) -> int:
    """Return how many steps were looked at in the last run before that went the same way."""
    before = [name for name in earlier if is_again(name, plan.run_id)]
    if not before:
        return 0
    runs = [shop.desk.run(name) for name in before]
    last = max(runs, key=lambda run: run.opened_at or _NEVER)
    steps = {step.task_id for step in plan.plan.steps}
    return sum(_is_done(task) for name, task in last.tasks.items() if name in steps)


def _earlier(shop: Shop, plan: Planned, name: RunId) -> Iterator[RunId]:
    """Yield the runs of the same checklist about earlier versions of this draft."""
    ours = plan.run_id.rpartition("-")[0] + "-"
    for row in shop.desk.runs():
        if not row.run_id.startswith(ours) or row.run_id == name:
            continue
        run = shop.desk.run(row.run_id)
        labels = (task.manifest.labels.get("recipe") for task in run.tasks.values())
        if RECIPE not in labels:
            continue  # somebody's own run that happens to be called like one of ours
        if _same_job(dossier_of(run, row.run_id), plan.dossier):
            yield row.run_id


def _same_job(one: Dossier, other: Dossier) -> bool:
    steps = [[step.id for step in each.plan.steps] for each in (one, other)]
    return one.draft == other.draft and steps[0] == steps[1]
