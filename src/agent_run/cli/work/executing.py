"""The work of `execute`: post if need be, claim, run, judge, until the task has an end."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final, TypedDict, Unpack

from agent_run.cli.exits import Exit
from agent_run.cli.speech import Speech
from agent_run.cli.work.checking import read_all
from agent_run.cli.work.documents import STDIN
from agent_run.cli.work.door import Door, opened
from agent_run.cli.work.ending import Ending, ending_of
from agent_run.cli.work.listening import completed, give_back, transcript
from agent_run.cli.work.posting import Posting, gathered, run_for
from agent_run.contract.base import RunId, TaskId
from agent_run.contract.manifest import Manifest
from agent_run.engine.execute import Ordered
from agent_run.engine.execute import execute as worked
from agent_run.engine.site import Site
from agent_run.errors import AlreadyPosted, ContractError, StaleClaim, UnknownTask
from agent_run.ledger.commands import Post
from agent_run.ledger.events import TaskPosted
from agent_run.ledger.state import FOR_A_PERSON, SETTLED, RunState, Status
from agent_run.ledger.words import named
from agent_run.wiring.settings import FenceMode, Settings
from agent_run.wiring.site import Wanted, open_executor, open_site

_STRONGEST: Final = "namespaces+landlock+seccomp"
_SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})


class Wish(TypedDict):
    """What else may be said about the work."""

    executor: str | None
    command: str | None
    owner: str | None
    ttl: timedelta | None
    attempts: int | None
    dirty: str | None
    cached: bool
    fence: FenceMode | None
    run_id: RunId | None


@dataclass(frozen=True, slots=True)
class Place:
    """The task that is meant."""

    run_id: RunId
    task_id: TaskId


def execute(speech: Speech, *, target: str, dry_run: bool, **wish: Unpack[Wish]) -> int:
    """Work on the task until it is accepted, waits for a person, or no attempt is left."""
    if dry_run:
        return _rehearse(speech, target, wish)
    with opened(speech, writes=True) as door:
        place = located(door, target, wish["run_id"])
        ending = ending_of(door.desk, place.run_id, place.task_id)
        nothing_to_do = _has_an_end(ending)
        if not nothing_to_do:
            ending = _work_on(door, place, wish)
        speech.answer(ending.as_json(), ())
    if nothing_to_do or ending.code is not Exit.DONE:
        speech.tell(ending.sentence())
    return ending.code


def _rehearse(speech: Speech, target: str, wish: Wish) -> int:
    """Say who would do what; manifest and executor are looked at, nothing is written."""
    with opened(speech, writes=True, dry_run=True) as door:
        settings = door.settings
        if _is_file(target):
            posting = _one(gathered(list(read_all((target,)))))
            manifest, run_id = posting.manifests[0], wish["run_id"]
            run_id = run_id or run_for(posting, door.desk)
            run = door.run_or_empty(run_id)
            if manifest.task_id in run.tasks:
                _refuse_another(door, run_id, run, manifest)
        else:
            place = located(door, target, wish["run_id"])
            run_id, run = place.run_id, door.desk.run(place.run_id)
            manifest = run.tasks[place.task_id].manifest
        executor = open_executor(
            wish["executor"] or manifest.executor,
            settings,
            command=wish["command"],
            desk=door.desk,
        )
    name = named(run_id, manifest.task_id)
    task = run.tasks.get(manifest.task_id)
    stands = "new" if task is None else str(task.status)
    told = {"task_id": manifest.task_id, "run_id": run_id, "status": stands}
    speech.answer(
        {**told, "executor": executor.name, "dry_run": True},
        [f"would let {executor.name!r} work on {name} ({stands})"],
    )
    return Exit.DONE


def _is_file(target: str) -> bool:
    return target == STDIN or Path(target).is_file()


def located(door: Door, target: str, run_id: RunId | None) -> Place:
    """Return the task that `target` names; a manifest's file is posted first.

    Raises:
        AlreadyPosted: The task stands there with another manifest.
        UnknownTask: It names neither.
    """
    if _is_file(target):
        return _posted(door, target, run_id)
    try:
        return Place(*door.desk.locate(target if run_id is None else f"{run_id}/{target}"))
    except UnknownTask:
        if Path(target).suffix in _SUFFIXES:
            return _posted(door, target, run_id)  # says why it cannot be read
        raise


def fenced(settings: Settings, fence: FenceMode | None) -> Settings:
    """Return the settings with the fence that was asked for."""
    return settings if fence is None else settings.model_copy(update={"fence": fence})


def warn_of_fence(speech: Speech, site: Site) -> None:
    """Say loudly what nothing on this machine holds."""
    report = site.fence.report()
    if report.kind == "none":
        speech.warn("NO FENCE: whatever is executed here can do all that you can do")
    for sentence in report.lacks if report.kind != _STRONGEST or speech.verbose else ():
        speech.warn(f"the fence lacks: {sentence}")


def _work_on(door: Door, place: Place, wish: Wish) -> Ending:
    speech, settings = door.speech, fenced(door.settings, wish["fence"])
    task = door.desk.run(place.run_id).tasks[place.task_id]
    name = wish["executor"] or task.manifest.executor
    executor = open_executor(name, settings, command=wish["command"], desk=door.desk)
    owner = wish["owner"] or settings.owner
    tell = transcript(speech)
    wanted = Wanted(tell=tell, cached=wish["cached"], dirty=wish["dirty"])
    site = open_site(door.desk, settings, wanted)
    warn_of_fence(speech, site)
    order = Ordered(executor, owner, wish["ttl"], wish["attempts"])
    run_id, task_id = place.run_id, place.task_id
    after = door.desk.run(run_id).seq
    try:
        completed(lambda: worked(site, run_id, task_id, order), speech, tell)
    except StaleClaim:
        ending = ending_of(door.desk, run_id, task_id)
        if ending.status != "cancelled":
            raise
        return ending
    except BaseException:
        # Whatever happened, nobody else should have to wait until the claim runs out.
        give_back(door.desk, run_id, task_id, owner=owner, after=after)
        raise
    return ending_of(door.desk, run_id, task_id)


def _has_an_end(ending: Ending) -> bool:
    """Say whether nothing can be done before a person, or anybody, says something."""
    task = ending.task
    if task.status is Status.WAITING:
        return not task.approved
    return task.status in SETTLED | FOR_A_PERSON


def _posted(door: Door, file: str, run_id: RunId | None) -> Place:
    posting = _one(gathered(list(read_all((file,)))))
    manifest = posting.manifests[0]
    run_id = run_id or run_for(posting, door.desk)
    run = door.run_or_empty(run_id)
    if manifest.task_id in run.tasks:
        _refuse_another(door, run_id, run, manifest)
    else:
        door.handle(run_id, Post(actor=door.settings.owner, manifest=manifest))
    return Place(run_id, manifest.task_id)


def _one(posting: Posting) -> Posting:
    if posting.plan is not None or len(posting.manifests) != 1:
        msg = f"execute takes one task, got a plan of {len(posting.manifests)}"
        raise ContractError(msg)
    return posting


def _refuse_another(door: Door, run_id: RunId, run: RunState, manifest: Manifest) -> None:
    asked = run.tasks[manifest.task_id].manifest
    for page in door.desk.pages(run_id):
        event = page.event() if page.kind == "task_posted" else None
        if isinstance(event, TaskPosted) and event.task_id == manifest.task_id:
            asked = event.manifest  # as it was posted: a person may have widened it since
    ours, theirs = manifest.model_dump(), asked.model_dump()
    differ = [key for key, value in ours.items() if value != theirs[key]]
    if differ:
        named = ", ".join(differ)
        msg = (
            f"task {manifest.task_id!r} stands in run {run_id!r} with another {named}; "
            "to do it anew, name a new run with --run"
        )
        raise AlreadyPosted(msg)
